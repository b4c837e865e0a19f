"""What a worker gets to make a shard, and what it hands back."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import PIL
import simplejpeg

from recordgen.dataset.manifest import ImageStats, Shard, shard_file
from recordgen.dataset.vocabulary import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.rows.planned import PlannedRow
from recordgen.tasks.task import Made
from recordgen.version import __version__

# What makes bytes of pixels, and gzip of bytes: other versions may make others.
_ENCODERS = (PIL.__version__, simplejpeg.__version__, zlib.ZLIB_RUNTIME_VERSION)


#: Called now and then with (examples, rejects, payload bytes) of the shard so far.
OnProgress = Callable[[int, int, int], None]


class Planned(Protocol):
    """What a shard is made of, in the order in which it is written."""

    @property
    def payload_bytes(self) -> int:
        """What the payloads take."""

    def identity(self, vocabulary: Vocabulary, options: ConvertOptions) -> Iterable[bytes] | None:
        """Return what decides, beside the options, what becomes of them; None: that is not known.

        Import files and lines are left out, which only rejects name.
        """

    def renumbered(self, rejects: Sequence[Reject]) -> Sequence[Reject]:
        """Return rejects of the same payloads with the import files and lines that name them."""

    def frames(
        self, tally: Tally, vocabulary: Vocabulary, options: ConvertOptions, threads: int
    ) -> Iterator[Sequence[bytes]]:
        """Yield framed records, each in pieces, or several at once; the tally is told of each."""


@dataclass(frozen=True)
class ShardTask:
    """One shard to write.

    Attributes:
        split: its split.
        label: the one label of all its rows, if it is sharded by label; see :class:`Shard`.
        index: its number in the split.
        count: number of shards in the split.
        rows: what it is made of.
    """

    split: str
    label: str | None
    index: int
    count: int
    rows: Planned

    def file(self, compression: str) -> str:
        """Return the shard's path inside the output."""
        return shard_file(self.split, self.index, self.count, compression)

    def fingerprint(self, vocabulary: Vocabulary, options: ConvertOptions) -> str:
        """Return the sha256 (hex) of all that decides what becomes of the shard.

        Equal fingerprints, equal bytes and results. Empty if storage cannot tell a payload from one
        that replaced it: then nothing is known.
        """
        # How many rejects a run may have decides whether it succeeds, but not what is written.
        recorded = {**options.recorded(), "max_reject_fraction": None}
        place = [self.split, self.label, self.index, self.count]
        said = hashlib.sha256(json.dumps([__version__, _ENCODERS, recorded, place]).encode())
        identity = self.rows.identity(vocabulary, options)
        if identity is None:
            return ""
        for part in identity:
            said.update(part)
        return said.hexdigest()


@dataclass(frozen=True)
class ShardResult:
    """What became of a ShardTask.

    Attributes:
        split: the split's name.
        shard: file, counts and digest (no bytes if only checked).
        labels: examples by label; one with several counts for each of them.
        drawn: examples whose split was assigned, not named.
        reencoded: images whose bytes were not passed through, by reason.
        rejects: rows whose payload was refused.
        images: what the images have in common; None: not known, or there are none.
        fingerprint: the task's, see :meth:`ShardTask.fingerprint`.
        kept: it is the work of an earlier run.
        unlabelled: examples without a label.
    """

    split: str
    shard: Shard
    labels: Mapping[str, int]
    drawn: int
    reencoded: Mapping[str, int]
    rejects: tuple[Reject, ...]
    images: ImageStats | None
    fingerprint: str
    kept: bool = False
    unlabelled: int = 0

    def to_json(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ShardResult:
        """Parse what :meth:`to_json` gave."""
        values: dict[str, Any] = json.loads(text)
        values["shard"] = Shard(**values["shard"])
        values["rejects"] = tuple(Reject(*item) for item in values["rejects"])
        values["images"] = ImageStats.from_json(values["images"])
        return cls(**values)


class _Record(NamedTuple):
    """One example: its frame, ready to write, and what the result says of it."""

    frame: tuple[bytes, ...]
    made: Made
    drawn: bool


class Tally:
    """Counts what passes on its way to the file, and keeps the rejects aside."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.examples = 0
        self._bytes = 0
        self._digest = hashlib.sha256()
        self._drawn = 0
        self._labels: Counter[str] = Counter()
        self._unlabelled = 0
        self._reencoded: Counter[str] = Counter()
        self._images: Counter[tuple[str, int | None, int | None]] = Counter()
        self._rejects: list[Reject] = []
        self._on_progress = on_progress

    def count(self, items: Iterable[tuple[PlannedRow, _Record | Reject]]) -> Iterator[_Record]:
        """Yield records; of others, the rejects are kept."""
        for row, item in items:
            self._bytes += row.bytes
            if isinstance(item, Reject):
                self._rejects.append(item)
            else:
                self.examples += 1
                made = item.made
                self._digest.update(made.digested)
                self._drawn += item.drawn
                for label in made.labels:
                    self._labels[label] += 1
                self._unlabelled += not made.labels
                if made.reencoded is not None:
                    self._reencoded[made.reencoded] += 1
                if made.image is not None:
                    self._images[made.image] += 1
                yield item
            self._report()

    def add(
        self,
        examples: int,
        digested: memoryview,
        *,
        drawn: int,
        labels: Mapping[str, int],
        rejects: Sequence[Reject],
        payload_bytes: int,
    ) -> None:
        """Count many examples at once, each with one label at most.

        Args:
            examples: how many there are.
            digested: what they add to the digest, one behind the other.
            drawn: how many have a split that was assigned, not named.
            labels: how many have which label.
            rejects: those beside them that were refused.
            payload_bytes: of all of them.
        """
        self.examples += examples
        self._digest.update(digested)
        self._drawn += drawn
        self._labels.update(labels)
        self._unlabelled += examples - sum(labels.values())
        self._rejects += rejects
        self._bytes += payload_bytes
        self._report()

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.examples, len(self._rejects), self._bytes)

    def result(self, task: ShardTask, file: str, size: int, fingerprint: str) -> ShardResult:
        """Return what was counted."""
        return ShardResult(
            task.split,
            Shard(file, self.examples, size, self._digest.hexdigest(), task.label),
            dict(sorted(self._labels.items())),
            self._drawn,
            dict(sorted(self._reencoded.items())),
            tuple(self._rejects),
            ImageStats.of(self._images),
            fingerprint,
            unlabelled=self._unlabelled,
        )
