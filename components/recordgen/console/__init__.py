"""What a person sees in a terminal.

summaries.py     what was planned, checked, written: as text and as JSON
progress_bar.py  the bar while a run is going on
logs.py          the same as lines of a log, for people or for machines
quiet.py         libraries' words about themselves are kept back
"""
