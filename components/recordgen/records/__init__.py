"""Features → TFRecords, without TensorFlow.

example.py   features → a serialized ``tf.train.Example``
format.py    interface of a record format: frame, write, read, count
tfrecord.py  the one record format: TFRecord
writer.py    frames → a file, compressed or not
boxes.py     boxes of an example
float32.py   numbers as float32 features store them
"""

from recordgen.records.format import RecordFormat
from recordgen.records.tfrecord import TfRecords

#: The format of every file of records.
RECORDS: RecordFormat = TfRecords()
