"""Import files → rows, without TensorFlow and Beam.

Recordgen's own formats are listed in :data:`recordgen.registry.FORMATS`.
"""
