"""The settings of a conversion, decoded and checked.

A door (:mod:`recordgen.conversion.settings`) makes them from the options. Each function takes the
settings that it needs, and workers get no options.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from recordgen.core.dataset.splits import EvalFrom, GroupBy, SplitFractions
from recordgen.core.dataset.vocabulary import LabelForms
from recordgen.core.image_settings import Decoding, Encoding, ImageSizing, Limits


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


_KEPT, _AS_IT_IS = Encoding(), ImageSizing()


@dataclass(frozen=True, kw_only=True)
class PayloadSettings:
    """How payloads are checked and stored, and what the checks of the data note about them.

    By default, an image is decoded and stored as it is.
    """

    check: str = "decode"  # how images are checked: `decode`, `header` or `none`
    limit: Limits
    image_size: ImageSizing = _AS_IT_IS
    resize: str = "stretch"  # how an image gets its shape: `stretch`, `fit` or `center_crop`
    encode: Encoding = _KEPT
    needs_looks: bool = False  # downscaled images and the words of texts are noted
    needs_rows: bool = False  # whole rows of tables are noted
    text_encoding: str = ""  # the encoding of texts in files; empty for UTF-8

    @cached_property
    def decoding(self) -> Decoding:
        """What decoding has taken in this process, for all images that have these settings."""
        return Decoding()

    @cached_property  # read for each image
    def changes_pictures(self) -> bool:
        """Whether images may be stored in another size or format than their file has."""
        return bool(self.image_size) or self.encode != _KEPT


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """What a task needs to know of a run."""

    stratifies: bool  # each split gets its share of each label
    by_label: bool  # each label has shards of its own
    labels: str  # one of LABEL_MODES
    bad_boxes: str  # what happens to a box beyond its image: `clip`, `drop` or `reject`
    box_orientation: str  # boxes refer to the image as `stored`, or to the `upright` one
    resize: str  # how an image gets its shape: `stretch`, `fit` or `center_crop`
    offsets: str  # what the offsets of entities count; `auto`: characters
    table: object | None  # the detected Table; None if there is none
    schema: object | None  # the declared Schema; None if there is none
