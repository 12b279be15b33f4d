"""What is taller than the terminal, without its middle: the verdict and what to do next stay."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.segment import Segment, SegmentLines

_KEPT_AT_THE_END = 3  # an empty line, the next command, the runbook


def fitted(shown: RenderableType, console: Console) -> RenderableType:
    """The same where it fits."""
    lines = console.render_lines(shown, pad=False)
    most = console.height - 1  # where the cursor stands
    if len(lines) <= most or most <= _KEPT_AT_THE_END + 1:
        return shown
    head = lines[: most - _KEPT_AT_THE_END - 1]
    left_out = len(lines) - len(head) - _KEPT_AT_THE_END
    gap = [Segment(f"... {left_out} lines more; a taller window shows them")]
    return SegmentLines([*head, gap, *lines[-_KEPT_AT_THE_END:]], new_lines=True)
