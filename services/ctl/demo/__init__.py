"""`tandem demo`: a small experiment from nothing to metrics, watched live."""
