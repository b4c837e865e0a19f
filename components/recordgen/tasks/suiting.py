"""Which options suit which tasks: an option that cannot act is refused, and is no remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from recordgen.core.facts import BOXES, IMAGES, MASKS, MEASURES
from recordgen.core.settings import TaskSettings
from recordgen.core.task.task import ONE, Task
from recordgen.errors import UsageError
from recordgen.options import OPTIONS, ConvertOptions
from recordgen.registry import CHECKS, OWN, TASKS
from recordgen.tables.schema import Schema

if TYPE_CHECKING:
    from recordgen.core.dataset.manifest import Dataset


class _Need(NamedTuple):
    """What an option needs to act in a task.

    Attributes:
        facts: sets of facts; the examples of the task must have all facts of one of them.
        what: the same for the error.
    """

    facts: Sequence[Set[str]]
    what: str


_FILES = _Need([{MEASURES}], "compares files, one in each row")
_LOOKS = _Need([{IMAGES, MEASURES}], "compares images, one in each row")
_IMAGES = _Need([{IMAGES}], "is for images")

#: What an option needs that does not act in all of Recordgen's tasks; of a single value, if another
#: value of the option has other needs.
NEEDS: Mapping[str, _Need] = {
    "group_by=content": _FILES,
    "group_by=near": _LOOKS,
    "duplicates": _FILES,
    **dict.fromkeys(("check", "image_size", "resize", "encode"), _IMAGES),
    "bad_boxes": _Need([{BOXES}], "is for boxes"),
    "box_orientation": _Need([{BOXES}, {MASKS}], "is for boxes and masks"),
}

# The tasks that can be stratified; the others refuse it, each with its own reason.
_STRATIFIED = frozenset(
    {"image_classification", "text_classification", "text_sentiment", "tabular", "declared"}
)

# An option in a remedy: "--group-by content keeps …".
_OPTION = re.compile(r"--([a-z-]+) ([\w:=,]+)")


def suited_task(options: ConvertOptions) -> Task:
    """Return the task that ``options.task`` names, with its settings.

    Raises: UsageError: there is no such task, or an option does not act in it.
    """
    check_suits(options)
    settings = TaskSettings(
        stratifies=options.stratify == "label",
        by_label=options.shard_by == "label",
        labels=options.labels,
        bad_boxes=options.bad_boxes,
        box_orientation=options.box_orientation,
        resize=options.resize,
        offsets=options.columns.offsets,
        table=options.inferred_table,
        schema=options.declared_schema,
    )
    task = TASKS[options.task].of(settings)
    for name in ("stratify", "shard_by"):
        if getattr(options, name) == "label" and task.labelling != ONE:
            raise UsageError(
                f"{name}=label needs one label per example, which {task.name} does not have here; "
                f"omit it"
            )
    return task


def check_suits(options: ConvertOptions) -> None:
    """Check that each given option acts in the task. Raises: UsageError."""
    for name in dict.fromkeys(key.partition("=")[0] for key in NEEDS):
        value = getattr(options, name)
        need = None if value == OPTIONS[name].default else _need_of(name, value)
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


def _need_of(name: str, value: Any) -> _Need | None:
    return NEEDS.get(f"{name}={value}") or NEEDS.get(name)


def _facts_of(task: str, schema: Schema | None) -> Set[str]:
    """Return the facts of a task's examples; some declared rows have no image, or several."""
    facts = set(TASKS[task].facts)
    if schema is not None and schema.table.only_image is None:
        facts -= {MEASURES} if schema.table.images else {MEASURES, IMAGES}
    return facts
