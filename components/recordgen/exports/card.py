"""``README.md``: a dataset card as Hugging Face defines it, made from ``dataset.json``.

The head (between lines of ``---``) is YAML that hubs read; the rest is Markdown. What Recordgen
cannot know, such as the licence, becomes a question at the end instead of a guess.

Keys of the head: "Dataset Cards", huggingface.co/docs/hub/datasets-cards.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordgen import storage
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.annotations import ONE, PARTS, SEVERAL
from recordgen.core.task.stored import is_image, stored_features
from recordgen.exports.export import FileExport
from recordgen.exports.output import Output
from recordgen.lineage.events import dataset_name
from recordgen.options import recorded_defaults
from recordgen.tables.stored import table_of
from recordgen.tasks import TASKS

# Nobody reads a longer table.
_LABELS_SHOWN = 100
_SOURCES_SHOWN = 10

# The hub's names for tasks that label parts of an example, by the kind of payload; and the kinds of
# which it has a task of classes.
_OF_PARTS = {"image": "object-detection", "entities": "token-classification"}
_OF_CLASSES = ("image", "text", "video")

# The hub's size categories: below 10^3 examples, below 10^4, …
_SIZES = (
    *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"),
    *("1B<n<10B", "10B<n<100B", "100B<n<1T", "n>1T"),
)

# Task and seed have their own lines; columns of a table are its features, which the card lists.
_OPTIONS_OMITTED = ("task", "format", "seed", "table", "schema")

# Characters with a meaning in Markdown or HTML.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$-])")

_QUESTIONS = (
    "Under which licence may the data be used? Set `license` in the head.",
    "Who collected the data, when, and for what purpose?",
    "Who assigned the labels, and how were they checked?",
    "Does the data show or describe people? Did they agree, and how can they withdraw?",
    "What is the data not fit for, and which groups or cases does it lack?",
    "Whom should users ask or tell about errors, and how should they cite the data?",
)
_LANGUAGE_QUESTION = "In which languages are the texts? Set `language` in the head."


class Card(FileExport):
    """``README.md``, which ``convert --card`` writes as well."""

    file = "README.md"
    has_answers = True
    takes = ("output", "overwrite")

    def text(self, output: Output) -> str:
        return card_text(output.dataset)


def card_text(dataset: Dataset) -> str:
    """Return the content of ``README.md``."""
    parts = [
        *_head(dataset),
        "",
        f"# {_plain(dataset_name(dataset))}",
        "",
        f"{dataset.examples:,} examples of the task `{dataset.task}`, as TFRecords of "
        f"`tf.train.Example`.",
        *_splits(dataset),
        *_labels(dataset),
        *_features(dataset),
        *_origin(dataset),
        *_warnings(dataset),
        *_questions(dataset),
    ]
    return "\n".join(parts) + "\n"


def _head(dataset: Dataset) -> Iterator[str]:
    yield "---"
    yield f"pretty_name: {_yaml(dataset_name(dataset))}"
    category = _category(dataset)
    if category is not None:
        yield "task_categories:"
        yield f"- {category}"
    yield "size_categories:"
    yield f"- {_size_category(dataset.examples)}"
    yield "tags:"
    yield "- tfrecord"
    yield "dataset_info:"
    yield "  splits:"
    for name, split in dataset.splits.items():
        yield f"  - name: {_yaml(name)}"
        yield f"    num_bytes: {split.bytes}"
        yield f"    num_examples: {split.examples}"
    yield f"  dataset_size: {dataset.bytes}"
    yield "---"


def _category(dataset: Dataset) -> str | None:
    """Return the hub's name for the task; None if it has none, or if a table has no target."""
    if dataset.task not in TASKS:
        return None
    task = TASKS[dataset.task]
    if task.kind == "table":
        table = table_of(dataset)
        return f"tabular-{table.prediction}" if table is not None and table.prediction else None
    if task.labelling in (ONE, SEVERAL):
        return f"{task.kind}-classification" if task.kind in _OF_CLASSES else None
    return _OF_PARTS.get(task.kind) if task.labelling == PARTS else None


def _size_category(examples: int) -> str:
    digits = len(str(examples))
    return _SIZES[min(max(digits - 3, 0), len(_SIZES) - 1)]


def _splits(dataset: Dataset) -> Iterator[str]:
    rows = [
        (
            _plain(name),
            f"{split.examples:,}",
            f"{len(split.shards):,}",
            f"{split.bytes:,}",
            f"{split.assigned:,}",
        )
        for name, split in dataset.splits.items()
    ]
    yield from _section("Splits")
    yield from _table(("split", "examples", "shards", "bytes", "assigned, not named"), rows)


def _labels(dataset: Dataset) -> Iterator[str]:
    if not dataset.labels:
        return
    yield from _section("Labels")
    splits = dataset.splits
    shown = dataset.labels[:_LABELS_SHOWN]
    rows = [
        (
            str(number),
            _plain(label),
            *(f"{split.labels.get(label, 0):,}" for split in splits.values()),
        )
        for number, label in enumerate(shown)
    ]
    yield from _table(("number", "label", *map(_plain, splits)), rows)
    hidden = len(dataset.labels) - len(shown)
    if hidden:
        yield ""
        yield f"{hidden:,} more labels are in `labels.txt`."


def _features(dataset: Dataset) -> Iterator[str]:
    features = stored_features(dataset)
    if not features:
        return
    yield from _section("Features")
    rows = []
    for name, spec in features.items():
        shape = "list" if spec.shape is None else " × ".join(map(str, spec.shape)) or "one value"
        rows.append((_plain(name), "image file" if is_image(name) else spec.dtype, shape))
    yield from _table(("feature", "type", "values"), rows)


def _origin(dataset: Dataset) -> Iterator[str]:
    yield from _section("Origin")
    rows = dataset.rows
    if dataset.source:
        shown = ", ".join(_plain(_published(path)) for path in dataset.source[:_SOURCES_SHOWN])
        hidden = len(dataset.source) - _SOURCES_SHOWN
        more = f" and {hidden:,} more" if hidden > 0 else ""
        yield f"- Import files: {shown}{more}"
        yield (
            f"- Rows: {rows.read:,} read; {rows.duplicates:,} duplicates, {rows.merged:,} merged, "
            f"{rows.dropped:,} dropped, {rows.rejects:,} rejected"
        )
    else:
        yield "- Written from Python; the source is not on record."
    if dataset.reencoded:
        counts = ", ".join(f"{_plain(why)} {count:,}" for why, count in dataset.reencoded.items())
        yield f"- Images that were encoded again: {counts}"
    yield f"- Recordgen {_plain(dataset.recordgen_version)}, seed {dataset.seed}"
    yield f"- Digest: `{dataset.digest}`"
    changed = _changed(dataset.options)
    if changed:
        options = ", ".join(f"{_plain(name)}={_plain(str(it))}" for name, it in changed.items())
        yield f"- Options: {options}"


def _published(path: str) -> str:
    """Return a URL, or the name of a local file: this machine's folders are not published."""
    return posixpath.basename(path.rstrip("/")) if storage.is_local(path) else path


def _changed(options: Mapping[str, Any]) -> Mapping[str, Any]:
    defaults = recorded_defaults()
    return {
        name: value
        for name, value in options.items()
        if name not in _OPTIONS_OMITTED and value != defaults.get(name)
    }


def _warnings(dataset: Dataset) -> Iterator[str]:
    if dataset.warnings:
        yield from _section("Known issues")
        for warning in dataset.warnings:
            yield f"- {_plain(warning)}"


def _questions(dataset: Dataset) -> Iterator[str]:
    yield from _section("Open questions")
    yield "Recordgen cannot know the answers. Write them here before you publish the dataset."
    yield ""
    kind = TASKS[dataset.task].kind if dataset.task in TASKS else ""
    language = (_LANGUAGE_QUESTION,) if kind in ("text", "entities") else ()
    for question in (*_QUESTIONS, *language):
        yield f"- {question}"


def _section(title: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return text in one line, escaped so that Markdown shows it unchanged."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _yaml(text: str) -> str:
    """Return text as a YAML scalar: JSON strings are valid YAML."""
    return json.dumps(text)
