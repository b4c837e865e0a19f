"""Import files → rows, without TensorFlow and Beam.

import_file.py  an import file, and the files that a pattern names
detect.py       detection of task and format, by evidence.py, header.py and conflicts.py
format.py       what an input format is; recordgen.formats has Recordgen's own
find_format.py  the format of a source, from the evidence that formats find in its listing.py
pictures.py     the base of formats whose documents describe images
readers.py      the reader of each format of each task
source.py       the source of a run: import files or a DataFrame
preview.py      a few rows as they were understood
"""
