"""A dataset with the files beside it, as exports read it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from recordgen import storage
from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.manifest import (
    EXAMPLES_FILE,
    LINT_FILE,
    REJECTS_FILE,
    Dataset,
    read_dataset,
)
from recordgen.core.records import RECORDS
from recordgen.errors import RecordError, SourceError
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.tasks import TASKS, Task, task_for

# A line has a uri and a message, and is shorter.
_MAX_LINE_BYTES = 1 << 16

# Errors come first: finding the first warnings after more of them would take too long.
_FINDINGS_READ = 100_000

_Line = TypeVar("_Line")


class Output:
    """A dataset and the files beside it.

    Attributes:
        root: folder or URL prefix of the files.
    """

    def __init__(self, root: str, dataset: Dataset) -> None:
        self.root = root
        self.dataset = dataset

    @classmethod
    def open(cls, place: str | os.PathLike[str]) -> Output:
        """Return the dataset at a place: a converted or written output, or a TFX Examples uri.

        Raises: SourceError: there is no finished dataset; StorageError: storage failed.
        """
        root = storage.normal(os.fspath(place))
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
        return storage.exists(self.path_of(EXAMPLES_FILE))

    def examples(self, columns: Collection[str]) -> Any:
        """Return columns of ``examples.parquet`` (pa.Table), or None if there is no such file.

        Raises: SourceError: the file is damaged.
        """
        import pyarrow as pa

        parts = list(self.example_parts(columns))
        return pa.concat_tables(parts).unify_dictionaries() if parts else None

    def example_parts(self, columns: Collection[str]) -> Iterator[Any]:
        """Yield the same in parts, which are never in memory together; none without the file."""
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
        from recordgen.core.dataset.lint import LintFinding, first_of_each

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
