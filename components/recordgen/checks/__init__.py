"""Checks of accepted data: leaks, duplicates, contradictions, odd pictures.

Shards collect facts about each example while they are made. When all shards are made, the checks
examine all facts together. A finding changes nothing in the dataset.

codes.py            all checks by code: level, threshold, remedy
selection.py        selected checks, codes that fail the run, thresholds
facts.py            facts about each example, as columns
findings.py         results of checks, and a line of ``lint.jsonl``
contents.py         repeated payloads
near_pairs.py       images and texts that are nearly the same
labels.py           classes and splits
class_shares.py     the distance between two distributions of classes
pictures.py         dark, light, blurred, one-coloured and similar pictures
perceptual_hash.py  thumbnails of pictures and their hashes
neighbours.py       near-duplicates among 64-bit hashes, or by keys of any kind
texts.py            long and garbled texts, labels in their own texts
text_samples.py     facts about texts
minhash.py          similarity of texts
tables.py           odd columns of tables
target_leakage.py   columns that give a table's target away
run.py              runs the selected checks
"""
