"""From detections and ground truth to metrics."""
