"""Is this run all right, whose fault is it if not, and what now? Facts in, findings out: pure."""
