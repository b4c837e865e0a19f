"""Records at random places, for any trainer: NumPy values, without TensorFlow and PyArrow.

shards.py    the files of a split, and what ``dataset.json`` says about them
counting.py  counts of other tools' records, remembered
index.py     the length of each record
"""
