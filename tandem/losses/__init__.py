"""Losses of box codes and class logits, and the choice of hard examples: pure functions."""
