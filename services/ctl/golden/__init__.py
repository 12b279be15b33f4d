"""Compares our models with stored outputs of the original; `scripts/golden FOLDER...` runs it."""
