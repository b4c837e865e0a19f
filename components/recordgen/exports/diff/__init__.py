"""``recordgen.diff``: join the ``examples.parquet`` of two datasets; no record is read.

OLD  a.jpg  cat  train  9f86…    NEW  a.jpg  dog  test  9f86…   →  changed: label, split
OLD  b.jpg  cat  train  03ac…    NEW  c.jpg  cat  test  03ac…   →  removed, added, and a leak
"""
