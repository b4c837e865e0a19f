"""Rows on their way from the import file to the shard."""
