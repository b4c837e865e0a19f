"""Texts with labels, or with a sentiment."""
