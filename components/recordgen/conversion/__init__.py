"""Import files → a dataset: ``recordgen.convert``, ``check`` and ``plan``.

api.py                 the three calls, and what the other doors share with them
finalize.py            counts, vocabulary and warnings → ``dataset.json``
dataframe_accessor.py  ``df.tensorflow.to_tfrecord``
"""
