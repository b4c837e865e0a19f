"""Import files → rows, without TensorFlow and Beam.

import_file.py  an import file, and the files that a pattern names
detect.py       detection of task and format, by evidence.py, header.py and conflicts.py
readers.py      the reader of each format of each task
source.py       the source of a run: import files or a DataFrame
preview.py      a few rows as they were understood
"""
