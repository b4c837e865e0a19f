"""Rows → a plan: what is written, to which shard, in which order.

resolve.py       the rows of a bucket: duplicates, merges, parts, conflicts
decide.py        decisions that need all rows: copies, shares of classes
near.py          images that share a split because they look nearly the same
plan.py          counts of all buckets → shards, vocabulary, limits
bucket_files.py  planned rows on disk, and the byte ranges of each shard
messages.py      messages between the steps
groups.py        rows that share a split because they share a patient, video or session
appending.py     the existing dataset, for ``--append``
"""
