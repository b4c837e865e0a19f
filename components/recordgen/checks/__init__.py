"""Checks of accepted data: leaks, duplicates, contradictions, odd pictures.

Shards collect facts about each example while they are made (:mod:`recordgen.core.facts`). When all
shards are made, the checks examine all facts together. A finding changes nothing in the dataset.

check.py            what a check is, and what it examines
selection.py        selected checks, codes that fail the run, thresholds
facts.py            the facts about all examples
lines.py            findings that readers of import files make
contents.py         repeated payloads
near_pairs.py       images and texts that are nearly the same
labels.py           classes and splits
class_shares.py     the distance between two distributions of classes
texts.py            long and garbled texts, labels in their own texts
images.py           single images
image_sizes.py      classes whose images have a size of their own
boxes.py            boxes
videos.py           segments of videos
tables.py           odd columns of tables
skew.py             columns that the splits distribute differently
target_leakage.py   columns that give a table's target away
run.py              runs the selected checks
"""
