"""Recordgen's own input formats: a module for each.

Each is a :class:`recordgen.sources.format.Format`, listed in :data:`recordgen.registry.FORMATS`.
"""
