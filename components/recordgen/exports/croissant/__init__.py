"""Croissant: a description of the dataset, and an index of its examples.

fields.py         names, types and parts of the format              pure
description.py    a dataset → croissant.json                        pure
index.py          shards → records.parquet; the export itself
"""
