"""The files beside the shards of a dataset: names of all of them, and contents of the exports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recordgen.core.dataset.manifest import EXAMPLES_FILE, FINDINGS_FILE, LINT_FILE, REJECTS_FILE
from recordgen.core.task.annotation import LABEL_FILES
from recordgen.exports.export import FileExport
from recordgen.exports.output import Output
from recordgen.registry import EXPORTS

#: The exports that every conversion writes, and the one of each dataset from Python.
CONVERTED: Sequence[str] = ("report", "croissant", "tfdv")
WRITTEN: Sequence[str] = ("croissant",)

#: Files of ``export tfds``, which describe one state of the dataset.
TFDS_FILES = ("features.json", "dataset_info.json")


def file_export(name: str) -> FileExport:
    """Return one of Recordgen's own exports that write a file."""
    found: FileExport = EXPORTS[name]()
    return found


def exported(output: Output, names: Iterable[str]) -> dict[str, Iterable[bytes]]:
    """Return the files of exports by name."""
    return {each.file: [each.text(output).encode()] for each in map(file_export, names)}


def described_names() -> Sequence[str]:
    """Return the names of the files that only a finished dataset has."""
    described = [each.file for each in map(file_export, CONVERTED)]
    return (*LABEL_FILES, *described, *TFDS_FILES)


def no_files() -> dict[str, Iterable[bytes]]:
    """Return all files that may lie beside shards, in the order of writing, without content.

    The index is not among them: it is written into the staging folder before their contents.
    """
    found = (REJECTS_FILE, FINDINGS_FILE, LINT_FILE, EXAMPLES_FILE)
    return dict.fromkeys((*described_names(), *found), ())
