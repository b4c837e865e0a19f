"""Rows → a plan: what is written, to which shard, in which order."""
