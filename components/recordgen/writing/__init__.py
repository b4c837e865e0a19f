"""``recordgen.write``: examples from Python → shards with a ``dataset.json``."""
