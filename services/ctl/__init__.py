"""The `tandem` command: what a person runs by hand."""
