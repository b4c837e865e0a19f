"""What a dataset counts: its shards, its splits, its images and its rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from recordgen import storage

#: A number of things in JSON: :func:`recordgen.core.dataset.manifest.built` refuses negative ones.
Count = Annotated[int, range(1 << 63)]


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard file."""

    file: str  # its path inside the output
    examples: Count  # number of its records
    bytes: Count
    # Sha256 (hex) over one line per record, in order: the stored image's sha256, the annotation and
    # the uri, separated by tabs. For examples written from Python, sha256 over the serialised
    # records.
    digest: str
    # With `shard_by=label`, the label of all its examples ("" if they have none); otherwise None.
    label: str | None = None

    def check_values(self) -> None:
        """Raise ValueError if the file is not in the output."""
        if fault := storage.path_fault(self.file):
            raise ValueError(f"the shard {self.file!r:.80} must be in the output: {fault}")


@dataclass(frozen=True, slots=True)
class ImageStats:
    """Formats and sizes of a split's images, for readers."""

    formats: Mapping[str, int]  # number of images by `image/format`
    height: tuple[int, int]  # the smallest and the largest, in pixels
    width: tuple[int, int]  # the smallest and the largest, in pixels

    @classmethod
    def of(cls, images: Mapping[tuple[str, int | None, int | None], int]) -> ImageStats | None:
        """Return the stats of images, given their number by (format, height, width).

        None if a size is unknown, or there are no images.
        """
        return cls.merge(
            None
            if height is None or width is None
            else cls({kind: count}, (height,) * 2, (width,) * 2)
            for (kind, height, width), count in images.items()
        )

    @classmethod
    def merge(cls, parts: Iterable[ImageStats | None]) -> ImageStats | None:
        """Return the stats of several sets of images together; None if one set is unknown."""
        known = list(parts)
        if not known or None in known:
            return None
        stats = [part for part in known if part is not None]
        formats: Counter[str] = Counter()
        for part in stats:
            formats.update(part.formats)
        return cls(
            dict(sorted(formats.items())),
            (min(part.height[0] for part in stats), max(part.height[1] for part in stats)),
            (min(part.width[0] for part in stats), max(part.width[1] for part in stats)),
        )


@dataclass(frozen=True, slots=True)
class Split:
    """One split."""

    examples: Count  # number of its examples
    bytes: Count  # size of all shards
    # Examples by label; an example with several labels counts for each of them.
    labels: Mapping[str, Count]
    shards: tuple[Shard, ...]  # its files
    images: ImageStats | None = None  # formats and sizes of its images; None if unknown
    unlabelled: Count = 0  # examples without a label
    assigned: Count = 0  # examples whose split was assigned, not named by their row

    def check_values(self, name: str) -> None:
        """Raise ValueError if a shard is not in the output, or a sum is wrong."""
        for shard in self.shards:
            shard.check_values()
        for part in ("examples", "bytes"):
            total = sum(getattr(shard, part) for shard in self.shards)
            if self.shards and getattr(self, part) != total:
                raise ValueError(
                    f"{part} of split {name} must be {total}, the sum of its shards "
                    f"(got {getattr(self, part)})"
                )

    @classmethod
    def of(cls, shards: Iterable[Shard], labels: Mapping[str, int], **known: Any) -> Split:
        """Return the split of shards; ``known`` has other fields."""
        files = tuple(shards)
        examples, size = (sum(getattr(it, name) for it in files) for name in ("examples", "bytes"))
        return cls(examples, size, dict(sorted(labels.items())), files, **known)

    @classmethod
    def merge(cls, parts: Sequence[Split]) -> Split:
        """Return several splits as one, with their shards one after another."""
        labels: Counter[str] = Counter()
        for part in parts:
            labels.update(part.labels)
        return cls.of(
            (shard for part in parts for shard in part.shards),
            labels,
            images=ImageStats.merge(part.images for part in parts),
            unlabelled=sum(part.unlabelled for part in parts),
            assigned=sum(part.assigned for part in parts),
        )


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Counts of all rows by their outcome.

    ``read == examples + duplicates + merged + dropped + existing + sum(rejected)``. If the dataset
    was appended to, these are the sums over all runs.
    """

    read: Count = 0  # rows in the import files, without blank lines and header lines
    examples: Count = 0  # rows that became an example
    duplicates: Count = 0  # rows that repeat another row of their example
    dropped: Count = 0  # rows without a split, dropped by `missing_split=drop`
    assigned: Count = 0  # examples whose split was assigned, not named
    existing: Count = 0  # rows whose example was in the dataset that was appended to
    rejected: Mapping[str, Count] = field(default_factory=dict)  # rejected rows by reason
    merged: Count = 0  # rows that add labels or boxes to another row's example
    # Changes that made rows usable, by kind, such as `boxes_clipped`.
    adjusted: Mapping[str, Count] = field(default_factory=dict)

    @classmethod
    def merge(cls, parts: Sequence[RowCounts]) -> RowCounts:
        """Return the sums of several counts."""
        sums: dict[str, Any] = {}
        for item in fields(cls):
            values = [getattr(part, item.name) for part in parts]
            if isinstance(values[0], int):
                sums[item.name] = sum(values)
            else:
                total: Counter[str] = sum(map(Counter, values), Counter())
                sums[item.name] = dict(sorted(total.items()))
        return cls(**sums)

    @property
    def rejects(self) -> int:
        """All rejected rows."""
        return sum(self.rejected.values())


def record_line(image_sha256: str, annotation: str | None, uri: str) -> bytes:
    """Return the line of one record for its shard's digest."""
    return f"{image_sha256}\t{annotation or ''}\t{uri}\n".encode()


def dataset_digest(shards: Sequence[Shard]) -> str:
    """Return the sha256 (hex) over the lines ``digest  file`` of all shards, sorted by file."""
    lines = sorted((shard.file, shard.digest) for shard in shards)
    text = "".join(f"{digest}  {file}\n" for file, digest in lines)
    return hashlib.sha256(text.encode()).hexdigest()
