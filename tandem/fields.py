"""Names of the tensors in an example dict, from the decoder to the loss.

Shapes use these words: ``height``, ``width`` in pixels; ``num_boxes`` boxes of one image, which
becomes ``max_boxes`` after padding; ``batch`` images. Boxes are (ymin, xmin, ymax, xmax),
normalised to [0, 1] by the image that they lie on. Classes are zero-based: label-map id minus one.
"""

from __future__ import annotations

IMAGE = "image"
"""[height, width, 3]; uint8 as decoded, float32 in [0, 255] after resizing."""

SOURCE_ID = "source_id"
"""[] string: ``image/source_id`` as the record has it (may be empty or repeated)."""

RECORD = "record"
"""[] string: ``path:index`` of the record, for messages."""

ORIGINAL_SIZE = "original_size"
"""[2] int32: (height, width) in pixels of the decoded image, before any augmentation."""

TRUE_SIZE = "true_size"
"""[2] int32: (height, width) in pixels of the image's content after resizing, padding excluded."""

BOXES = "boxes"
"""[num_boxes, 4] float32, normalised."""

CLASSES = "classes"
"""[num_boxes] int32, zero-based."""

WEIGHTS = "weights"
"""[num_boxes] float32: weight of each box in the loss; 0 for padding."""

IS_CROWD = "is_crowd"
"""[num_boxes] bool: a region of many objects; COCO ignores detections that lie on it."""

AREA = "area"
"""[num_boxes] float32: square pixels of the original image as the record has it; 0 when absent."""

NUM_BOXES = "num_boxes"
"""[] int32: rows that are no padding."""
