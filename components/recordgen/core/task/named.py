"""The tasks by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordgen import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recordgen.core.task.task import Task

#: All tasks by name, including tasks that other packages install.
TASKS: Mapping[str, type[Task]] = registry.TASKS
