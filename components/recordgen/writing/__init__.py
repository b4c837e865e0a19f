"""``recordgen.write``: examples from Python → shards with a ``dataset.json``.

api.py             the function ``write``
shard_writer.py    records → files, in parallel
values.py          Python values → features
example_schema.py  the features that all examples have in common
"""
