"""Backbones: each returns the feature maps that heads predict from."""
