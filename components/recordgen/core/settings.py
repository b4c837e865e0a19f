"""The settings of a conversion, decoded and checked.

A door (:mod:`recordgen.conversion.settings`) makes them from the options. Each function takes the
settings that it needs, and workers get no options.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from recordgen.core.dataset.fractions import SplitFractions
from recordgen.core.dataset.splits import EvalFrom, GroupBy
from recordgen.core.image_settings import Encoding, ImageSizing, Limits


@dataclass(frozen=True, kw_only=True)
class Splits:
    """How rows get their splits, and which rows become no example.

    Attributes:
        seed: seed of the order of rows and of assigned splits.
        fractions: shares of the splits for rows that name none.
        share: the share of a split that moves to ``eval``; None if no row moves.
        grouping: the column or pattern of groups that share a split; None if there are no groups.
        by_content: rows of files with the same bytes share a split.
        by_looks: images that look nearly the same share a split, too.
        stratifies: each split gets its share of each label.
        duplicates: what happens to copies of a file: ``keep``, ``drop`` or ``fail``.
        drops_unnamed: rows without a split are dropped if another row names one.
        without_eval: why rows in ``train`` and none in ``eval`` are refused, and the remedy; empty
            if they are not.
        without_train: the remedy if all rows name splits, but none ``train``; empty if that is
            not refused.
    """

    seed: int
    fractions: SplitFractions
    share: EvalFrom | None
    grouping: GroupBy | None
    by_content: bool
    by_looks: bool
    stratifies: bool
    duplicates: str
    drops_unnamed: bool
    without_eval: str = ""
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
    """How labels get their numbers.

    Attributes:
        mode: one of :data:`recordgen.core.dataset.vocabulary.LABEL_MODES`.
        vocabulary: a ``labels.txt`` or an output whose labels keep their numbers; may be empty.
        missing: why rows without any label are refused, and the remedy; empty if they are not.
    """

    mode: str
    vocabulary: str
    missing: str


@dataclass(frozen=True, kw_only=True)
class Shards:
    """How examples are divided into files.

    Attributes:
        bytes: target size of a shard.
        by_label: each label has shards of its own.
        compression: ``none`` or ``gzip``.
    """

    bytes: int
    by_label: bool
    compression: str


@dataclass(frozen=True, kw_only=True)
class PayloadSettings:
    """How payloads are checked and stored, and what the checks of the data note about them.

    Attributes:
        check: how images are checked: ``decode``, ``header`` or ``none``.
        resize: how an image gets its shape: ``stretch``, ``fit`` or ``center_crop``.
        needs_looks: downscaled images and the words of texts are noted.
        needs_rows: whole rows of tables are noted.
        text_encoding: the encoding of texts in files; empty for UTF-8.
    """

    check: str
    limit: Limits
    image_size: ImageSizing
    resize: str
    encode: Encoding
    needs_looks: bool
    needs_rows: bool
    text_encoding: str = ""

    @cached_property  # read for each image
    def changes_pictures(self) -> bool:
        """Whether images may be stored in another size or format than their file has."""
        return bool(self.image_size) or self.encode != _KEPT

    def to_look(self) -> PayloadSettings:
        """Return the settings that give a downscaled image of each file."""
        return replace(self, check="decode", image_size=_AS_IT_IS, encode=_KEPT, needs_looks=True)


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """What a task needs to know of a run.

    Attributes:
        stratifies: each split gets its share of each label.
        by_label: each label has shards of its own.
        labels: one of :data:`recordgen.core.dataset.vocabulary.LABEL_MODES`.
        bad_boxes: what happens to a box beyond its image: ``clip``, ``drop`` or ``reject``.
        box_orientation: boxes refer to the image as ``stored``, or to the ``upright`` one.
        resize: how an image gets its shape: ``stretch``, ``fit`` or ``center_crop``.
        offsets: what the offsets of entities count; ``auto``: characters.
        table: the detected :class:`recordgen.tables.columns.Table`; None if there is none.
        schema: the declared :class:`recordgen.tables.schema.Schema`; None if there is none.
    """

    stratifies: bool
    by_label: bool
    labels: str
    bad_boxes: str
    box_orientation: str
    resize: str
    offsets: str
    table: object | None
    schema: object | None


_KEPT, _AS_IT_IS = Encoding(), ImageSizing()
