"""A shard: rows → examples, in order, in one file.

task.py   ShardTask and ShardResult: the input and output of a worker
rows.py   fetches and checks payloads, many at once
write.py  writes the examples into the file, or only checks them
"""
