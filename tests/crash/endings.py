"""What must hold once everybody has come to an end and the last sweep is done."""

from tests.crash.plain_records import (
    DAMAGE,
    INTENT,
    STATE_FILE,
    is_part,
    name_of,
    named_in,
    parsed,
    pin_of,
)

_METRIC = "DetectionBoxes_Precision/mAP"


class Ending:
    """A store at rest.

    Args:
        witness: saw all that was done to it.
        scenario: what took place.
    """

    def __init__(self, witness, scenario):
        self._witness = witness
        self._scenario = scenario
        self._records = witness.records
        self._objects = witness.records.objects
        self._line = self._records.line_of(witness.committed)
        self._present = self._records.present()

    def check(self, listed):
        """Raises ViolationError for the first promise that is broken.

        Args:
            listed: all names in the store itself.
        """
        if sorted(self._objects) != listed:
            self._witness.broken("store", f"{set(listed) ^ set(self._objects)} differ")
        self.check_finished()
        self.check_nothing_lost()
        self.check_ledger()
        for eval_set in self._scenario.eval_sets:
            self.check_best(eval_set)
        self.check_retention()
        self.check_state_file()
        self.check_nothing_left_over()

    def check_finished(self):
        ends, newest = self._records.ends(), max(self._records.attempts())
        steps = self._scenario.num_steps
        if newest not in ends:
            self._witness.broken("finish", f"attempt {newest} has no end")
        end = ends[newest]
        if (end["outcome"], end["final_step"]) != ("finished", steps):
            self._witness.broken("finish", f"the end is {end}")
        if not self._line or self._line[-1][0] != steps or self._line[-1] not in self._present:
            self._witness.broken("finish", f"the line is {self._line}, {steps} steps were asked")

    def check_nothing_lost(self):
        for checkpoint in self._line:
            if checkpoint in self._present:
                missing = self._missing_files(checkpoint)
                if missing:
                    self._witness.broken("lost", f"{checkpoint} lacks {missing}")
            elif checkpoint not in self._witness.intended:
                self._witness.broken("lost", f"{checkpoint} is gone and was never retired")
        for checkpoint in self._witness.pinned:
            if checkpoint not in self._present or self._missing_files(checkpoint):
                self._witness.broken("pin", f"{checkpoint} is pinned, and gone")

    def check_ledger(self):
        for eval_set in self._scenario.eval_sets:
            entries = self._entries(eval_set)
            for checkpoint in self._line:
                found = entries.get(checkpoint, [])
                if len(found) != 1:
                    self._witness.broken("ledger", f"{checkpoint} has {found} in {eval_set}")
                self._check_failed(checkpoint, eval_set, found[0])

    def check_best(self, eval_set):
        for best in self._scored(eval_set)[:1]:
            # One that was found damaged is no candidate, and what was retired before it was
            # found so is gone.
            if best in self._witness.damaged:
                return
            if best not in self._present or self._missing_files(best):
                self._witness.broken("best", f"{best} is the best of {eval_set}, and gone")

    def check_retention(self):
        """What is there is what the policy keeps: the newest, the best, and what is pinned."""
        if self._witness.damaged or self._witness.seen["void commit"] or self._void_now():
            return  # then another line, or others, were the newest once, and rightly kept instead
        kept = set(self._line[-self._scenario.retention.max_to_keep :])
        kept |= {best for s in self._scenario.eval_sets for best in self._scored(s)[:1]}
        kept |= {c for c in self._line if pin_of(c) in self._objects}
        if kept != self._present:
            self._witness.broken("retention", f"there are {self._present}, to be kept are {kept}")

    def check_state_file(self):
        readable = self._present - self._records.closed()
        expected = [checkpoint for checkpoint in self._line if checkpoint in readable]
        found = named_in(self._objects.get(STATE_FILE, b""))
        if found != expected:
            self._witness.broken("state file", f"it names {found}, the line is {expected}")

    def check_nothing_left_over(self):
        pinned = {c for c in self._present if pin_of(c) in self._objects}  # confirmed or not
        kept = pinned | {*self._line} & self._present
        for name in self._objects:
            checkpoint, suffix = parsed(name)
            if name.startswith("leases/"):
                self._witness.broken("left over", name)
            if checkpoint is None:
                continue
            is_under_pin = suffix == INTENT and checkpoint in pinned
            belongs = is_part(suffix) or suffix == DAMAGE
            if not is_under_pin and (checkpoint not in kept or not belongs):
                self._witness.broken("left over", name)

    def _check_failed(self, checkpoint, eval_set, entry):
        if entry["outcome"] != "failed" or checkpoint in self._witness.damaged:
            return
        start = _entry_name(checkpoint, eval_set, ".try")
        tries = [name for name in self._objects if name.startswith(start)]
        if len(tries) != 3:
            self._witness.broken("ledger", f"{checkpoint} failed after {tries}")

    def _scored(self, eval_set):
        """The scored checkpoints of the line, the best first, and of equals the earliest."""
        scored = [
            (-entry["metrics"][_METRIC], checkpoint)
            for checkpoint, entries in self._entries(eval_set).items()
            for entry in entries
            if entry["outcome"] == "scored"
        ]
        return [checkpoint for _, checkpoint in sorted(scored)]

    def _void_now(self):
        return set(self._witness.committed) - set(self._line)

    def _entries(self, eval_set):
        found = {}
        for checkpoint in self._line:
            start = f"evaluations/{eval_set.name or '@unnamed'}/{checkpoint[0]}-{checkpoint[1]}-"
            found[checkpoint] = [
                self._records.record(name)
                for name in self._objects
                if name.startswith(start) and ".try-" not in name
            ]
        return found

    def _missing_files(self, checkpoint):
        names = [name_of(checkpoint, s) for s in self._witness.committed[checkpoint].files]
        return [name for name in names if name not in self._objects]


def _entry_name(checkpoint, eval_set, suffix):
    step, attempt = checkpoint
    return f"evaluations/{eval_set.name or '@unnamed'}/{step}-{attempt}-{eval_set.digest}{suffix}"
