"""Other tools' descriptions of a dataset, made from its ``dataset.json``.

croissant.json    Croissant, which dataset catalogues read: :mod:`recordgen.standards.croissant`
schema.pbtxt      TensorFlow Data Validation: :mod:`recordgen.standards.tfdv_schema`
README.md         Hugging Face's dataset card, on request: :mod:`recordgen.standards.card`
records.parquet   an index of all examples, on request: :mod:`recordgen.standards.example_index`

The texts are pure functions of a :class:`recordgen.dataset.manifest.Dataset`, so the same dataset
gives the same bytes. None of them needs the tool that reads it.
"""
