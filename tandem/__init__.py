"""Trains an object detector and evaluates every checkpoint of it, side by side."""

__version__ = "0.1.0"
