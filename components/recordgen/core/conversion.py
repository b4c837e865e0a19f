"""What a run does: its task, its settings, and the objects that read rows and payloads.

A door makes a :class:`Conversion` of the options once (:mod:`recordgen.conversion.api`). It is
pickled to workers, which get no options, and each step passes on the parts that a function needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from recordgen.core.dataset.splits import EvalFrom, GroupBy, SplitFractions
from recordgen.core.dataset.vocabulary import LabelForms
from recordgen.core.facts import Seen
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.rows.row import ReadItem
from recordgen.core.task.task import Task
from recordgen.errors import PayloadError
from recordgen.rejects import Named
from recordgen.storage import FileInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from recordgen.core.rows.columns import Columns
    from recordgen.core.rows.row import PlannedRow

#: Most bytes of payloads held at the same time, unless a single payload has more.
IN_FLIGHT_BYTES = 64_000_000


class RowReader(Protocol):
    """Reads rows."""

    def read_part(self, part: Any) -> Iterator[ReadItem]:
        """Yield the rows of a part of the source, see :meth:`RowSource.parts`."""


class RowSource(Protocol):
    """The source of the rows of a run."""

    @property
    def bytes(self) -> int:
        """Size of the whole source, for the number of buckets."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the source in ``dataset.json``."""

    @property
    def classes(self) -> Sequence[str]:
        """The declared classes, in the order of their numbers; empty if it declares none."""

    def parts(self) -> list[Any]:
        """Return the parts that can be read independently, at least an empty one."""


class Content(NamedTuple):
    """The content of a payload, for comparison."""

    digest: bytes  # sha256 of its bytes
    # The downscaled image; None if images are not compared, or if it does not decode.
    picture: Seen | None = None


class Fetcher(Protocol):
    """Fetches the payloads of planned rows, remote ones ahead of time, until it is closed."""

    @property
    def is_far(self) -> bool:
        """Whether any payload is remote."""

    def start_all(self, rows: Sequence[PlannedRow]) -> Callable[[], Sequence[bytes]]:
        """Start fetching payloads; the result returns their bytes, or raises PayloadError."""

    def close(self) -> None:
        """Cancel all requests; callers that still wait for a payload get an error."""


class PayloadStore(Protocol):
    """Gives access to payloads."""

    def check_reach(self, path: str, source: str) -> None:
        """Check that a row of an import file may reach a payload. Raises: PayloadError."""

    def infos(
        self, uris: Sequence[str], sources: Sequence[str]
    ) -> Iterable[FileInfo | PayloadError]:
        """Return the size and version of each payload, or the error that refuses it.

        ``sources`` has the import file of each uri. Raises: StorageError.
        """

    def contents(self, rows: Sequence[Named]) -> Iterable[Content | PayloadError]:
        """Return the content of each payload, or the error that refuses it."""

    def alike(self, pictures: Columns) -> npt.NDArray[np.signedinteger[Any]]:
        """Return for each picture the number of the first that it is like, int [n].

        ``pictures`` are columns of measures, see :data:`recordgen.core.planning.decide.LOOKS`.
        """

    def fetcher(self, paths: Iterable[str]) -> Fetcher:
        """Return what fetches the payloads at ``paths``."""


@dataclass(frozen=True, kw_only=True)
class Splits:
    """How rows get their splits, and which rows become no example."""

    seed: int  # seed of the order of rows and of assigned splits
    fractions: SplitFractions  # shares of the splits for rows that name none
    share: EvalFrom | None  # the share of a split that moves to `eval`; None if no row moves
    # The column or pattern of groups that share a split; None if there are no groups.
    grouping: GroupBy | None
    by_content: bool  # rows of files with the same bytes share a split
    by_looks: bool  # images that look nearly the same share a split, too
    stratifies: bool  # each split gets its share of each label
    duplicates: str  # what happens to copies of a file: `keep`, `drop` or `fail`
    drops_unnamed: bool  # rows without a split are dropped if another row names one
    # Why rows in `train` and none in `eval` are refused, and the remedy; empty if they are not.
    without_eval: str = ""
    # The remedy if all rows name splits, but none `train`; empty if that is not refused.
    without_train: str = ""

    @property
    def finds_copies(self) -> bool:
        """Whether rows that name different files with the same bytes are found."""
        return self.duplicates != "keep"

    @property
    def decides_together(self) -> bool:
        """Whether all rows must be known before any is planned."""
        return self.finds_copies or self.by_looks or self.stratifies


@dataclass(frozen=True, kw_only=True)
class Labels:
    """How labels get their numbers."""

    mode: str  # one of LABEL_MODES
    vocabulary: str  # a `labels.txt` or an output whose labels keep their numbers; may be empty
    missing: str  # why rows without any label are refused, and the remedy; empty if they are not
    # What labels may be mistaken for; None if an option says that they are names, and for tables.
    forms: LabelForms | None = None


@dataclass(frozen=True, kw_only=True)
class Shards:
    """How examples are divided into files."""

    bytes: int  # target size of a shard
    by_label: bool  # each label has shards of its own
    compression: str  # `none` or `gzip`


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """What a run does."""

    task: Task
    splits: Splits
    labels: Labels
    shards: Shards  # how examples are divided into files
    payloads: PayloadSettings  # how payloads are checked and stored
    store: PayloadStore
    reader: RowReader
    max_reject_fraction: float  # the run fails above this share of rejected rows
    threads: int | None  # threads per worker; None: one per core, at least two
    recorded: Mapping[str, Any]  # the options that affect the output, as `dataset.json` has them
