"""``report.html``: what is in a dataset, on one page that needs nothing else.

    balance.py         how many examples each class has                              pure
    conditions.py      ``label=cat and code=LEAK``: which examples fit               pure
    examples.py        the examples that a condition names, with their findings
    extraction.py      their payloads as files, and an import file of them
    inspection.py      records as ``recordgen inspect`` shows them
    distributions.py   numbers by split → histograms, bars, a heat map               pure
    contents.py        facts and records → what the page draws of them               pure
    exhibits.py        a record → a picture, a text or a row of a table              pure
    shown_records.py   which records of the shards the page needs
    shown_findings.py  findings → code by code, with their examples                  pure
    page.py            all of that → HTML, by base, page and parts.html, page.js     pure
    render.py          a dataset's folder → its page
    units.py           sizes, long texts                                             pure

A page says the same for the same dataset: no times, no paths but those of the import files.
"""
