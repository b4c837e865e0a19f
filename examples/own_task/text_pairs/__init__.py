"""A task for Recordgen: the similarity of two texts."""
