"""A run on an output: staging, progress, commit, resume."""
