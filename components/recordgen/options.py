"""The options of a conversion, decoded once at the door and valid from then on."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from recordgen.dataset.splits import DEFAULT_FRACTIONS, EvalFrom, SplitFractions
from recordgen.dataset.vocabulary import LABEL_MODES
from recordgen.errors import UsageError
from recordgen.roles import TABLE_ROLES, Roles, columns_text, parse_columns
from recordgen.storage import is_local, local_path
from recordgen.storage.access import Access
from recordgen.tables.schema import Schema

#: What is to be found out from the import files themselves.
AUTO = "auto"

TASKS = (
    AUTO,
    "image_classification",
    "image_multi_label",
    "object_detection",
    "text_classification",
    "text_multi_label",
    "text_sentiment",
    "text_entities",
    "tabular",
    "video_classification",
    "declared",
)
INPUT_FORMATS = (AUTO, "csv", "jsonl", "folder", "iob")
HEADERS = (AUTO, "yes", "no")
CHECKS = ("decode", "header", "none")
COMPRESSIONS = ("none", "gzip")
SPLIT_BY = ("uri", "content")
SHARD_BY = ("hash", "label")
BAD_BOXES = ("clip", "drop", "reject")
BOX_ORIENTATIONS = ("stored", "upright")
MISSING_SPLIT = ("assign", "drop")
PREDICTIONS = (AUTO, "classification", "regression")

_DECLARED = "declared"

#: The options that only tables have.
TABLE_OPTIONS = ("split_column", "target_column", "weight_column", "prediction", "tfmd_schema")

#: What stands for no value where an option that takes several cannot be left out.
NO_NAMES = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """How to convert. Every field has the name of its command-line option.

    Attributes:
        task: what rows mean, see :mod:`recordgen.tasks`; ``auto``: found out from the first lines.
        input_format: ``csv``, ``jsonl``, ``folder`` (of images), ``iob`` (sentences and their
            tags), or ``auto``: told by name and content.
        header: whether the first line of each CSV file names its columns: ``yes``, ``no``, or
            ``auto``: it does if its names are known; a line that may be either stops the run.
        columns: which column holds what, as :func:`recordgen.roles.parse_columns` takes it:
            ``path=image_id,label=source``. Empty: known names and positions decide.
        schema: what the columns of a table hold, as JSON; see :class:`recordgen.tables.schema.Schema`.
            Empty: none is declared. With one, the task is ``declared``.
        seed: decides order, shards and the draw of splits; the same seed gives the same bytes.
        split_fractions: shares for rows that name no split.
        eval_from: ``SPLIT:PERCENT``, such as ``train:10``: that share of the split's rows, named or
            drawn, moves to ``eval``, which must have no other rows; empty: none moves.
        split_by: draw by the row's ``uri``, or by the payload's ``content`` (its sha256), so that
            copies of one file under several names never straddle splits. Content is read once
            more for that.
        missing_split: ``assign`` draws a split for rows without one; ``drop`` leaves them out
            when any other row names a split, as Vertex AI does.
        labels: ``auto``, ``text`` or ``integer``; see :func:`recordgen.dataset.vocabulary.build_vocabulary`.
        shard_by: ``hash`` mixes the labels of a split in its shards; ``label`` gives each of them
            (and the rows without one) shards of its own.
        shard_mb: aimed-at size of a shard in MB (10^6 bytes).
        compression: ``none`` or ``gzip``; gzip adds ``.gz`` to the shards' names.
        check: ``decode`` reads every image to its last bit, ``header`` only its header, ``none``
            passes the bytes through unread.
        max_side: downscale images whose longer side is above this many pixels; None: never.
        bad_boxes: of boxes outside the image, empty or inverted ones: ``clip`` what lies outside
            and turn round what is inverted; ``drop`` the box; ``reject`` its row. Empty ones are
            dropped where they are not rejected.
        box_orientation: boxes are of the picture as it is ``stored`` in the file, and turned with
            it where its EXIF orientation asks for that; or of the ``upright`` one, as people and
            browsers see it.
        split_column: of a table, the column that holds ML_USE; empty: told by its values.
        target_column: of a table, the column that is to be predicted; empty: there is none.
        weight_column: of a table, the column of weights from 0 to 10,000; empty: there is none.
        prediction: of a table with a target, ``classification`` or ``regression``; ``auto``: text
            and few whole numbers are classes.
        tfmd_schema: path or URL of a TensorFlow Metadata schema (pbtxt) with the types of a
            table's columns; empty: they are told from all rows.
        table: the columns of a table as they were detected, see
            :class:`recordgen.tables.columns.Table`; cannot be given.
        max_image_mb: larger payloads are rejected, in MB (Vertex AI's own limit is 30).
        max_image_pixels: images of more pixels are rejected before they are decoded.
        max_reject_fraction: the run fails above this share of rejected rows, 0..1.
        allow_scheme: further schemes that rows may reach, such as ``https``.
        allow_root: folders and URL prefixes; rows then reach nothing outside these.
        threads: threads that fetch and check per worker; None: one per core, at least two.
    """

    task: str = AUTO
    input_format: str = AUTO
    header: str = AUTO
    columns: str = ""
    schema: str = ""
    seed: int = 0
    split_fractions: SplitFractions = DEFAULT_FRACTIONS
    eval_from: str = ""
    split_by: str = "uri"
    missing_split: str = "assign"
    labels: str = "auto"
    shard_by: str = "hash"
    shard_mb: float = 128
    compression: str = "none"
    check: str = "decode"
    max_side: int | None = None
    bad_boxes: str = "clip"
    box_orientation: str = "stored"
    split_column: str = ""
    target_column: str = ""
    weight_column: str = ""
    prediction: str = AUTO
    tfmd_schema: str = field(default="", metadata={"affects_bytes": False})
    table: str = field(default="", metadata={"decided": True})
    max_image_mb: float = 30
    max_image_pixels: int = 100_000_000
    max_reject_fraction: float = 0.01
    allow_scheme: tuple[str, ...] = ()
    allow_root: tuple[str, ...] = ()
    threads: int | None = field(default=None, metadata={"affects_bytes": False})

    def __post_init__(self) -> None:
        # Here, not where rows are checked: a worker has a working directory of its own.
        object.__setattr__(self, "allow_root", tuple(map(_absolute, self.allow_root)))
        self._settle_columns()
        if self.schema:
            if self.task not in (AUTO, _DECLARED):
                raise UsageError(
                    f"a schema says what columns hold, and the task {self.task} knows that "
                    f"itself; leave one of them out"
                )
            schema = Schema.from_json(self.schema)
            object.__setattr__(self, "schema", json.dumps(schema.to_json(), ensure_ascii=False))
            object.__setattr__(self, "task", _DECLARED)
        _one_of("task", self.task, TASKS)
        _one_of("input_format", self.input_format, INPUT_FORMATS)
        _one_of("header", self.header, HEADERS)
        _one_of("split_by", self.split_by, SPLIT_BY)
        _one_of("missing_split", self.missing_split, MISSING_SPLIT)
        _one_of("labels", self.labels, LABEL_MODES)
        _one_of("shard_by", self.shard_by, SHARD_BY)
        _one_of("compression", self.compression, COMPRESSIONS)
        _one_of("check", self.check, CHECKS)
        _one_of("bad_boxes", self.bad_boxes, BAD_BOXES)
        _one_of("box_orientation", self.box_orientation, BOX_ORIENTATIONS)
        _one_of("prediction", self.prediction, PREDICTIONS)
        if (share := self.eval_share) is not None:
            object.__setattr__(self, "eval_from", str(share))  # one spelling, for --append
        _above_zero("shard_mb", self.shard_mb)
        _above_zero("max_image_mb", self.max_image_mb)
        _above_zero("max_image_pixels", self.max_image_pixels)
        if not isinstance(self.seed, int) or abs(self.seed) >= 1 << 63:
            raise UsageError(f"seed must be a whole number of 64 bits (got {self.seed!r})")
        if not 0 <= self.max_reject_fraction <= 1:
            raise UsageError(
                f"max_reject_fraction must be from 0 to 1 (got {self.max_reject_fraction})"
            )
        if self.box_orientation == "upright" and self.check == "none":
            raise UsageError(
                "box_orientation=upright needs check=decode or check=header: check=none turns no "
                "image upright"
            )
        if self.max_side is not None:
            _above_zero("max_side", self.max_side)
            if self.check == "none":
                raise UsageError(
                    "max_side needs check=decode or check=header: check=none passes images "
                    "through unread"
                )
        if self.threads is not None:
            _above_zero("threads", self.threads)
        _ = self.access

    def _settle_columns(self) -> None:
        """Write ``columns`` in one spelling; give a table's roles to the options that hold them."""
        roles = parse_columns(self.columns)
        object.__setattr__(self, "columns", columns_text(roles))
        for role, option in TABLE_ROLES.items():
            for name in roles.get(role, ()):
                if getattr(self, option) not in ("", name):
                    raise UsageError(
                        f"columns says {role}={name}, and {option} is {getattr(self, option)!r}; "
                        f"leave one of them out"
                    )
                object.__setattr__(self, option, name)

    @property
    def roles(self) -> Roles:
        """The columns that are given, by role."""
        return parse_columns(self.columns)

    @property
    def shard_bytes(self) -> int:
        """Aimed-at size of a shard in bytes."""
        return max(1, int(self.shard_mb * 1_000_000))

    @property
    def max_image_bytes(self) -> int:
        """Largest payload that is accepted, in bytes."""
        return int(self.max_image_mb * 1_000_000)

    @property
    def eval_share(self) -> EvalFrom | None:
        """What ``eval_from`` says; None: no row moves. Raises: UsageError."""
        return EvalFrom.parse(self.eval_from) if self.eval_from else None

    def of_tables(self) -> list[str]:
        """Return the names of those that are given and that only tables have."""
        default = {f.name: f.default for f in fields(self)}
        return [name for name in TABLE_OPTIONS if getattr(self, name) != default[name]]

    @property
    def access(self) -> Access:
        """What rows may reach. Raises: UsageError."""
        return Access(self.allow_scheme, self.allow_root)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the options that can be given."""
        return tuple(f.name for f in fields(cls) if not f.metadata.get("decided", False))

    def recorded(self) -> dict[str, Any]:
        """Return the options that decide what is written, as they stand in ``dataset.json``."""
        values = asdict(self)
        values["split_fractions"] = str(self.split_fractions)
        values["allow_scheme"] = list(self.allow_scheme)  # as JSON gives them back
        values["allow_root"] = list(self.allow_root)
        return {
            f.name: values[f.name] for f in fields(self) if f.metadata.get("affects_bytes", True)
        }


def parse_names(value: str | Sequence[str]) -> tuple[str, ...]:
    """Decode an option that takes several values: a list, or text with commas between them.

    ``none`` and an empty list stand for no values at all.

    Raises:
        UsageError: only empty texts are given. A variable may be unset that was meant to say what
            rows may reach.
    """
    given = value.split(",") if isinstance(value, str) else value
    names = tuple(text for item in given if (text := item.strip()))
    if given and not names:
        raise UsageError(
            f"allow_scheme and allow_root must not be empty where they are given (got {value!r}); "
            f"leave the option out, or say 'none'"
        )
    return () if names == (NO_NAMES,) else names


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Check the names of keyword options. Raises: UsageError, with the name that was meant."""
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise UsageError(f"unknown option {name!r}; {hint}")


def check_image_size(size: object) -> None:
    """Check a height and a width in pixels. Raises: UsageError."""
    sides = size if isinstance(size, Sequence) else ()
    if len(sides) != 2 or not all(isinstance(side, Integral) and int(side) >= 1 for side in sides):
        raise UsageError(f"image_size must be height and width, each at least 1 (got {size!r})")


def _absolute(root: str) -> str:
    """Return a folder's whole path; URLs stay as they are."""
    return os.path.abspath(local_path(root)) if root and is_local(root) else root


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(allowed)} (got {value!r})")


def _above_zero(name: str, value: float) -> None:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(f"{name} must be a number above 0 (got {value!r})")


def default_threads() -> int:
    """Return one thread per core, at least two: decoders release the interpreter's lock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, cores or 2)
