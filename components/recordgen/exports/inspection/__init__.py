"""``recordgen inspect``.

records.py     the first records of a split, as plain values; images as files
examples.py    the examples of a label, a finding or an import file, with their findings
"""
