"""A finished dataset: what ``dataset.json`` says, and how labels and splits come about.

manifest.py    ``dataset.json``
vocabulary.py  labels and their numbers, ``labels.txt``
splits.py      fractions, and the split that a row is assigned
joining.py     datasets that are read as one
"""
