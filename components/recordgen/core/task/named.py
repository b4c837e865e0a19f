"""The tasks by name: the only way in which the core gets one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordgen import registry
from recordgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recordgen.core.task.task import Task
    from recordgen.options import ConvertOptions

#: All tasks by name, including tasks that other packages install.
TASKS: Mapping[str, type[Task]] = registry.TASKS


def task_for(options: ConvertOptions) -> Task:
    """Return the task that ``options.task`` names; ``auto`` must be resolved before.

    Raises:
        UsageError: there is no such task, or an option does not suit it.
    """
    if options.task == "auto":
        raise UsageError("the task is not decided: detect it from the import files first")
    registry.imported("recordgen.tasks.suiting:check_suits")(options)
    return TASKS[options.task].of(options)
