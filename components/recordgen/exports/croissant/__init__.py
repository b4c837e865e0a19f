"""Croissant: a description of the dataset, and an index of its examples."""
