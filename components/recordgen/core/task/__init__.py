"""What the core knows of a task: the interface, and the values that pass through it.

No module of the core imports a task: :func:`recordgen.core.task.named.task_for` returns the one
that options name, from :data:`recordgen.registry.TASKS`.
"""
