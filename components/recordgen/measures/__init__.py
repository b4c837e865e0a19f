"""Measures of what a trainer sees, and which pictures or texts are nearly the same."""
