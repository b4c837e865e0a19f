"""What a run does: its task, its settings, and the objects that read rows and payloads.

A door makes a :class:`Conversion` once (:mod:`recordgen.conversion.settings`). It is pickled to
workers, and each step passes on the parts that a function needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from recordgen.core.facts import Seen
from recordgen.core.rows.row import ReadItem
from recordgen.core.settings import Labels, PayloadSettings, Shards, Splits
from recordgen.errors import PayloadError
from recordgen.rejects import Named
from recordgen.storage import FileInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Self

    from recordgen.core.rows.columns import Columns
    from recordgen.core.rows.row import PlannedRow
    from recordgen.core.task.task import Task

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
    """A context that fetches the payloads of planned rows, remote ones ahead of time."""

    @property
    def is_far(self) -> bool:
        """Whether any payload is remote."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

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
