"""What a reader finds where a checkpoint was brought to."""


def files_at(prefix):
    """The bytes of a checkpoint's files, by suffix."""
    start = len(prefix.name)
    found = prefix.parent.glob(f"{prefix.name}.*")
    return {
        path.name[start:]: path.read_bytes() for path in found if not path.name.endswith(".json")
    }
