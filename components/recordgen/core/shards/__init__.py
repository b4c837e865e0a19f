"""A shard: rows → examples, in order, in one file."""
