"""Which options suit which tasks: an option that cannot act is refused, and is no remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from recordgen.core.settings import TaskSettings
from recordgen.core.task.annotations import ONE
from recordgen.core.task.task import Task
from recordgen.errors import UsageError
from recordgen.options import OPTIONS, ConvertOptions
from recordgen.registry import CHECKS, OWN, TASKS
from recordgen.tables.schema import Schema

if TYPE_CHECKING:
    from recordgen.core.dataset.manifest import Dataset

_IMAGE_TASKS = frozenset(
    {"image_classification", "image_multi_label", "object_detection", "image_segmentation"}
)
_TEXT_TASKS = frozenset(
    {"text_classification", "text_multi_label", "text_sentiment", "text_entities"}
)
# Tables whose rows have one image, or several; rows without any are like those of ``tabular``.
_ONE_IMAGE, _SEVERAL_IMAGES, _NO_IMAGE = "declared", "declared_images", "tabular"

# A task of another package, whose own code decides about options.
_OTHER = ""


class _Suit(NamedTuple):
    """The tasks in which an option acts.

    Attributes:
        what: what the option needs, for the error.
    """

    tasks: frozenset[str]
    what: str

    def suits(self, group: str) -> bool:
        return group == _OTHER or group in self.tasks


_FILES = _Suit(_IMAGE_TASKS | _TEXT_TASKS | {_ONE_IMAGE}, "compares files, one in each row")
_LOOKS = _Suit(_IMAGE_TASKS | {_ONE_IMAGE}, "compares images, one in each row")
_IMAGES = _Suit(_IMAGE_TASKS | {_ONE_IMAGE, _SEVERAL_IMAGES}, "is for images")
_DRAWN = _Suit(frozenset({"object_detection", "image_segmentation"}), "is for boxes and masks")
_BOXES = _Suit(frozenset({"object_detection"}), "is for boxes")

#: The tasks of each option that does not act in all of Recordgen's tasks; of a single value, if
#: another value of the option has other tasks.
SUITS: Mapping[str, _Suit] = {
    "group_by=content": _FILES,
    "group_by=near": _LOOKS,
    "duplicates": _FILES,
    **dict.fromkeys(
        ("check", "image_size", "resize", "encode"),
        _IMAGES,
    ),
    "bad_boxes": _BOXES,
    "box_orientation": _DRAWN,
}

# The same for an option whose tasks refuse it themselves, each with its own reason.
_REFUSED_BY_TASKS: Mapping[str, _Suit] = {
    "stratify": _Suit(
        frozenset({"image_classification", "text_classification", "text_sentiment"})
        | {_ONE_IMAGE, _SEVERAL_IMAGES, _NO_IMAGE},
        "needs one label per example",
    )
}

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
    for name in dict.fromkeys(key.partition("=")[0] for key in SUITS):
        value = getattr(options, name)
        if value == OPTIONS[name].default:
            continue
        suit = _suit(name, value)
        if suit is not None and not suit.suits(_group(options.task, options.declared_schema)):
            found = [task for task in OWN if task in suit.tasks]
            raise UsageError(
                f"{name}={value} {suit.what}, so it does not act in the task {options.task}; omit "
                f"it (tasks with it: {', '.join(found)})"
            )


def remedies_of(code: str, dataset: Dataset | None) -> str:
    """Return what helps against findings of a code; no option that does not suit the task.

    ``dataset``: has the findings; None if it is unknown.
    """
    check = CHECKS.get(code)
    group = _OTHER
    if dataset is not None:
        schema = str(dataset.options.get("schema", ""))
        group = _group(dataset.task, Schema.from_json(schema) if schema else None)
    shown = [] if check is None else [r for r in check.remedies if _acts(r, group)]
    return "; ".join(shown)


def options_in(remedy: str) -> Iterator[tuple[str, str]]:
    """Yield the options that a remedy names, with their values."""
    for name, value in _OPTION.findall(remedy):
        yield name.replace("-", "_"), value


def _acts(remedy: str, group: str) -> bool:
    suits = [_suit(*each) or _REFUSED_BY_TASKS.get(each[0]) for each in options_in(remedy)]
    return all(suit is None or suit.suits(group) for suit in suits)


def _suit(name: str, value: Any) -> _Suit | None:
    return SUITS.get(f"{name}={value}") or SUITS.get(name)


def _group(task: str, schema: Schema | None) -> str:
    """Return a task's name in :data:`SUITS`, or :data:`_OTHER`."""
    if task != "declared" or schema is None:
        return task if task in OWN else _OTHER
    table = schema.table
    if table.only_image is not None:
        return _ONE_IMAGE
    return _SEVERAL_IMAGES if table.images else _NO_IMAGE
