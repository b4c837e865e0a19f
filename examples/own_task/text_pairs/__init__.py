"""A task for Recordgen: how alike two texts are."""
