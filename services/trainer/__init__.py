"""The trainer process: settings, wiring, the step loop and its side jobs."""
