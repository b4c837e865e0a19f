"""Segments of videos with a label."""
