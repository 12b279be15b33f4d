"""From a model's raw outputs to detections: score conversion, suppression, clipping."""
