"""The tasks by name: Recordgen's own, and tasks that other packages install.

A package installs a task with an entry point, whose name is the task's::

    [project.entry-points."recordgen.tasks"]
    text_similarity = "text_pairs.task:TextSimilarity"

It points to a subclass of :class:`recordgen.tasks.task.Task`, which declares everything else: the
readers of import files, the reading, the trainer, the measure, the sample and the page. Listing the
names imports no task; a task is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from recordgen.errors import UsageError

#: The group of entry points that install a task.
GROUP = "recordgen.tasks"

#: The import paths of Recordgen's own tasks, in the order in which they are listed.
OWN: Mapping[str, str] = {
    "image_classification": "recordgen.tasks.image_classification:ImageClassification",
    "image_multi_label": "recordgen.tasks.image_multi_label:ImageMultiLabel",
    "object_detection": "recordgen.tasks.object_detection:ObjectDetection",
    "text_classification": "recordgen.tasks.text_classification:TextClassification",
    "text_multi_label": "recordgen.tasks.text_multi_label:TextMultiLabel",
    "text_sentiment": "recordgen.tasks.text_sentiment:TextSentiment",
    "text_entities": "recordgen.tasks.text_entities:TextEntities",
    "tabular": "recordgen.tasks.tabular:Tabular",
    "video_classification": "recordgen.tasks.video_classification:VideoClassification",
    "declared": "recordgen.tasks.declared_table:Declared",
}


class UnknownTaskError(UsageError, KeyError):
    """No task has this name. It is a ``KeyError``, as mappings raise."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


class TaskRegistry(Mapping[str, Any]):
    """The classes of tasks by name, each imported when it is first used."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return the class of a task.

        Raises:
            UnknownTaskError: there is no such task.
            UsageError: two packages declare it, or it cannot be loaded; the message names them.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*OWN, *sorted(self._installed.keys() - OWN)))

    def __len__(self) -> int:
        return len(OWN.keys() | self._installed)

    def __contains__(self, name: object) -> bool:
        return name in OWN or name in self._installed

    def refresh(self) -> None:
        """Search for installed tasks again, after a package was installed into this process."""
        self._loaded.clear()
        vars(self).pop("_installed", None)

    @cached_property
    def _installed(self) -> Mapping[str, Sequence[EntryPoint]]:
        # Read when first needed: it takes the metadata of every installed package.
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=GROUP):
            found.setdefault(point.name, []).append(point)
        return found

    def _load(self, name: str) -> Any:
        points = self._installed.get(name, ())
        packages = [*(["recordgen"] if name in OWN else []), *sorted(map(_package, points))]
        if not packages:
            raise UnknownTaskError(
                f"task must be one of {', '.join(TASK_CHOICES)} (got {name!r}); for a task of "
                f"another package, install the package"
            )
        if len(packages) > 1:
            raise UsageError(
                f"the task {name!r} is declared more than once, by the packages "
                f"{' and '.join(packages)}; uninstall all but one"
            )
        if not points:
            return imported(OWN[name])
        [point] = points
        try:
            task = point.load()
            imported("recordgen.tasks.task:check_declaration")(name, task)
        except Exception as exc:  # importing another package's module may raise anything
            raise UsageError(
                f"the task {name!r} of the package {packages[0]} cannot be used ({point.value}): "
                f"{type(exc).__name__}: {exc}; fix the package, or uninstall it"
            ) from exc
        return task


def imported(path: str) -> Any:
    """Import the object at a path, ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _package(point: EntryPoint) -> str:
    return "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"


#: All tasks.
TASKS = TaskRegistry()


class _Choices(Collection[str]):
    """The values of the option ``task``: ``auto``, and the names of all tasks."""

    def __contains__(self, name: object) -> bool:
        return name == "auto" or name in TASKS

    def __iter__(self) -> Iterator[str]:
        return iter(("auto", *TASKS))

    def __len__(self) -> int:
        return 1 + len(TASKS)


TASK_CHOICES: Collection[str] = _Choices()
