"""TensorFlow's greetings, which it writes past every logger, kept off standard error.

Whatever else is written meanwhile is passed on.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

_GREETINGS = re.compile(
    r"absl::InitializeLog|oneDNN custom operations|cpu_feature_guard|^To enable the following"
    r"|Could not find cuda drivers|TF-TRT Warning"
)


def prepare(environment: MutableMapping[str, str]) -> None:
    """Asks TensorFlow for warnings only, unless the user asked for something else."""
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")


@contextmanager
def greetings_withheld() -> Iterator[None]:
    """Holds standard error back for the duration of the block and passes on all but greetings."""
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
            held.seek(0)
            for line in held.read().decode(errors="replace").splitlines(keepends=True):
                if not _GREETINGS.search(line):
                    sys.stderr.write(line)
