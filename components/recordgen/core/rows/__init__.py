"""Rows on their way from the import file to the shard.

row.py      rows as they were read
picture.py  an image as a document of another tool describes it
details.py  what such a document says of an object besides its label and its box
placing.py  the hashes that order rows and assign their split
planned.py  placed rows, known rows, planned rows
columns.py  many rows as Arrow columns
"""
