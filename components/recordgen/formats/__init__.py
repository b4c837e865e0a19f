"""Import files → rows, without TensorFlow and Beam.

A module for each of Recordgen's own formats, listed in :data:`recordgen.registry.FORMATS`, and what
they share:

import_file.py  an import file, and the files that a pattern names
format.py       the interface of an input format
find_format.py  the format of a source, from the evidence that formats find in its listing.py
samples.py      what detection reads of a source: the first lines of files, listings of folders
detect.py       task and columns, from candidates.py, unless ambiguities.py forbid a guess
row_reader.py   the rows of files, as their format and task read them
pictures.py     the base of formats whose documents describe images
source.py       the source of a run: import files or a DataFrame
preview.py      a few rows as they were understood
"""
