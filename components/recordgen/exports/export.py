"""What an export is: it reads a finished dataset, and gives a file, a copy or text.

Some exports write files that lie beside the shards of each dataset.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any, ClassVar, TypeVar

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket

from recordgen import storage
from recordgen.core.dataset.lint import LintFinding, first_of_each
from recordgen.core.dataset.manifest import (
    EXAMPLES_FILE,
    FINDINGS_FILE,
    LINT_FILE,
    REJECTS_FILE,
    Dataset,
    output_of,
    read_dataset,
)
from recordgen.core.progress import Progress
from recordgen.core.records import RECORDS
from recordgen.core.task.annotation import LABEL_FILES
from recordgen.errors import RecordError, SourceError
from recordgen.options import ConvertOptions
from recordgen.registry import EXPORTS
from recordgen.rejects import Reject
from recordgen.tasks import TASKS, Task, task_for

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
        allow: schemes of URLs that may be opened, in addition to the default ones; and folders and
            URL prefixes, then no others.
        verify: compare the shards with ``dataset.json``, instead of their digests there only.
        lossy: leave out the images that the format of a copy cannot hold.
        progress: receives the progress of long work.
    """

    output: str | None = None
    to: str | None = None
    split: str | None = None
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
    """

    file: ClassVar[str]
    takes: ClassVar[Collection[str]] = ("output",)

    @abstractmethod
    def text(self, output: Output) -> str:
        """Return the content of the file."""

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Write the file.

        Raises:
            SourceError: there is no finished dataset.
            StorageError: storage failed.
        """
        output = Output.open(place)
        path = options.output or storage.inside(output.root, self.file)
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


def exported(output: Output, names: Iterable[str]) -> dict[str, Iterable[bytes]]:
    """Return the files of exports by name."""
    exports = [EXPORTS[name]() for name in names]
    return {each.file: [each.text(output).encode()] for each in exports}


def described_names() -> Sequence[str]:
    """Return the names of the files that only a finished dataset has."""
    return (*LABEL_FILES, *(EXPORTS[name].file for name in CONVERTED), *TFDS_FILES)


def no_files() -> dict[str, Iterable[bytes]]:
    """Return all files that may lie beside shards, in the order of writing, without content.

    The index is not among them: it is written into the staging folder before their contents.
    """
    found = (REJECTS_FILE, FINDINGS_FILE, LINT_FILE, EXAMPLES_FILE)
    return dict.fromkeys((*described_names(), *found), ())


# --- the dataset ---------------------------------------------------------------------------------


# A line has a uri and a message, and is shorter.
_MAX_LINE_BYTES = 1 << 20

# Errors come first: finding the first warnings after more of them would take too long.
_FINDINGS_READ = 100_000

_Line = TypeVar("_Line")


@dataclass(eq=False)
class Output:
    """A dataset and the files beside it.

    Attributes:
        root: folder or URL prefix of the files.
    """

    root: str
    dataset: Dataset

    @classmethod
    def open(cls, place: str | os.PathLike[str]) -> Output:
        """Return the dataset at a place: an output, its ``dataset.json``, or a TFX Examples uri.

        Raises: SourceError: there is no finished dataset; StorageError: storage failed.
        """
        root = output_of(storage.normal(os.fspath(place)))
        return cls(root, read_dataset(root))

    def path_of(self, file: str) -> str:
        """Return the path of a file, such as a shard, given its name in ``dataset.json``."""
        return storage.join(self.root, file)

    def records(self, file: str) -> Iterator[bytes]:
        """Yield the records of a shard. Raises: RecordError: it is damaged or missing."""
        path = self.path_of(file)
        try:
            yield from RECORDS.read(path)
        except FileNotFoundError as exc:
            raise RecordError(f"{path}: is missing, but dataset.json names it") from exc

    def has_examples(self) -> bool:
        """Return whether there is an ``examples.parquet``: conversions write it."""
        return storage.is_file(self.path_of(EXAMPLES_FILE))

    def example_parts(self, columns: Collection[str]) -> Iterator[Any]:
        """Yield columns of ``examples.parquet`` (pa.Table) in parts, which need not fit memory.

        Without the file, there are none. Raises: SourceError: the file is damaged.
        """
        from recordgen.core.facts.columns import read_examples
        from recordgen.core.rows.columns import count_groups

        path = self.path_of(EXAMPLES_FILE)
        try:
            with storage.open_read(path) as raw:
                for group in range(count_groups(raw)) or [None]:
                    yield read_examples(raw, columns, group)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as exc:
            raise SourceError(f"{path}: cannot be read: {exc}") from exc

    def rejects(self, most: int) -> Sequence[Reject]:
        """Return the first rejects. Raises: SourceError: their file is damaged."""
        return list(islice(read_lines(self.path_of(REJECTS_FILE), Reject), most))

    def findings(self, most: int) -> Sequence[LintFinding]:
        """Return the first findings of each code. Raises: SourceError: their file is damaged."""
        lines = read_lines(self.path_of(LINT_FILE), LintFinding)
        return list(first_of_each(islice(lines, _FINDINGS_READ), most))


def annotating_task(dataset: Dataset) -> Task | None:
    """Return the task that reads annotations; None if an annotation is itself the label."""
    kind = TASKS.get(dataset.task)
    if kind is None or not kind.names_payloads:
        return None
    return task_for(ConvertOptions(task=kind.name, schema=dataset.options.get("schema", "")))


def read_lines(path: str, kind: Callable[..., _Line]) -> Iterator[_Line]:
    """Yield the lines of a file of rejects or findings; none if there is no such file.

    Raises: SourceError: the file is damaged.
    """
    number = 0
    try:
        with storage.open_read(path) as file:
            while line := file.readline(_MAX_LINE_BYTES):
                number += 1
                yield kind(**json.loads(line))
    except FileNotFoundError:
        pass  # datasets written from Python have neither
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except (TypeError, ValueError) as exc:
        what = "a rejected row" if kind is Reject else "a finding"
        raise SourceError(f"{path}:{number}: not {what}: {exc}") from exc


# --- templates of texts, compiled once for all processes ------------------------------------------


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, in the user's own folder of Jinja below the temporary one.

    Compiling them anew would be a large part of the time of a small conversion. Beside the
    templates they would stay when the package is removed.
    """

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # the folder is full
            super().dump_bytecode(bucket)


def _compiled_templates() -> _CompiledTemplates | None:
    """Return the compiled templates; None if the user can have no folder of their own."""
    with suppress(OSError, RuntimeError):
        return _CompiledTemplates()
    return None


def file_text(name: str) -> str:
    """Return the text of a file in ``templates``."""
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


@cache  # it keeps templates, which take longer to load than to render
def environment(**options: Any) -> Environment:
    """Return what renders the files in ``templates``; ``options`` are further ones of Jinja."""
    found = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # a text is rendered once: optimizing costs more than it saves
        loader=PackageLoader(__package__),
        bytecode_cache=_compiled_templates(),
        **options,
    )
    # JSON strings are YAML scalars, too.
    found.filters.update(count=lambda number: f"{number:,}", json=json.dumps)
    return found
