"""``README.md``: a dataset card as Hugging Face defines it, made from ``dataset.json``.

The head (between lines of ``---``) is YAML that hubs read; the rest is Markdown. What Recordgen
cannot know, such as the licence, becomes a question at the end instead of a guess.

Keys of the head: "Dataset Cards", huggingface.co/docs/hub/datasets-cards.
"""

from __future__ import annotations

import posixpath
import re

from recordgen import storage
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.facts import BOXES, MASKS, TEXTS
from recordgen.core.task.annotation import is_image, stored_features
from recordgen.core.task.task import PARTS
from recordgen.exports.export import FileExport, Output
from recordgen.exports.templates import environment
from recordgen.lineage import dataset_name
from recordgen.options import recorded_defaults
from recordgen.tables.columns import table_of
from recordgen.tasks import TASKS

# The hub's names for tasks that label parts of an example, by a fact of such examples; and for
# tasks that label whole ones, by the kind of payload.
_OF_PARTS = {BOXES: "object-detection", MASKS: "image-segmentation", TEXTS: "token-classification"}
_OF_CLASSES = {kind: f"{kind}-classification" for kind in ("image", "text", "video")}

# Task and seed have their own lines; columns of a table are its features, which the card lists.
_OPTIONS_OMITTED = ("task", "format", "seed", "table", "schema")

# Characters with a meaning in Markdown or HTML.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$-])")


class Card(FileExport):
    """``README.md``."""

    file = "README.md"
    has_answers = True
    takes = ("output", "overwrite")

    def text(self, output: Output) -> str:
        dataset, defaults = output.dataset, recorded_defaults()
        texts = environment()
        texts.filters.update(plain=_plain, published=_published)
        return texts.get_template("card.md").render(
            dataset=dataset,
            name=dataset_name(dataset),
            category=_category(dataset),
            features=[
                (name, "image file" if is_image(name) else spec.dtype, spec.shape)
                for name, spec in stored_features(dataset).items()
            ],
            options={
                name: value
                for name, value in dataset.options.items()
                if name not in _OPTIONS_OMITTED and value != defaults.get(name)
            },
            has_language=dataset.task in TASKS and TEXTS in TASKS[dataset.task].facts,
        )


def _category(dataset: Dataset) -> str | None:
    """Return the hub's name for the task; None if it has none, or if a table has no target."""
    if dataset.task not in TASKS:
        return None
    task, table = TASKS[dataset.task], table_of(dataset)
    if table is not None:
        return f"tabular-{table.prediction}" if table.prediction and not table.images else None
    if task.labelling == PARTS:
        return next((name for fact, name in _OF_PARTS.items() if fact in task.facts), None)
    return _OF_CLASSES.get(task.kind) if task.labelling else None


def _published(path: str) -> str:
    """Return a URL, or the name of a local file: this machine's folders are not published."""
    return posixpath.basename(path.rstrip("/")) if storage.is_local(path) else path


def _plain(text: str) -> str:
    """Return text in one line, escaped so that Markdown shows it unchanged."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
