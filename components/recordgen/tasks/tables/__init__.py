"""Rows of tables, with columns that are detected or declared."""
