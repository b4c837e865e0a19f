"""``report.html``, a self-contained page about a dataset.

The same dataset gives the same page: it has no times, and no paths except the import files.
"""
