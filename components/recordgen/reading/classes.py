"""Plan the task and the classes: which classes are read, and their numbers.

All functions are pure, as in :mod:`recordgen.reading.plan`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields

from recordgen.access.shards import ShardSet
from recordgen.core.facts import BOXES, MASKS
from recordgen.core.task.task import SEVERAL
from recordgen.errors import DataError, UsageError, did_you_mean
from recordgen.messages import listed
from recordgen.reading.options import AUTO, BALANCED, LabelOptions, ReadOptions
from recordgen.registry import OF_OTHER_RECORDS, TASKS

#: The label modes of boxes and of masks.
BOX_MODE, MASK_MODE = "boxes", "masks"

#: Images are read whatever classes their parts have.
PART_MODES = (BOX_MODE, MASK_MODE)

# Options that do not apply to boxes, to masks, whose pixels have the numbers of labels.txt, and to
# labels of whole images.
_UNFIT = {
    BOXES: ("label_mode", "weights"),
    MASKS: ("label_mode", "weights", "vocabulary", "only", "boxes", "padding"),
    "": ("boxes", "padding"),
}


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """The classes that are read, and how they are numbered and encoded.

    Attributes:
        mode: ``int``, ``binary``, ``categorical``, ``multi_hot`` or None; or one of
            :data:`PART_MODES`.
        names: the classes in their order; None if unknown.
        numbers: the number of each stored label, -1 for a skipped label; None: as stored.
        by_text: whether numbers are looked up by text, because stored numbers may differ.
        wanted: the only labels that are read, sorted; None: all.
        filters: whether each record must be checked, because some are skipped.
        counts: examples of each class that is read; None if unknown.
    """

    mode: str | None
    names: tuple[str, ...] | None
    numbers: tuple[int, ...] | None
    by_text: bool
    wanted: tuple[str, ...] | None
    filters: bool
    counts: Mapping[str, int] | None


def has_boxes(task: str) -> bool:
    """Return whether examples of a task have boxes."""
    return BOXES in TASKS[task].facts


def has_several_labels(task: str) -> bool:
    """Return whether an example of a task may have more than one label."""
    return TASKS[task].labelling == SEVERAL


def plan_task(shards: ShardSet, options: LabelOptions) -> str:
    """Return the task in ``dataset.json``, or else the given task, or that of other records."""
    dataset = shards.dataset
    # recordgen.write does not record a task.
    written = dataset.task if dataset is not None and not dataset.features else None
    return written or (OF_OTHER_RECORDS if options.task == AUTO else options.task)


def check_image_options(shards: ShardSet, options: ReadOptions, task: str) -> None:
    """Check that every option fits this task of images. Raises: UsageError."""
    what = next((each for each in (BOXES, MASKS) if each in TASKS[task].facts), "")
    given = {each.name for each in fields(options) if getattr(options, each.name) != each.default}
    if callable(options.only):
        given -= {"only"}
    if what == MASKS and options.label_mode is None:
        given -= {"label_mode"}  # the images alone
    for name in _UNFIT[what]:
        if name in given:
            raise UsageError(
                f"{name} does not apply to {what or 'labels of whole images'} ({task}); remove it"
                + (", or give another task" if shards.dataset is None else "")
            )
    if what == MASKS and shards.renumbered:
        raise UsageError(
            "the datasets number their classes differently, and masks hold the numbers; convert "
            "the later ones with --vocabulary and the labels.txt of the first"
        )


def plan_classes(shards: ShardSet, options: LabelOptions, task: str) -> ClassPlan:
    """Plan which classes of a task's examples are read, and their numbers.

    Raises:
        UsageError: there is no such class, or the number of classes is unknown.
        DataError: a class of the data is not in ``vocabulary``.
    """
    mode: str | None = options.label_mode
    if has_boxes(task):
        mode = BOX_MODE
    elif MASKS in TASKS[task].facts:
        mode = mode and MASK_MODE
    elif mode == AUTO:
        mode = "multi_hot" if has_several_labels(task) else "int"
    counts = shards.labels
    vocabulary = None if options.vocabulary is None else tuple(options.vocabulary)
    wanted = None if options.labels is None else tuple(sorted(set(options.labels)))
    if wanted is not None and vocabulary is not None:
        _known_classes("only", wanted, vocabulary)
    known = shards.dataset
    if known is None or known.label_kind == "none":
        names = vocabulary
        check_mode(mode, names)
        # An image is read even if it has no box of the classes in ``labels``.
        filters = mode not in PART_MODES and (mode is not None or wanted is not None)
        return ClassPlan(mode, names, None, vocabulary is not None, wanted, filters, None)

    stored = known.labels
    if wanted is not None:
        _known_classes("only", wanted, stored)
    chosen = set(stored if wanted is None else wanted)
    read = [name for name in (stored if counts is None else counts) if name in chosen]
    names = stored if vocabulary is None else vocabulary
    if outside := [name for name in read if name not in set(names)]:
        given = f"[{listed(names)}]"
        raise DataError(
            f"label {outside[0]!r} of {shards.split} is not in the vocabulary {given}; add it, or "
            f"exclude it with only={given}"
        )
    check_mode(mode, names)
    numbers = None
    if not shards.renumbered and (wanted is not None or vocabulary is not None):
        place = {name: number for number, name in enumerate(names)}
        numbers = tuple(place.get(name, -1) if name in chosen else -1 for name in stored)
    all_labelled = labelled_examples(shards, task) == shards.examples
    is_all = mode in PART_MODES or (wanted is None and (mode is None or all_labelled))
    is_sorted = all(file.label is not None for file in shards.files)
    filters = not (is_all or is_sorted)
    of_class = None if counts is None else {name: counts[name] for name in read}
    return ClassPlan(mode, names, numbers, shards.renumbered, wanted, filters, of_class)


def check_mode(mode: str | None, names: Sequence[str] | None) -> None:
    """Check that labels of these classes can be encoded in a mode.

    Raises: UsageError: the number of classes is unknown, or does not fit the mode.
    """
    if names is None and mode in ("categorical", "multi_hot"):
        raise UsageError(
            f"label_mode={mode!r} needs the number of classes, and no dataset.json lists them; "
            f"give vocabulary=[…]"
        )
    if names is not None and mode == "binary" and len(names) != 2:
        raise UsageError(
            f"label_mode='binary' needs two classes (got {len(names)}: [{listed(names)}]); "
            f"use 'int' or 'categorical'"
        )


def labelled_examples(shards: ShardSet, task: str) -> int | None:
    """Return the number of examples with a label; None if unknown."""
    if shards.labels is None or shards.examples is None:
        return None
    if has_several_labels(task):
        return shards.examples - shards.unlabelled
    return sum(shards.labels.values())


def class_weights(weights: str | Mapping[str, float], classes: ClassPlan) -> tuple[float, ...]:
    """Return the weight of each class, in the order of ``classes.names``.

    ``balanced``, 30 cats and 10 dogs → ``(40 / (2 · 30), 40 / (2 · 10))``: scikit-learn's rule.

    Raises: UsageError: counts or names are unknown, or a class has no weight.
    """
    if classes.names is None or (weights == BALANCED and classes.counts is None):
        raise UsageError(
            "weights need a dataset.json that counts the classes; without one, give vocabulary=[…] "
            "and a weight for each class"
        )
    if isinstance(weights, str):
        counts = {name: count for name, count in (classes.counts or {}).items() if count}
        total = sum(counts.values())
        given = {name: total / (len(counts) * count) for name, count in counts.items()}
        return tuple(given.get(name, 0.0) for name in classes.names)
    _known_classes("weights", weights, classes.names)
    read = classes.names if classes.counts is None else tuple(classes.counts)
    if missing := [name for name in read if name not in weights]:
        raise UsageError(f"weights must have one for each class (none for [{listed(missing)}])")
    return tuple(float(weights.get(name, 0.0)) for name in classes.names)


def _known_classes(name: str, given: Collection[str], known: Sequence[str]) -> None:
    there = set(known)
    for label in given:
        if label not in there:
            hint = did_you_mean(label, known, f"; there are [{listed(known)}]")
            raise UsageError(f"{name}: no class {label!r}{hint}")
