"""``recordgen.diff``: the changes from one dataset to another, and leaks between them.

    sides.py         an output, a dataset.json or a TFX Examples uri → its splits and shards
    fingerprints.py  record → hashes that identify it                              pure
    rows.py          all records of a side → columns
    matching.py      columns of both sides → pairs, unmatched rows, leaks          pure
    drift.py         labels and sizes of both sides → distances                    pure
    differences.py   the result: counts, rows on demand, JSON
    api.py           diff()
    page.py          the result as one HTML page, with page.html                   pure

Rows are 64-bit hashes in columns, never Python objects: each takes about 100 bytes plus its uri.
Two different rows are confused with a probability of n²/2⁶⁵: 10⁻⁷ for two million rows.
"""
