"""Plug-ins by name: Recordgen's own, and the ones that other packages install.

A :class:`Registry` has the names of one group. A package installs a plug-in with an entry point,
whose name is the plug-in's::

    [project.entry-points."recordgen.tasks"]
    text_similarity = "text_pairs.task:TextSimilarity"

Recordgen's own are in a table of import paths. Listing the names imports no plug-in; it is imported
when it is first used.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from recordgen.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The import paths of Recordgen's own tasks, in the order in which they are listed.
OWN: Mapping[str, str] = {
    "image_classification": "recordgen.tasks.images.task:ImageClassification",
    "image_multi_label": "recordgen.tasks.images.task:ImageMultiLabel",
    "object_detection": "recordgen.tasks.object_detection.task:ObjectDetection",
    "image_segmentation": "recordgen.tasks.image_segmentation.task:ImageSegmentation",
    "text_classification": "recordgen.tasks.texts.task:TextClassification",
    "text_multi_label": "recordgen.tasks.texts.task:TextMultiLabel",
    "text_sentiment": "recordgen.tasks.texts.task:TextSentiment",
    "text_entities": "recordgen.tasks.texts.entities:TextEntities",
    "tabular": "recordgen.tasks.tables.task:Tabular",
    "video_classification": "recordgen.tasks.video_classification.task:VideoClassification",
    "declared": "recordgen.tasks.tables.task:Declared",
}

#: The task of rows whose columns a schema declares.
OF_SCHEMAS = "declared"

#: The task of records for which neither a dataset nor an option says one.
OF_OTHER_RECORDS = "image_classification"

#: The format of folders whose paths the option ``layout`` describes.
OF_LAYOUTS = "folder_layout"

#: The import paths of Recordgen's own input formats; of weak evidence, the first counts.
OWN_FORMATS: Mapping[str, str] = {
    "coco": "recordgen.formats.coco:Coco",
    "yolo": "recordgen.formats.yolo:Yolo",
    "pascal_voc": "recordgen.formats.pascal_voc:PascalVoc",
    "mask_folders": "recordgen.formats.mask_folders:MaskFolders",
    "hugging_face": "recordgen.formats.hugging_face:HuggingFace",
    "cvat": "recordgen.formats.cvat:Cvat",
    "labelme": "recordgen.formats.labelme:LabelMe",
    "create_ml": "recordgen.formats.create_ml:CreateMl",
    "label_studio": "recordgen.formats.label_studio:LabelStudio",
    "open_images": "recordgen.formats.open_images:OpenImages",
    "via": "recordgen.formats.via:Via",
    "dota": "recordgen.formats.dota:Dota",
    "webdataset": "recordgen.formats.webdataset:WebDataset",
    "tfrecord": "recordgen.formats.tfrecord:TfRecordFiles",
    "parquet": "recordgen.formats.parquet:Parquet",
    "named_records": "recordgen.formats.record_files:RecordFiles",
    "conll": "recordgen.formats.conll:Conll",
    "iob": "recordgen.formats.conll:Sentences",
    "csv": "recordgen.formats.line_files:CsvFile",
    "jsonl": "recordgen.formats.line_files:JsonLines",
    "text_folder": "recordgen.formats.class_folders:TextFolder",
    "folder": "recordgen.formats.class_folders:ImageFolder",
    OF_LAYOUTS: "recordgen.formats.folder_layout:FolderLayout",
}

#: What documents of own formats end with. A single file with another end is of another format, so
#: these need not be imported for it.
DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("mask_folders", "text_folder", "folder", OF_LAYOUTS), ()),
    **dict.fromkeys(("coco", "labelme", "create_ml", "label_studio"), (".json",)),
    **dict.fromkeys(("pascal_voc", "cvat"), (".xml",)),
    **dict.fromkeys(("dota", "iob"), (".txt",)),
    "conll": (
        *(".conll", ".txt", ".tsv", ".iob", ".iob2", ".bio", ".bioes", ".bmes", ".ner"),
        *(".train", ".dev", ".valid", ".test", ".testa", ".testb"),
        *("train", "dev", "test"),  # WikiANN's files
    ),
    "yolo": (".yaml", ".yml", ".txt", ".names", ".labels"),
    "hugging_face": ("metadata.jsonl", "metadata.csv"),
    "open_images": (".csv",),
    "via": (".json", ".csv"),
    "webdataset": (".tar",),
    "parquet": (".parquet",),
    "named_records": (".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".tar"),
}

#: The import paths of Recordgen's own exports, in the order in which they are listed.
OWN_EXPORTS: Mapping[str, str] = {
    "report": "recordgen.exports.report.render:Report",
    "croissant": "recordgen.exports.descriptions:Croissant",
    "tfdv": "recordgen.exports.descriptions:Tfdv",
    "lineage": "recordgen.exports.lineage:Lineage",
    "tfds": "recordgen.exports.tfds:Tfds",
    "parquet": "recordgen.exports.parquet:Parquet",
    "webdataset": "recordgen.exports.webdataset:WebDataset",
    "arrayrecord": "recordgen.exports.tfds:ArrayRecord",
    "folder": "recordgen.exports.folder:Folder",
    "automl": "recordgen.exports.automl:AutoMl",
    "coco": "recordgen.exports.coco:Coco",
    "yolo": "recordgen.exports.yolo:Yolo",
}

#: The import paths of Recordgen's own checks, in the order in which they run and in which
#: docs/lint.md describes them. A class has the name of its code: ``NEAR_LEAK`` is ``NearLeak``.
OWN_CHECKS: Mapping[str, str] = {
    code: f"recordgen.checks.{module}:{code.title().replace('_', '')}"
    for module, codes in (
        ("copies", ("LEAK", "CONFLICT", "DUPLICATE", "NEAR_LEAK", "NEAR_DUPLICATE")),
        ("examples", ("DARK", "LIGHT", "BLURRED", "ONE_COLOUR", "TINY", "ODD_RATIO")),
        ("examples", ("COLOUR_PROFILE", "FRAMES", "MOJIBAKE")),
        ("examples", ("BAD_BOX", "TINY_BOX", "WHOLE_IMAGE_BOX", "DOUBLE_BOX")),
        ("tables", ("ODD_COLUMN", "GIVE_AWAY", "OUTLIER", "SKEW")),
        ("labels", ("JOINED_FILES", "SKIPPED", "MISSING_CLASS", "FEW_EXAMPLES", "IMBALANCE")),
        ("labels", ("LABEL_DRIFT", "LOOK_ALIKES", "UNLABELLED", "NO_EVAL", "MIXED_SPLITS")),
    )
    for code in codes
}

_Plugin = TypeVar("_Plugin")


class UnknownNameError(UsageError, KeyError):
    """No plug-in has this name. It is a ``KeyError``, as mappings raise."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


class Registry(Mapping[str, _Plugin], Generic[_Plugin]):
    """The plug-ins of one group by name, each imported when it is first used.

    Args:
        group: the group of entry points that install a plug-in, such as ``recordgen.tasks``.
        own: the import paths of Recordgen's own by name, ``package.module:name``, in the order in
            which they are listed.
        noun: what messages call a plug-in, such as ``task``.
        check: import path of a function that takes a name and the object of its entry point, and
            raises an error, usually a TypeError, if the object cannot be used.
    """

    def __init__(self, group: str, own: Mapping[str, str], noun: str, *, check: str = "") -> None:
        self.group = group
        self.own = own
        self.noun = noun
        self._check = check
        self._loaded: dict[str, _Plugin] = {}

    def __getitem__(self, name: str) -> _Plugin:
        """Return the plug-in with this name.

        Raises:
            UnknownNameError: there is none.
            UsageError: two packages declare it, or it cannot be loaded; the message names them.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self.own, *sorted(self._installed.keys() - self.own)))

    def __len__(self) -> int:
        return len(self.own.keys() | self._installed)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._installed

    def refresh(self) -> None:
        """Search for installed plug-ins again, after a package was installed into this process."""
        self._loaded.clear()
        vars(self).pop("_installed", None)
        _entry_points.cache_clear()

    @cached_property
    def _installed(self) -> Mapping[str, Sequence[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in _entry_points(tuple(sys.path)).select(group=self.group):
            found.setdefault(point.name, []).append(point)
        return found

    def _load(self, name: str) -> Any:
        points = self._installed.get(name, ())
        packages = [*(["recordgen"] if name in self.own else []), *sorted(map(_package, points))]
        if not packages:
            raise UnknownNameError(
                f"{self.noun} must be one of {', '.join(self)} (got {name!r}); for one of "
                f"another package, install the package"
            )
        if len(packages) > 1:
            raise UsageError(
                f"the {self.noun} {name!r} is declared more than once, by the packages "
                f"{' and '.join(packages)}; uninstall all but one"
            )
        if not points:
            return imported(self.own[name])
        [point] = points
        try:
            plugin = point.load()
            if self._check:
                imported(self._check)(name, plugin)
        except Exception as exc:  # importing another package's module may raise anything
            raise UsageError(
                f"the {self.noun} {name!r} of the package {packages[0]} cannot be used "
                f"({point.value}): {type(exc).__name__}: {exc}; fix the package, or uninstall it"
            ) from exc
        return plugin


def has_plug_ins() -> bool:
    """Return whether other packages have tasks, formats, checks or exports."""
    registries: Sequence[Registry[Any]] = (TASKS, FORMATS, CHECKS, EXPORTS)
    return any(set(registry) - registry.own.keys() for registry in registries)


@lru_cache(maxsize=1)
def _entry_points(_: tuple[str, ...]) -> Any:
    """Return the entry points of all groups; reading all packages' metadata takes milliseconds."""
    from importlib.metadata import entry_points

    return entry_points()


def imported(path: str) -> Any:
    """Import the object at a path, ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _package(point: EntryPoint) -> str:
    return "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"


#: The classes of all tasks: subclasses of :class:`recordgen.core.task.task.Task`.
TASKS: Registry[Any] = Registry(
    "recordgen.tasks", OWN, "task", check="recordgen.core.task.task:check_declaration"
)

#: The classes of all input formats: subclasses of :class:`recordgen.formats.format.Format`.
FORMATS: Registry[Any] = Registry(
    "recordgen.formats", OWN_FORMATS, "format", check="recordgen.formats.format:check_declaration"
)

#: The classes of all exports: subclasses of :class:`recordgen.exports.Export`.
EXPORTS: Registry[Any] = Registry(
    "recordgen.exports", OWN_EXPORTS, "export", check="recordgen.exports.export:check_declaration"
)

#: The classes of all checks by code: subclasses of :class:`recordgen.checks.check.Check`.
CHECKS: Registry[Any] = Registry(
    "recordgen.checks", OWN_CHECKS, "check", check="recordgen.checks.check:check_declaration"
)


# Chains list the names of their last map first.
_AUTO = {"auto": None}

#: The values of an option that names a plug-in: ``auto``, and all names of its group.
TASK_CHOICES: Collection[str] = ChainMap(cast("Any", TASKS), _AUTO)
FORMAT_CHOICES: Collection[str] = ChainMap(cast("Any", FORMATS), _AUTO)
