"""Benchmarks: each figure in the docs comes from one of these, as a ratio within one run."""
