"""A shard: its rows → examples, in order, in one file.

task.py   what a worker gets, and what it hands back
rows.py   payloads fetched and checked, many at once
write.py  examples → the file, or → nowhere when they are only checked
"""
