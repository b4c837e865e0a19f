"""What the demos learn from: each task names its sample, see :class:`recordgen.tasks.task.Task`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recordgen.registry import OWN
from recordgen.tasks import TASKS
from recordgen.training import TrainingConfig


@dataclass(frozen=True, slots=True)
class Sample:
    """Data that shows a task, and how a model learns from it.

    Attributes:
        name: the name of the demo's pipeline.
        data: what the data are, in a few words.
        write: takes a folder and how many examples, None for all of the demo's; returns what to
            import.
        training: how to train.
        min_score: the score from which the model is good enough.
        options: how to convert, beside the task.
    """

    name: str
    data: str
    write: Callable[[str, int | None], str]
    training: TrainingConfig
    min_score: float
    options: Mapping[str, Any] = field(default_factory=dict)


def sample_of(task: str) -> Sample:
    """Return the sample of a task. Raises: UsageError: there is no such task, or it has none."""
    found: Sample = TASKS[task].declared("sample")
    return found


def tasks_of(module: str) -> list[str]:
    """Return the tasks whose samples a module writes."""
    return [name for name in OWN if (TASKS[name].sample or "").partition(":")[0] == module]
