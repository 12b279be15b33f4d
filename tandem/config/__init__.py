"""Reads, merges and checks pipeline.config and label maps; the only reader of text protos."""
