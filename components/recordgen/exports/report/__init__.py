"""``report.html``, a self-contained page about a dataset.

    balance.py         examples of each class                                        pure
    distributions.py   numbers by split → histograms, bars, a heat map               pure
    contents.py        facts and records → the charts of the page                    pure
    record_views.py    a record → a picture, a text or a row of a table              pure
    sampling.py        the records of the shards that the page shows
    finding_groups.py  findings → findings by code, with their examples              pure
    page.py            all of these → HTML, by base, page and parts.html, page.js    pure
    render.py          the export itself

The same dataset gives the same page: it has no times, and no paths except the import files.
"""
