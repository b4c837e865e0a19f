"""Which options suit which tasks: an option that cannot act is refused, and is no remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

from recordgen.core.facts import IMAGES, MEASURES
from recordgen.core.task.task import ONE, Task
from recordgen.errors import UsageError
from recordgen.options import AUTO, OPTIONS, ConvertOptions, Need
from recordgen.registry import CHECKS, OWN, TASKS
from recordgen.tables.columns import Schema

if TYPE_CHECKING:
    from recordgen.core.dataset.manifest import Dataset


# The tasks that can be stratified; the others refuse it, each with its own reason.
_STRATIFIED = frozenset(
    {"image_classification", "text_classification", "text_sentiment", "tabular", "declared"}
)

# An option in a remedy: "--group-by content keeps …".
_OPTION = re.compile(r"--([a-z-]+) ([\w:=,]+)")


def task_for(options: ConvertOptions) -> Task:
    """Return the task that ``options.task`` names, with its settings.

    Raises: UsageError: it is ``auto``, there is no such task, or an option does not act in it.
    """
    if options.task == AUTO:
        raise UsageError("the task is not decided: detect it from the import files first")
    check_suits(options)
    task: Task = TASKS[options.task].of(options)
    for name in ("stratify", "shard_by"):
        if getattr(options, name) == "label" and task.labelling != ONE:
            raise UsageError(
                f"{name}=label needs one label per example, which {task.name} does not have here; "
                f"omit it"
            )
    return task


def check_suits(options: ConvertOptions) -> None:
    """Check that each given option acts in the task. Raises: UsageError."""
    for name, declared in OPTIONS.items():
        value = getattr(options, name)
        need = None if value == declared.default else _need_of(name, value)
        if need and not _acts(name, value, options.task, options.declared_schema):
            others = [task for task in OWN if _acts(name, value, task, None)]
            raise UsageError(
                f"{name}={value} {need.what}, so it does not act in the task {options.task}; omit "
                f"it (tasks with it: {', '.join(others)})"
            )


def remedies_of(code: str, dataset: Dataset | None) -> str:
    """Return what helps against findings of a code; no option that does not suit the task.

    ``dataset``: has the findings; None if it is unknown.
    """
    check = CHECKS.get(code)
    if check is None or dataset is None:
        return "; ".join(() if check is None else check.remedies)
    text = str(dataset.options.get("schema", ""))
    schema = Schema.from_json(text) if text else None
    return "; ".join(
        remedy
        for remedy in check.remedies
        if all(_acts(*option, dataset.task, schema) for option in options_in(remedy))
    )


def options_in(remedy: str) -> Iterator[tuple[str, str]]:
    """Yield the options that a remedy names, with their values."""
    for name, value in _OPTION.findall(remedy):
        yield name.replace("-", "_"), value


def _acts(name: str, value: Any, task: str, schema: Schema | None) -> bool:
    """Return whether an option acts in a task; the code of another package decides for its own."""
    if task not in OWN:
        return True
    if name == "stratify":
        return task in _STRATIFIED
    need = _need_of(name, value)
    return need is None or any(facts <= _facts_of(task, schema) for facts in need.facts)


def _need_of(name: str, value: Any) -> Need | None:
    needs = OPTIONS[name].needs
    return needs.get(str(value)) or needs.get("")


def _facts_of(task: str, schema: Schema | None) -> Set[str]:
    """Return the facts of a task's examples; some declared rows have no image, or several."""
    facts = set(TASKS[task].facts)
    if schema is not None and schema.table.only_image is None:
        facts -= {MEASURES} if schema.table.images else {MEASURES, IMAGES}
    return facts
