"""What the core knows of a task: the interface, and the values that pass through it.

No module of the core imports a task: a run gets its task with the
:class:`recordgen.core.conversion.Conversion`.
"""
