"""What a row is on its way from the import file to the shard.

row.py      as it was read
placing.py  the hashes that order rows and assign their split
planned.py  placed in a bucket, known from before, planned
"""
