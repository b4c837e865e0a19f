"""The interface of a task."""

from __future__ import annotations

from typing import Any

from recordgen.core.settings import TaskSettings
from recordgen.core.task.annotations import Annotations
from recordgen.core.task.examples import Examples
from recordgen.core.task.parsing import Parsing
from recordgen.core.task.payloads import Payloads


class Task(Parsing, Annotations, Payloads, Examples):
    """One task: how its rows are parsed, what they mean, their payloads, and their examples.

    An instance holds the settings that affect it.
    """

    @classmethod
    def of(cls, settings: TaskSettings) -> Task:
        """Return the task with its settings. Raises: UsageError: one does not suit the task."""
        return cls()


# Attributes that the class of an installed task must define; the rest has a default.
_NEEDED = ("kind", "noun", "expected", "columns", "uri_key", "json_keys", "features", "batch_rows")


def check_declaration(name: str, task: Any) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete task."""
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise TypeError(f"a task is a subclass of recordgen.tasks.Task (got {task!r})")
    if getattr(task, "name", None) != name:
        raise TypeError(
            f"the entry point is named {name!r}, and the task {getattr(task, 'name', None)!r}"
        )
    missing = [item for item in (*_NEEDED, "reading") if not hasattr(task, item)]
    if task.make is Task.make:
        missing.append("make")
    missing += [] if task.csv_parser or getattr(task, "json_keys", None) else ["csv_parser"]
    if missing:
        raise TypeError(f"the class {task.__name__} does not define {', '.join(missing)}")
