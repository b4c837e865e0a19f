"""Examples that a task has made, with what is counted and checked about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from recordgen.core.records.format import Record, RecordColumn
from recordgen.rejects import Reject

if TYPE_CHECKING:
    from recordgen.core.facts import ImageNote, Seen


class BuiltExample(NamedTuple):
    """An example, ready to be written."""

    record: tuple[bytes, ...]  # the serialised example, in pieces
    digested: bytes  # bytes that it adds to its shard's digest, see digested
    labels: Sequence[str]
    # Why the payload was re-encoded; None if its bytes were passed through.
    reencoded: str | None = None
    image: ImageNote | None = None  # its image; None if it has none
    # Digest of the payload as a trainer sees it, without labels; None if the whole row is the
    # content.
    content: bytes | None = None
    seen: Seen | None = None  # small copy of its image, or its text, if a check needs it
    changes: Mapping[str, int] | None = None  # see BuiltBatch; None if there are none


#: Names in :attr:`BuiltBatch.changes`.
MEASURED = "measured"
PSNR = "psnr_hundredths"


#: Prefixes of names in :attr:`BuiltBatch.changes`, before the name of a column of whole numbers.
GAP = "gap:"
INEXACT = "inexact:"
#: Likewise before the name of a feature that not every dataset has.
HAS = "has:"


def psnr_changes(psnr: int | None) -> dict[str, int]:
    """Return the changes that count the PSNR of an image, in hundredths of a decibel."""
    return {} if psnr is None else {MEASURED: 1, PSNR: psnr}


@dataclass
class BuiltBatch:
    """Examples of several rows, in their order."""

    examples: int = 0
    records: list[Record] = field(default_factory=list)  # serialised examples, each in pieces
    # Serialised examples (binary [n]) of a task that makes many at a time; they come before
    # `records`.
    column: RecordColumn | None = None
    # Bytes that they add to their shard's digest, in pieces.
    digested: list[bytes | memoryview] = field(default_factory=list)
    assigned: int = 0  # number of examples whose row names no split
    # Examples per label; an example with several labels counts for each.
    labels: Counter[str] = field(default_factory=Counter)
    unlabelled: int = 0
    reencoded: Counter[str] = field(default_factory=Counter)  # re-encoded images per reason
    # Examples per format, height and width of their image.
    images: Counter[tuple[str, int | None, int | None]] = field(default_factory=Counter)
    rejects: list[Reject] = field(default_factory=list)
    payload_bytes: int = 0  # payload bytes of all rows
    # Effects of storing images: the number of MEASURED images, the sum of their PSNR (PSNR), and
    # changed annotations by their name in `rows.adjusted` of `dataset.json`. For columns of whole
    # numbers, the number of missing values (GAP), and of values that float32 cannot hold (INEXACT).
    # The number of examples with a feature that not every dataset has (HAS).
    changes: Counter[str] = field(default_factory=Counter)
    facts: Any = None  # the rows' FactsBuilder, for the checks

    def add(self, made: BuiltExample, *, assigned: bool) -> None:
        """Add the example of the next row."""
        self.examples += 1
        self.records.append(made.record)
        self.digested.append(made.digested)
        self.assigned += assigned
        for label in made.labels:  # update() takes several times as long for a single label
            self.labels[label] += 1
        self.unlabelled += not made.labels
        if made.reencoded is not None:
            self.reencoded[made.reencoded] += 1
        if made.image is not None:
            self.images[made.image[:3]] += 1
        if made.changes:
            self.changes.update(made.changes)
