"""Rows on their way from the import file to the shard.

row.py      rows as they were read
placing.py  the hashes that order rows and assign their split
planned.py  placed rows, known rows, planned rows
columns.py  many rows as Arrow columns
"""
