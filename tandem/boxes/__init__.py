"""Geometry, coding, anchors, matching and training targets of boxes: pure functions of tensors."""
