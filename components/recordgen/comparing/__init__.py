"""``recordgen.diff``: what changed from one dataset to another, and what leaked.

    sides.py         an output, a dataset.json or a TFX Examples uri → its splits and shards
    fingerprints.py  record → what tells it from others                            pure
    rows.py          all records of a side → columns
    matching.py      columns of both → pairs, what is left, leaks                  pure
    drift.py         labels and sizes of both → distances                          pure
    differences.py   the result: counts, rows on demand, JSON
    api.py           diff()
    page.py          the result as one HTML page, by page.html                     pure

Rows are 64-bit hashes in columns, never Python objects: each takes some 100 bytes, and its uri. Two
different rows are taken for one with a probability of n²/2⁶⁵: 10⁻⁷ for two million rows.
"""
