"""From TFRecord files to batches of example dicts: read, decode, augment, resize, pad."""
