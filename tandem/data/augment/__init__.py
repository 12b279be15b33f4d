"""Random changes to a training example: each is pure and takes its seed."""
