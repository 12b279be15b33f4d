"""Every exception Tandem raises on purpose.

    TandemError
    ├── InputError                 what the user gave is wrong; nothing was written     exit 2
    │   ├── ConfigError            pipeline.config, overrides or settings
    │   │   ├── StoreRefusedError  the run's bucket: no credentials, or a right is missing
    │   │   └── BucketMissingError the run's bucket: there is none of that name
    │   ├── LabelMapError          label map
    │   ├── DataError              records, found before the first step
    │   ├── FineTuneError          the checkpoint to start from
    │   └── RunConflictError       the run folder belongs to another process or program
    ├── TrainingError              training can't go on and a restart won't help        exit 3
    │   ├── NonFiniteLossError
    │   ├── DataEndedError         fewer epochs than steps
    │   └── RecordError            a record that can't be read, found while training
    ├── CheckpointDamagedError     bytes differ from those committed; another may do
    ├── AttemptSupersededError     a newer attempt of this run exists: stop quietly
    ├── StoreError                 the run store failed
    │   ├── ObjectNotFoundError    no object of that name (and generation)
    │   ├── ObjectExistsError      create-only put met an object
    │   ├── GenerationMismatchError  the object changed since it was read
    │   └── StoreUnavailableError  the only one worth retrying
    └── ClusterError               the Kubernetes API failed
        ├── ClusterRefusedError    no credentials, or a right is missing
        ├── ClusterNotFoundError   no object of that name
        └── ClusterUnavailableError  the only one worth retrying

An InputError says what is wrong, the value got, what was expected and where to mend it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TandemError(Exception):
    """Root of the tree."""


class InputError(TandemError):
    """What the user gave is wrong; a restart with the same input fails the same way."""


class ConfigError(InputError):
    """A pipeline.config, an override or a process setting is wrong."""


class StoreRefusedError(ConfigError):
    """The store doesn't know who asks, or the account lacks a right."""


class BucketMissingError(ConfigError):
    """There is no bucket of that name."""


class LabelMapError(InputError):
    """A label map is missing, malformed or doesn't fit the model."""


class DataError(InputError):
    """Record files are missing, empty or not what the config says."""


class FineTuneError(InputError):
    """The fine-tune checkpoint can't be used as the config asks."""


class RunConflictError(InputError):
    """The run folder is in use by another owner, or holds files of another program."""


class TrainingError(TandemError):
    """Training can't go on, and starting again from the same checkpoint won't help."""


class NonFiniteLossError(TrainingError):
    """The loss became NaN or infinite; the newest checkpoint is from before that step."""


class DataEndedError(TrainingError):
    """The training data came to an end before the last step."""


class RecordError(TrainingError):
    """A record met while training can't be decoded."""


class CheckpointDamagedError(TandemError):
    """A checkpoint's bytes differ from what its commit says."""


class AttemptSupersededError(TandemError):
    """A newer attempt of the same run exists, so this one has to stop."""


class StoreError(TandemError):
    """The run store failed in a way that is not the caller's doing."""


class ObjectNotFoundError(StoreError):
    """No object has that name (and generation)."""


class ObjectExistsError(StoreError):
    """A create-only put met an existing object."""


class GenerationMismatchError(StoreError):
    """The object is no longer of the generation that the caller read."""


class StoreUnavailableError(StoreError):
    """The store did not answer in time or asked to try later."""


def nearest_names(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """A hint for a misspelt name: ``; did you mean 'a' or 'b'?``, or nothing when none is near.

    Args:
        name: as it was written.
        known: the valid ones.
        prefix: what all of them begin with in the user's eyes; it doesn't count as likeness.
    """
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.75)
    if not near:
        return ""
    return "; did you mean " + " or ".join(repr(prefix + n) for n in near) + "?"


class ClusterError(TandemError):
    """The Kubernetes API failed in a way that is not the caller's doing."""


class ClusterRefusedError(ClusterError):
    """The API server doesn't know who asks, or the service account lacks a right."""


class ClusterNotFoundError(ClusterError):
    """The cluster has no object of that name."""


class ClusterUnavailableError(ClusterError):
    """The API server is out of reach or busy; the same call may work later."""
