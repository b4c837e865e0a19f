"""The output of the command in a terminal.

progress_bar.py  a live progress bar
logs.py          progress and errors as log lines, for people or for machines
quiet.py         hides messages of libraries
stopping.py      ends a command on Ctrl-C and SIGTERM
terminal.py      escapes text for a terminal
"""
