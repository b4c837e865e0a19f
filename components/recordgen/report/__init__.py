"""``report.html``, a self-contained page about a dataset, and ``recordgen inspect``.

    balance.py         examples of each class                                        pure
    conditions.py      ``label=cat and code=LEAK`` → a mask of the examples          pure
    examples.py        the examples that match a condition, with their findings
    extraction.py      their payloads as files, and an import file for them
    inspection.py      records as ``recordgen inspect`` shows them
    distributions.py   numbers by split → histograms, bars, a heat map               pure
    contents.py        facts and records → the charts of the page                    pure
    exhibits.py        a record → a picture, a text or a row of a table              pure
    shown_records.py   the records of the shards that the page shows
    shown_findings.py  findings → findings by code, with their examples              pure
    page.py            all of these → HTML, by base, page and parts.html, page.js    pure
    render.py          a dataset's folder → its page
    units.py           sizes, long texts                                             pure

The same dataset gives the same page: it has no times, and no paths except the import files.
"""
