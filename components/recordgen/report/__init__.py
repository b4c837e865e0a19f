"""``report.html``: what is in a dataset, on one page that needs nothing else.

    balance.py    how many examples each class has                          pure
    conditions.py ``label=cat and code=LEAK``: which examples fit           pure
    examples.py   the examples that a condition names, with their findings
    extraction.py their payloads as files, and an import file of them
    inspection.py records as ``recordgen inspect`` shows them
    page.py       dataset, rejects and pictures → HTML, by page.html        pure
    pictures.py   a few records of the shards → thumbnails
    render.py     a dataset's folder → its page
    units.py      sizes and times                                           pure

A page says the same for the same dataset: no times, no paths but those of the import files.
"""
