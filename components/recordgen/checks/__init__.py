"""Checks of accepted data: leaks, duplicates, contradictions, odd pictures.

Shards collect facts about each example while they are made (:mod:`recordgen.core.facts`). When all
shards are made, the checks examine all facts together. A finding changes nothing in the dataset.
"""
