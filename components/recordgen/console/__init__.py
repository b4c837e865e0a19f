"""The output of the command in a terminal."""
