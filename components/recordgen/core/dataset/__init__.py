"""The parts of a finished dataset: manifest, vocabulary and splits.

manifest.py    ``dataset.json``
vocabulary.py  labels and their numbers, ``labels.txt``
splits.py      words of ML_USE, split fractions, ``eval_from`` and ``group_by``
joining.py     several datasets read as one
"""
