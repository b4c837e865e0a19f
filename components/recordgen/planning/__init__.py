"""Rows → a plan: what is written, to which shard, in which order.

resolve.py       rows that share a place: duplicates, merges, parts, conflicts
decide.py        what only all rows together decide: copies, shares of classes
near.py          images that share a split because they look nearly the same
plan.py          counts of all buckets → shards, vocabulary, limits
bucket_files.py  planned rows on disk, and the byte ranges that make a shard
messages.py      what workers send one another
groups.py        rows that share a split by what they are about
appending.py     what is there already, for ``--append``
"""
