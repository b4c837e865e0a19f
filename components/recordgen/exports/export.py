"""What an export is: it reads a finished dataset, and gives a file, a copy or text.

Some exports write files that lie beside the shards of each dataset.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recordgen import storage
from recordgen.core.dataset.manifest import EXAMPLES_FILE, FINDINGS_FILE, LINT_FILE, REJECTS_FILE
from recordgen.core.progress import Progress
from recordgen.core.task.annotation import LABEL_FILES
from recordgen.errors import OutputExistsError
from recordgen.exports.output import Output
from recordgen.registry import EXPORTS

#: The exports that every conversion writes, and the one of each dataset from Python.
CONVERTED: Sequence[str] = ("report", "croissant", "tfdv")
WRITTEN: Sequence[str] = ("croissant",)

#: Files of ``export tfds``, which describe one state of the dataset.
TFDS_FILES = ("features.json", "dataset_info.json")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of ``recordgen export``.

    Attributes:
        output: path or URL of the file to write; None: the export's own name, beside the dataset.
        to: folder or URL prefix of the copy, for exports that copy the examples.
        split: the split to copy; None: all of them.
        overwrite: replace an existing file, and with it the answers that people added.
        allow: schemes of URLs that may be opened, in addition to the default ones; and folders and
            URL prefixes, then no others.
        verify: compare the shards with ``dataset.json``, instead of their digests there only.
        lossy: leave out the images that the format of a copy cannot hold.
        progress: receives the progress of long work.
    """

    output: str | None = None
    to: str | None = None
    split: str | None = None
    overwrite: bool = False
    allow: Sequence[str] = ()
    verify: bool = False
    lossy: bool = False
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export.

    Attributes:
        files: paths of the files that it wrote.
        text: the text to print; empty: the paths.
        values: the result as JSON; None: the paths.
        is_bad: the exit code is 1.
    """

    files: Sequence[str] = ()
    text: str = ""
    values: Any = None
    is_bad: bool = False


class Export(ABC):
    """An export, which is made without arguments.

    Attributes:
        takes: the options that it uses; any other option is an error.
    """

    takes: ClassVar[Collection[str]] = ()

    @abstractmethod
    def export(self, place: str, options: ExportOptions) -> Exported:
        """Export what is at a place, usually a finished dataset.

        Args:
            place: path or URL, as it was given; see :meth:`recordgen.exports.Output.open`.
            options: the options; those that the export does not take have their defaults.

        Raises: RecordgenError: it failed.
        """


class FileExport(Export):
    """An export of a dataset as one text file.

    Attributes:
        file: name of the file, which is written beside the dataset by default.
        has_answers: whether people edit the file; then only ``overwrite`` replaces it.
    """

    file: ClassVar[str]
    has_answers: ClassVar[bool] = False
    takes: ClassVar[Collection[str]] = ("output",)

    @abstractmethod
    def text(self, output: Output) -> str:
        """Return the content of the file."""

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Write the file.

        Raises:
            SourceError: there is no finished dataset.
            OutputExistsError: the file exists, and people may have edited it.
            StorageError: storage failed.
        """
        output = Output.open(place)
        path = options.output or storage.inside(output.root, self.file)
        if self.has_answers and not options.overwrite and storage.exists(path):
            raise OutputExistsError(
                f"{path}: this file exists, perhaps with answers that people added; use --output "
                f"FILE to write another one, or --overwrite to replace it"
            )
        storage.write_text(path, self.text(output))
        return Exported(files=(path,))


def check_declaration(name: str, export: Any) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete export."""
    if not (isinstance(export, type) and issubclass(export, Export)):
        raise TypeError(f"an export is a subclass of recordgen.exports.Export (got {export!r})")
    missing = sorted(getattr(export, "__abstractmethods__", ()))
    if issubclass(export, FileExport) and not hasattr(export, "file"):
        missing.append("file")
    if missing:
        raise TypeError(f"the class {export.__name__} does not define {', '.join(missing)}")


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
