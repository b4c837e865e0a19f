"""Checks of accepted data: leaks, duplicates, contradictions, odd pictures.

Shards collect facts about each example while they are made. When all shards are made, the checks
examine all facts together. A finding changes nothing in the dataset.

codes.py       all checks by code: level, threshold, remedy
selection.py   selected checks, codes that fail the run, thresholds
facts.py       facts about each example, as columns
findings.py    results of checks, and a line of ``lint.jsonl``
contents.py    repeated payloads
labels.py      classes and splits
looks.py       32×32 thumbnails of pictures, and measures that need more pixels
pictures.py    dark, light, blurred, one-coloured and similar pictures
neighbours.py  near-duplicates among 64-bit hashes, or by keys of any kind
minhash.py     similarity of texts
seen_texts.py  facts about texts
texts.py       long and garbled texts, labels in their own texts
alike.py       images and texts that are nearly the same
run.py         runs the selected checks
"""
