"""Import files → a dataset: ``recordgen.convert``, ``check`` and ``plan``.

api.py                 these three functions, and ``convert_files`` for pipelines
doors.py               the same for Python: errors name options as keywords
finalize.py            the end of a run: plan and shard results → ``dataset.json``
dataframe_accessor.py  ``df.tensorflow.to_tfrecord``
"""
