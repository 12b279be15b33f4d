"""Reading all records once before training, to find what is wrong while nothing has happened yet.

Proves every checksum and examines every annotation, in Python alone: about 0.1 ms a record, so a
minute for 500 000. Pixels are decoded on demand only, which takes as long as an epoch's decoding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tandem.data.annotations import Examination, examine
from tandem.data.decoding import ClassTable, why_refused
from tandem.data.records import RecordSet
from tandem.errors import DataError

_MAX_PROBLEMS = 20
"""Problems that are kept in words; the rest are counted."""


@dataclass(frozen=True)
class CheckReport:
    """What a record set holds.

    Attributes:
        problems: ``path:index (source_id '...'): ...``, the first few.
        num_problem_records: records with any problem.
        num_records: records read.
        num_boxes: in all of them.
        num_clipped_boxes: boxes that overhang the image a little; they are clipped.
        num_label_conflicts: boxes whose class text and class/label disagree; the text wins.
        num_empty_source_ids: records without one.
        num_repeated_source_ids: records whose source_id came before.
        num_images_over_max_boxes: images with more boxes than training takes.
        num_turned_images: images that viewers turn and whose stated size is the turned one: their
            boxes may have been drawn on the turned image.
    """

    problems: tuple[str, ...]
    num_problem_records: int
    num_records: int
    num_boxes: int
    num_clipped_boxes: int
    num_label_conflicts: int
    num_empty_source_ids: int
    num_repeated_source_ids: int
    num_images_over_max_boxes: int
    num_turned_images: int

    def raise_for_problems(self) -> None:
        """Raises DataError when a record can't be used."""
        if self.problems:
            shown = "".join(f"\n  {problem}" for problem in self.problems)
            raise DataError(
                f"{self.num_problem_records} of {self.num_records} records can't be used:{shown}"
            )

    def notes(self) -> list[str]:
        """What is unusual but usable, one line each."""
        counted = (
            (self.num_clipped_boxes, "boxes overhang their image a little and are clipped"),
            (
                self.num_label_conflicts,
                "boxes have a class/label that disagrees with their class text; the text wins",
            ),
            (
                self.num_images_over_max_boxes,
                "images have more boxes than max_number_of_boxes; training leaves out the rest",
            ),
            (
                self.num_turned_images,
                "images carry an EXIF turn, which decoding ignores, and state the turned size: "
                "check their boxes",
            ),
            (self.num_empty_source_ids, "records have no image/source_id"),
            (self.num_repeated_source_ids, "records repeat the image/source_id of another"),
        )
        return [f"{count} {text}" for count, text in counted if count]


def check_records(
    records: RecordSet,
    *,
    classes: ClassTable,
    max_boxes: int | None = None,
    decode_images: bool = False,
) -> CheckReport:
    """Examines every record.

    Args:
        records: the files.
        classes: what class texts and labels mean.
        max_boxes: boxes that training takes of an image; None for evaluation, which takes all.
        decode_images: decode the pixels too.

    Raises:
        DataError: a file is damaged; the rest of it can't be read.
    """
    problems: list[str] = []
    counts: Counter[str] = Counter()
    source_ids: set[str] = set()
    for stored in records.read():
        found = examine(
            stored.serialized, label_ids=classes.label_ids, num_classes=classes.num_classes
        )
        counts.update(_counts(found, source_ids=source_ids, max_boxes=max_boxes))
        source_ids.add(found.source_id)
        reason = ""
        if found.problems or decode_images:
            reason = why_refused(stored.serialized, classes=classes)
        if reason:
            counts["problem_records"] += 1
            if len(problems) < _MAX_PROBLEMS:
                problems.append(f"{stored.record} {reason}")
    return CheckReport(tuple(problems), **{f"num_{name}": counts[name] for name in _COUNTED})


_COUNTED = (
    "problem_records",
    "records",
    "boxes",
    "clipped_boxes",
    "label_conflicts",
    "empty_source_ids",
    "repeated_source_ids",
    "images_over_max_boxes",
    "turned_images",
)


def _counts(found: Examination, *, source_ids: set[str], max_boxes: int | None) -> dict[str, int]:
    return {
        "records": 1,
        "boxes": found.num_boxes,
        "clipped_boxes": found.num_clipped_boxes,
        "label_conflicts": found.num_label_conflicts,
        "empty_source_ids": int(not found.source_id),
        "repeated_source_ids": int(bool(found.source_id) and found.source_id in source_ids),
        "images_over_max_boxes": int(max_boxes is not None and found.num_boxes > max_boxes),
        "turned_images": int(found.turned),
    }
