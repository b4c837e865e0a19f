"""What is wrong with data that was accepted: leaks, duplicates, contradictions, odd pictures.

Shards note facts of each example while they are made; when all are there, checks look at all facts
together. A finding changes nothing in the dataset.

codes.py       every check by its code: how bad it is, why it matters, what to do
selection.py   which checks the user wants, which of them fail the run, their thresholds
facts.py       what is known of each example, as columns
findings.py    what checks hand back, and a line of ``lint.jsonl``
contents.py    payloads that are there twice
labels.py      classes and splits
looks.py       pictures at 32×32, and what that is too small to show
pictures.py    what pictures show: dark, light, blurred, of one colour, nearly the same
neighbours.py  near-duplicates among 64-bit hashes, or by keys of any kind
minhash.py     how much two texts share
seen_texts.py  what is noted of texts
texts.py       long and garbled texts, labels in their own texts
alike.py       images and texts that are nearly the same
run.py         runs the checks that are wanted
"""
