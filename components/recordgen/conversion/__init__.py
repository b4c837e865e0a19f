"""Import files → a dataset: ``recordgen.convert``, ``check``, ``plan`` and ``recordgen.parts``.

api.py                 these three functions, and ``convert_files`` for pipelines
parts.py               plan, work and commit of a run in parts
kept_plan.py           what such a plan keeps of options and import files
doors.py               the same for Python: errors name options as keywords
finalize.py            the end of a run: plan and shard results → ``dataset.json``
results/               what these functions return, and how it reads
dataframe_accessor.py  ``df.tensorflow.to_tfrecord``
"""
