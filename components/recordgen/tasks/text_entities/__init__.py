"""Texts with entities: labelled spans."""
