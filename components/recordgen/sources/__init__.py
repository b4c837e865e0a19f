"""Import files → rows. Neither TensorFlow nor Beam is needed here.

import_file.py  what an import file is, and which ones a pattern names
detect.py       which task and format it is of, by evidence.py, header.py and conflicts.py
readers.py      which reader reads which format of which task
source.py       what a run reads: import files or a DataFrame
preview.py      the first rows, as they were understood
"""
