"""Metric definitions, the health and metrics server, and logging; free of TensorFlow."""
