"""`tandem status` and `tandem explain`: a verdict on runs, and the story of a checkpoint."""
