"""`tandem store`: a run folder as people see it and look after it."""
