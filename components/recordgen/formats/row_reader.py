"""The rows of import files, as their format and task read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from recordgen.core.rows.row import Adjustments, ReadItem, RowBatch, batched
from recordgen.formats.format import Format
from recordgen.formats.header import Given
from recordgen.formats.image_root import ImageRoot, below_root
from recordgen.formats.import_file import ImportFile
from recordgen.formats.samples import Samples
from recordgen.formats.secrets import without_url_secrets
from recordgen.options import ConvertOptions
from recordgen.registry import FORMATS
from recordgen.tasks import task_for


class RowReader:
    """Reads rows with options whose task and format are decided.

    Args:
        options: the options of the conversion.
        samples: first lines of files, which are read instead of the whole files; None if whole
            files are read.
    """

    def __init__(self, options: ConvertOptions, samples: Samples | None = None) -> None:
        self._samples = samples
        self._task = task_for(options)
        self._name = options.format  # undecided if the rows are those of a DataFrame
        self._access = options.access
        self._given = Given.of(options)
        self._images = ImageRoot.of(options)

    @cached_property
    def _format(self) -> Format:
        return FORMATS[self._name]()

    def with_lists(self, files: Sequence[ImportFile]) -> list[ImportFile]:
        """Return import files, each followed by the lists of rows that its lines name.

        Raises:
            SourceError: a list is missing or may not be read; the message has the line that names
                it.
            StorageError: storage failed.
        """
        found: dict[ImportFile, None] = {}
        for file in files:
            found[file] = None
            known = self._samples.whole(file) if self._samples is not None else file
            lists = self._format.lists(known, self._task, self._given, self._access)
            found.update(dict.fromkeys(lists))
        return list(found)

    def read_part(self, part: ImportFile | Sequence[ReadItem]) -> Iterator[ReadItem]:
        """Yield the rows of a part of :meth:`recordgen.formats.source.Source.parts`."""
        return self.read(part) if isinstance(part, ImportFile) else iter(part)

    def read(self, file: ImportFile) -> Iterator[ReadItem]:
        """Read one import file; memory does not grow with the file.

        Yields:
            The usable lines in batches, a Finding for each change in one, and a Reject for each
            other line. Blank lines and headers are skipped.

        Raises:
            SourceError: the file is missing, unreadable, or not UTF-8.
            StorageError: storage failed.
        """
        adjusted = Adjustments()
        if file.named_by is not None:
            read_list = self._task.declared("csv_parser").read_list
            rows = read_list(file, self._task, adjusted, self._given, self._access)
        else:
            known = self._samples.begun(file) if self._samples is not None else file
            rows = self._format.rows(known, self._task, adjusted, self._given)
        items = batched(rows, adjusted)
        if self._images is not None:
            items = below_root(items, file.images or self._images, self._task)
        for item in without_url_secrets(items, self._task):
            yield item.with_split(file.split) if isinstance(item, RowBatch) else item

    def read_all(self, files: Iterable[ImportFile]) -> Iterator[ReadItem]:
        """Read several import files in turn, like :meth:`read`."""
        return chain.from_iterable(map(self.read, files))
