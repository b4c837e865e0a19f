"""Records at random places, for any trainer: NumPy values, without TensorFlow and PyArrow.

shards.py    the files of a split, and what ``dataset.json`` says about them
counting.py  the lengths of other tools' records, remembered
index.py     the lengths of records in ``records.npy``
files.py     the bytes of a file at any place
parse.py     a record → its values
values.py    values → NumPy
decode.py    an encoded image → pixels
scales.py    pixels → the range that a model expects
batches.py   items → batches, in an order that a seed decides
pairs.py     inputs and labels as a sequence; each task says what they are
records.py   the records of a split as a sequence
source.py    records, and what a trainer needs of them
api.py       ``recordgen.source``
"""
