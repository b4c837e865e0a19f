"""The interface of an input format.

A package installs a format with an entry point, whose name is the format's::

    [project.entry-points."recordgen.formats"]
    labelled_lines = "labelled_lines:LabelledLines"

It points to a subclass of :class:`Format`, or of
:class:`recordgen.formats.pictures.PictureFormat` for images with labels or boxes. Recordgen's own
formats are installed the same way (:data:`recordgen.registry.FORMATS`).

A format never decides about labels, boxes outside of their image, duplicates, secrets or access:
the task and the conversion do, alike for all formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from recordgen.core.rows.row import Adjustments, ReadItem, Row, RowBatch
from recordgen.rejects import Reject

if TYPE_CHECKING:
    import pandas as pd

    from recordgen.core.task.task import Task
    from recordgen.formats.header import Given, Head
    from recordgen.formats.import_file import Files, ImportFile, Samples
    from recordgen.formats.listing import Listing
    from recordgen.options import ConvertOptions
    from recordgen.storage.access import Access

Rows: TypeAlias = "Iterator[Row | RowBatch | Reject]"


class CsvParser(ABC):
    """Parses the lines of CSV files, as a task declares in ``csv_parser``.

    Class attributes:
        names_lists: lines may name lists of rows; then it also has the methods ``find_lists`` and
            ``read_list`` of :class:`recordgen.formats.automl_csv.VideoParser`.
    """

    names_lists: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def parse_lines(
        cls, lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
    ) -> Rows:
        """Parse the physical lines of an import file.

        Args:
            lines: without their line feeds; the first may be a header.
            source: the file's name, for rows and messages.
            task: reads the fields of annotations.
            adjusted: collects the changes that make rows usable.
            given: the options about columns.

        Yields:
            A Row for each usable line, or a RowBatch for many of them, and a Reject for each other
            line.

        Raises:
            SourceError: the file as a whole is not a CSV of rows.
            UsageError: an option does not fit its columns.
        """


class Layout(NamedTuple):
    """The columns of import files.

    Attributes:
        options: the options, with the detected columns.
        columns: pairs of a column and its type and role, as the preview shows them.
        header: whether the first line is a header.
    """

    options: ConvertOptions
    columns: Sequence[tuple[str, str]]
    header: bool


class OpenFrame(NamedTuple):
    """A DataFrame as rows.

    Attributes:
        options: the options, with the detected columns.
        rows: its rows, and their rejects and findings.
        columns: as in :class:`Layout`; None if detection knows them already.
    """

    options: ConvertOptions
    rows: Iterable[ReadItem]
    columns: Sequence[tuple[str, str]] | None = None


class OwnColumns(CsvParser):
    """A parser that finds the columns of files and DataFrames, which its task does not declare."""

    @classmethod
    @abstractmethod
    def layout(cls, files: Files, options: ConvertOptions) -> Layout:
        """Return the columns of files. Raises: SourceError, UsageError."""

    @classmethod
    @abstractmethod
    def open_frame(cls, frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
        """Return the rows of a frame, and its columns. Raises: SourceError, UsageError."""

    @classmethod
    @abstractmethod
    def wrong_role(cls, roles: Iterable[str]) -> str:
        """Return what is wrong with the roles of columns that options give, or ""."""


class Evidence(NamedTuple):
    """What shows that a source has a format.

    Attributes:
        reason: what was found and where: ``data.yaml names 2 classes``.
        task: the task of the rows; empty if the rows decide.
        documents: the files to read, relative to the listing's root, each of which can be read
            independently; ``""`` is the source itself.
        classes: the declared classes, in the order of their numbers, which they keep.
        is_weak: only a name shows it. Any other format with evidence has precedence.
        keypoints: the declared keypoints, as :func:`recordgen.formats.pictures.keypoints` returns
            them; None if there are none.
    """

    reason: str
    task: str = ""
    documents: Sequence[str] = ("",)
    classes: Sequence[str] = ()
    is_weak: bool = False
    keypoints: Mapping[str, Any] | None = None


class Format(ABC):
    """One input format. An instance has no state.

    Class attributes:
        name: its name in ``--format`` and ``dataset.json``.
        has_columns: rows have columns or keys, which ``--columns`` may name.
        has_roles: its documents hold images in columns or features, which ``--columns`` may name.
        numbered_roles: roles whose columns ``--columns`` may give by number, if it has no others.
        has_headers: its files may begin with a header.
        is_decoded: its files are texts in the encoding that the option ``encoding`` names.
        heading: what the preview calls the result of :meth:`roles`.
        how_to_label: how its rows get labels, for the message if none of them has any.
        own_lists: what the paths of the lists of splits have in common that it reads.
    """

    name: ClassVar[str]
    has_columns: ClassVar[bool] = False
    has_roles: ClassVar[bool] = False
    numbered_roles: ClassVar[Sequence[str]] = ()
    has_headers: ClassVar[bool] = False
    is_decoded: ClassVar[bool] = False
    heading: ClassVar[str] = "Columns"
    how_to_label: ClassVar[str] = "write them in the rows or name their column"
    own_lists: ClassVar[str] = ""

    @abstractmethod
    def detect(self, listing: Listing) -> Evidence | None:
        """Return what shows this format, or None.

        It may list names, and read the heads of files that are no images.

        Raises:
            SourceError: the source has this format, but cannot be read as it is.
            StorageError: storage failed.
        """

    def detect_given(self, listing: Listing, given: Given) -> Evidence | None:
        """Return what shows this format if options name columns. Raises: as :meth:`detect`."""
        return self.detect(listing)

    @abstractmethod
    def accepts(self, task: type[Task]) -> bool:
        """Return whether rows of this format can be rows of a task."""

    @abstractmethod
    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        """Yield a row for each example of a document, and a reject for each other one.

        Args:
            file: the document, and the root of its listing in ``folder``.
            task: makes annotations, and checks them.
            adjusted: collects changes and odd lines.
            given: the options about columns.

        Raises:
            SourceError: the document is unreadable or malformed as a whole.
            StorageError: storage failed.
        """

    def heads(self, files: Files, options: ConvertOptions, samples: Samples) -> Sequence[Head]:
        """Return the first rows of files from which detection infers task and columns.

        Empty if the evidence of the format says the task, or the task finds its columns itself.
        """
        return ()

    def layout(self, own: type[OwnColumns], files: Files, options: ConvertOptions) -> Layout:
        """Return the columns of files, for a task that finds them itself.

        Raises: SourceError, UsageError.
        """
        return own.layout(files, options)

    def lists(
        self, file: ImportFile, task: Task, given: Given, access: Access
    ) -> Iterable[ImportFile]:
        """Return the lists of rows that the lines of a file name."""
        return ()

    def check(self, files: Files, options: ConvertOptions) -> None:  # noqa: B027
        """Check that files hold the labels that options expect. Raises: NotUnderstoodError."""

    def roles(self, files: Files) -> Sequence[tuple[str, str]]:
        """Return what was understood about folders or documents, as pairs of a name and a role."""
        return ()


def check_declaration(name: str, found: object) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete format."""
    if not (isinstance(found, type) and issubclass(found, Format)):
        base = f"{Format.__module__}.{Format.__name__}"
        raise TypeError(f"a format is a subclass of {base} (got {found!r})")
    if (own := getattr(found, "name", None)) != name:
        raise TypeError(f"the entry point is named {name!r}, and the format {own!r}")
    if missing := sorted(found.__abstractmethods__):
        raise TypeError(f"the class {found.__name__} does not define {', '.join(missing)}")
