"""Features → TFRecords, without TensorFlow.

example.py   features → a serialized ``tf.train.Example``
tfrecord.py  records → framed, checksummed, compressed files, and back
boxes.py     boxes of an example
float32.py   numbers as float32 features store them
"""
