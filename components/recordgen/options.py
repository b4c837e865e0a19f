"""The options of a conversion: declared once, decoded and checked once.

A field of :class:`ConvertOptions` declares name, type, default, choices and help of an option. The
command line and the TFX component read them from :data:`OPTIONS`; ``make options`` writes them into
component.yaml and the tables of the documentation.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, TypedDict, get_args, get_type_hints

from recordgen.dataset.splits import DEFAULT_FRACTIONS, EvalFrom, GroupBy, SplitFractions
from recordgen.dataset.vocabulary import LABEL_MODES
from recordgen.errors import UsageError, did_you_mean
from recordgen.lint.selection import Selection
from recordgen.masking import without_secrets
from recordgen.registry import FORMAT_CHOICES, TASK_CHOICES
from recordgen.signatures import takes
from recordgen.storage import is_local, local_path
from recordgen.storage.access import Access
from recordgen.tables.roles import ROLES, TABLE_ROLES, Roles, columns_text, parse_columns
from recordgen.tables.schema import Schema

#: Value of options that are detected from the import files.
AUTO = "auto"

COMPRESSIONS = ("none", "gzip")

_DECLARED = "declared"

#: Options for tables only.
TABLE_OPTIONS = ("split_column", "target_column", "weight_column", "prediction", "tfmd_schema")

# Each of these sets the size of stored images.
_SIZES = ("short_side", "max_side", "size")

# These set how images are stored if they need not keep their bytes.
_CHANGES = (*_SIZES, "resize", "encode", "quality", "pixels")

# Recorded only if they differ from their default: older datasets do not have them.
_LATER = frozenset(
    {"url_secrets", "vocabulary", "split_from_name", "offsets", *_CHANGES} - {"max_side"}
)

#: An empty list, for callers that cannot omit an option.
NO_NAMES = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The declaration of an option.

    Attributes:
        name: the keyword; the flag of the command line is the same with dashes.
        annotation: the type of the field.
        default: the field's default.
        help: what the option does, in one sentence without a capital or a full stop. Values and
            other code are in backticks; see :attr:`plain_help`.
        choices: the allowed values; None if any value is allowed.
        metavar: the placeholder in a usage line, a unit or form: ``MB``, ``FILE``, or
            ``H W`` for two values; empty: the choices.
        unset: what happens by default, if the default is None or empty.
        above_zero: only numbers above 0 are allowed.
        affects_bytes: the option affects the output, and is recorded in ``dataset.json``.
        heading: heading of this option and the next ones in a command's help; empty: the heading
            of the previous option.
    """

    name: str
    annotation: Any
    default: Any
    help: str
    choices: Collection[str] | None = None
    metavar: str = ""
    unset: str = ""
    above_zero: bool = False
    affects_bytes: bool = True
    heading: str = ""

    @property
    def several(self) -> bool:
        """Whether the option takes a list of any length."""
        return Ellipsis in get_args(self.annotation)

    @property
    def kind(self) -> type[str] | type[int] | type[float] | type[bool]:
        """The type of a value on the command line; lists and shares are text."""
        kinds = (self.annotation, *get_args(self.annotation))
        return next((kind for kind in (bool, int, float) if kind in kinds), str)

    @property
    def plain_help(self) -> str:
        """The help as plain text."""
        return self.help.replace("`", "")

    @property
    def default_text(self) -> str:
        """The default as a user would type it; empty for None and flags."""
        if isinstance(self.default, SplitFractions):
            return ",".join(map(str, self.default.weights))
        if isinstance(self.default, tuple):
            return " ".join(map(str, self.default))
        return "" if self.default is None or self.kind is bool else str(self.default)


def option(default: Any, help: str, **more: Any) -> Any:
    """Declare a field as an option; ``more`` are further attributes of :class:`Option`."""
    return field(default=default, metadata={"help": help, **more})


def declared_options(config: type) -> Mapping[str, Option]:
    """Return the options that a dataclass declares, by name, and describe them in its docstring."""
    annotations = get_type_hints(config)
    options = {
        f.name: Option(name=f.name, annotation=annotations[f.name], default=f.default, **f.metadata)
        for f in fields(config)
        if f.metadata
    }
    lines = "".join(f"        {each.name}: {each.help}.\n" for each in options.values())
    config.__doc__ = f"{config.__doc__}\n\n    Attributes:\n{lines}"
    return options


def without_unset(values: Mapping[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the parameters of a pipeline's step that are set.

    0 and an empty text mean None: not every backend has parameters without a value.
    """
    unset = {name for name, option in options.items() if option.default is None}
    return {name: value for name, value in values.items() if value or name not in unset}


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """How to convert. Every field has the name of its command-line option."""

    task: str = option(
        AUTO,
        "task of the rows; `auto`: detected from the first lines",
        choices=TASK_CHOICES,
        metavar="NAME",
        heading="input",
    )
    input_format: str = option(
        AUTO,
        "format of the source: `csv`, `jsonl`, `folder` of images by label, `iob` for sentences "
        "and their tags, `coco`, `yolo`, `pascal_voc`, `hugging_face`, `cvat`, `labelme`, "
        "`create_ml`, or an installed one; `auto`: detected",
        choices=FORMAT_CHOICES,
        metavar="NAME",
    )
    header: str = option(
        AUTO,
        "whether the first line of a CSV file is a header; `auto`: yes if its names are known; an "
        "ambiguous line ends the run",
        choices=(AUTO, "yes", "no"),
    )
    columns: str = option(
        "",
        "column of each role, by name, JSON key or number from 1, such as "
        f"`path=image_id,label=source`; roles: {', '.join(ROLES)}",
        metavar="ROLE=NAME,…",
    )
    schema: str = option(
        "",
        'kinds of a table\'s columns, as JSON such as `{"photo": "image", "age": "int"}`; a '
        "command also accepts the name of a file",
        metavar="FILE",
    )
    seed: int = option(
        0,
        "seed of order, shards and assigned splits; the same seed gives the same bytes",
        metavar="N",
        heading="splits",
    )
    split_fractions: SplitFractions = option(  # noqa: RUF009  (a field; its default is frozen)
        DEFAULT_FRACTIONS,
        "shares of train,eval,test for rows without a split",
        metavar="T,E,T",
    )
    eval_from: str = option(
        "",
        "move a share of a split to eval, for data without eval rows: `train:10` moves 10 % of "
        "train",
        metavar="SPLIT:PERCENT",
    )
    split_from_name: str = option(
        AUTO,
        "whether rows that name no split get the one in the name of their import file, or of its "
        "folder: `train_labels.csv`, `test/metadata.jsonl`; `auto`: if the names of the files say "
        "several splits, or a single name says little else",
        choices=(AUTO, "yes", "no"),
    )
    split_by: str = option(
        "uri",
        "assign splits by the row's `uri`, or by the file's `content` (its sha256), so that copies "
        "with several names share a split; `near`: images that look nearly the same share one "
        "too; `content` and `near` read each such file once more",
        choices=("uri", "content", "near"),
    )
    group_by: str = option(
        "",
        "assign one split to all rows of a group, such as the images of a patient; the group is "
        "the value of a column (name, JSON key or number from 1) or the match of a regular "
        "expression in the uri",
        metavar="COLUMN|REGEX",
    )
    duplicates: str = option(
        "keep",
        "rows that name different files with the same bytes: `keep` them all, `drop` all but the "
        "first, or `fail`; `drop` and `fail` read each file once more",
        choices=("keep", "drop", "fail"),
    )
    stratify: str = option(
        "none",
        "`label`: give each split its share of each label, to within one example; `none`: only "
        "its approximate share of all rows",
        choices=("none", "label"),
    )
    missing_split: str = option(
        "assign",
        "`assign` a split to rows without one, or `drop` them if any other row names a split, as "
        "Vertex AI does",
        choices=("assign", "drop"),
    )
    labels: str = option(
        "auto",
        "number labels as sorted `text`, or keep the numbers of `integer` labels; `auto`: keep "
        "them if all labels are whole numbers; `none`: no row has a label, as in data to predict",
        choices=LABEL_MODES,
        heading="labels",
    )
    vocabulary: str = option(
        "",
        "a `labels.txt` or an earlier output whose labels keep their numbers; new labels get the "
        "next numbers",
        metavar="FILE|OUT",
        unset="none",
    )
    shard_by: str = option(
        "hash",
        "mix the labels of a split in its shards (`hash`), or give each `label` its own shards",
        choices=("hash", "label"),
        heading="shards",
    )
    shard_mb: float = option(
        128, "target size of a shard, in MB of 10^6 bytes", metavar="MB", above_zero=True
    )
    compression: str = option(
        "none",
        "compression of the shards; `gzip` adds .gz to their names",
        choices=COMPRESSIONS,
    )
    check: str = option(
        "decode",
        "how images are checked: `decode` them to the last bit, read only the `header`, or `none`",
        choices=("decode", "header", "none"),
        heading="images",
    )
    max_side: int | None = option(
        None,
        "downscale images whose longer side has more pixels",
        metavar="PX",
        unset="never",
        above_zero=True,
    )
    short_side: int | None = option(
        None,
        "downscale images whose shorter side has more pixels",
        metavar="PX",
        unset="never",
        above_zero=True,
    )
    size: str = option(
        "",
        "store all images in the shape of this height and width, such as `224x224`, and downscale "
        "larger ones; one number means a square",
        metavar="HxW",
        unset="as they are",
    )
    resize: str = option(
        "stretch",
        "how an image gets the shape of `size`: `stretch` it, `fit` it between black bars, or "
        "`center_crop` it",
        choices=("stretch", "fit", "center_crop"),
    )
    encode: str = option(
        "keep",
        "format of stored images: `keep` JPEG as JPEG and store others as PNG if they must be "
        "encoded, or `jpeg`, `png` or `webp` for all; files that need no change keep their bytes; "
        "TensorFlow 2.21 decodes WEBP, 2.16 does not",
        choices=("keep", "jpeg", "png", "webp"),
    )
    quality: int | None = option(
        None,
        "quality of JPEGs and WEBPs that are re-encoded because of `short_side`, `max_side`, "
        "`size` or `encode`, from 1 to 100",
        metavar="N",
        unset="92",
        above_zero=True,
    )
    pixels: str = option(
        "encoded",
        "store images `encoded`, or their pixels as `raw` bytes, which training reads without "
        "decoding; `mixed`: raw up to 65,536 pixels (256×256), larger ones encoded",
        choices=("encoded", "raw", "mixed"),
    )
    bad_boxes: str = option(
        "clip",
        "what to do with a box that is inverted or extends beyond the image: `clip` it or swap its "
        "corners, `drop` it, or `reject` its image; an empty box is dropped or its image rejected",
        choices=("clip", "drop", "reject"),
        heading="boxes",
    )
    box_orientation: str = option(
        "stored",
        "whether boxes refer to the image as `stored` in its file, and are rotated with it by its "
        "Exif orientation, or to the `upright` image that people see",
        choices=("stored", "upright"),
    )
    offsets: str = option(
        AUTO,
        "unit of the offsets of entities: `codepoints` (characters, as Python counts), `utf16` "
        "(JavaScript, Java) or `bytes` of UTF-8; `auto`: characters, unless the spans show another "
        "unit, which ends the run",
        choices=(AUTO, "codepoints", "utf16", "bytes"),
        heading="entities",
    )
    split_column: str = option(
        "",
        "tables: column that holds the split",
        metavar="NAME",
        unset="detected from the values",
        heading="tables",
    )
    target_column: str = option("", "tables: column to predict", metavar="NAME", unset="none")
    weight_column: str = option(
        "", "tables: column of weights from 0 to 10,000", metavar="NAME", unset="none"
    )
    prediction: str = option(
        AUTO,
        "tables: whether the target is a class or a number; `auto`: a class if it is text or has "
        "few different whole numbers",
        choices=(AUTO, "classification", "regression"),
    )
    tfmd_schema: str = option(
        "",
        "tables: TensorFlow Metadata schema (pbtxt) with the types of the columns, a path or URL",
        metavar="FILE",
        unset="inferred from all rows",
        affects_bytes=False,
    )
    # Not an option: the rows come from a pipeline's step (recordgen.storage.access).
    confined: bool = False
    # Not an option: the detected columns of a table (recordgen.tables.columns.Table).
    table: str = ""
    max_image_mb: float = option(
        30,
        "reject larger files, in MB of 10^6 bytes",
        metavar="MB",
        above_zero=True,
        heading="limits",
    )
    max_image_pixels: int = option(
        100_000_000,
        "reject images with more pixels; all frames of a GIF together may have ten times as many",
        metavar="N",
        above_zero=True,
    )
    image_seconds: float = option(
        20,
        "reject images whose check takes more processor time",
        metavar="S",
        above_zero=True,
        affects_bytes=False,  # it limits the cost; sound images never reach it
    )
    decode_memory: float | None = option(
        None,
        "memory for decoded images in each process, in MB of 10^6 bytes; images that need more "
        "are decoded one at a time",
        metavar="MB",
        unset="half of the memory of the machine or container, divided by its cores",
        above_zero=True,
        affects_bytes=False,
    )
    max_reject_fraction: float = option(
        0.01,
        "fail above this share of rejected rows, from 0 to 1",
        metavar="F",
        heading="rejects",
    )
    on_storage_error: str = option(
        AUTO,
        "what to do with a row whose file cannot be reached after all retries: `reject` the row, "
        "or `fail`; `auto`: reject it if the file is on a web server",
        choices=(AUTO, "fail", "reject"),
        affects_bytes=False,
    )
    select: tuple[str, ...] = option(
        (),
        "run only the checks with these codes, such as `LEAK`; `error` and `warning` mean all "
        "codes of that level",
        metavar="CODE",
        unset="all but `SEGMENT_END`",
        affects_bytes=False,
        heading="checks of the data",
    )
    ignore: tuple[str, ...] = option(
        (),
        "skip the checks with these codes; `ALL` turns the checks off",
        metavar="CODE",
        unset="none",
        affects_bytes=False,
    )
    fail_on: tuple[str, ...] = option(
        (),
        "fail instead of writing a dataset if there are findings of these codes, of `error` or of "
        "`warning`",
        metavar="CODE",
        unset="none",
        affects_bytes=False,
    )
    threshold: tuple[str, ...] = option(
        (),
        "number from which on a check reports a finding, such as `FEW_EXAMPLES=50`",
        metavar="CODE=N",
        unset="as in the table of codes",
        affects_bytes=False,
    )
    allow_scheme: tuple[str, ...] = option(
        (),
        "further URL schemes that rows may use, such as `https`",
        metavar="SCHEME",
        heading="access",
    )
    allow_root: tuple[str, ...] = option(
        (),
        "folders and URL prefixes that rows may reach, and nothing outside of them",
        metavar="PREFIX",
    )
    url_secrets: str = option(
        "drop",
        "user names, tokens and signatures in the URLs of rows: `drop` them from the source ids in "
        "the records, or `keep` them there; all other output never contains them",
        choices=("drop", "keep"),
    )
    card: bool = option(
        False,
        "also write a dataset card with open questions, `README.md`",
        unset="no",
        affects_bytes=False,
        heading="the run",
    )
    threads: int | None = option(
        None,
        "threads per worker that fetch and check files",
        metavar="N",
        unset="one per core, at least two",
        above_zero=True,
        affects_bytes=False,
    )

    def __post_init__(self) -> None:
        # Resolved here and not by workers, which have their own working directories.
        object.__setattr__(self, "allow_root", tuple(map(_absolute, self.allow_root)))
        object.__setattr__(self, "split_fractions", SplitFractions.of(self.split_fractions))
        self._settle_columns()
        if self.schema:
            if self.task not in (AUTO, _DECLARED):
                raise UsageError(
                    f"schema declares the columns, but the task {self.task} has its own; give only "
                    f"one of them"
                )
            schema = Schema.from_json(self.schema)
            object.__setattr__(self, "schema", json.dumps(schema.to_json(), ensure_ascii=False))
            object.__setattr__(self, "task", _DECLARED)
        for name, declared in OPTIONS.items():
            value = getattr(self, name)
            if declared.choices is not None and value not in declared.choices:
                raise UsageError(
                    f"{name} must be one of {', '.join(declared.choices)} (got {value!r})"
                )
            if declared.kind is bool:
                if value not in (0, 1):  # ML Metadata has no booleans
                    raise UsageError(f"{name} must be True or False (got {value!r})")
                object.__setattr__(self, name, bool(value))
            is_number = isinstance(value, int | float) and 0 < value < math.inf
            if declared.above_zero and value is not declared.default and not is_number:
                raise UsageError(f"{name} must be a number above 0 (got {value!r})")
        if (share := self.eval_share) is not None:
            object.__setattr__(self, "eval_from", str(share))  # one spelling, for --append
        if self.grouping is not None and self.splits_by_content:
            raise UsageError(
                f"group_by and split_by={self.split_by} both decide a row's split: a copy of a "
                f"file may belong to another group; give only one of them"
            )
        self._check_stratify()
        if self.vocabulary and self.labels != AUTO:
            raise UsageError(
                f"vocabulary already sets the numbers of labels (got labels={self.labels}); give "
                f"only one of them"
            )
        if not isinstance(self.seed, int) or abs(self.seed) >= 1 << 63:
            raise UsageError(f"seed must be a whole number of 64 bits (got {self.seed!r})")
        fraction: Any = self.max_reject_fraction  # may be a NumPy number
        if not isinstance(fraction, Real) or not 0 <= float(fraction) <= 1:
            raise UsageError(f"max_reject_fraction must be from 0 to 1 (got {fraction!r})")
        if self.box_orientation == "upright" and self.check == "none":
            raise UsageError(
                "box_orientation=upright needs check=decode or check=header: check=none does not "
                "rotate images"
            )
        self._settle_pictures()
        _ = self.access
        _ = self.lint

    def _settle_pictures(self) -> None:
        """Check the options for stored images against each other, and normalise ``size``."""
        if self.size:
            height, width = parse_size(self.size)
            object.__setattr__(self, "size", f"{height}x{width}")
        changing = [name for name in _SIZES if getattr(self, name)]
        if len(changing) > 1:
            raise UsageError(
                f"{' and '.join(changing)} each set the size of stored images; give only one of "
                f"them"
            )
        if self.resize != OPTIONS["resize"].default and not self.size:
            raise UsageError(f"resize={self.resize} needs size, the height and width of images")
        for name in ("encode", "pixels"):
            if getattr(self, name) != OPTIONS[name].default:
                changing.append(name)
        if self.quality is not None:
            if not isinstance(self.quality, int) or self.quality > 100:
                raise UsageError(
                    f"quality must be a whole number from 1 to 100 (got {self.quality!r})"
                )
            if self.encode == "png" or self.pixels == "raw":
                other = "encode=png" if self.encode == "png" else "pixels=raw"
                raise UsageError(
                    f"quality is for JPEGs and WEBPs, but {other} stores none; give only one of "
                    f"them"
                )
            if not changing:
                raise UsageError(
                    f"quality is for images that are re-encoded because of {', '.join(_SIZES)}, "
                    f"encode=jpeg or encode=webp; add one of them"
                )
        if self.pixels == "raw" and self.encode != OPTIONS["encode"].default:
            raise UsageError(
                f"pixels=raw stores no encoded images, but encode={self.encode} is for them; give "
                f"only one of them, or use pixels=mixed"
            )
        if changing and self.check == "none":
            raise UsageError(
                f"{changing[0]} needs check=decode or check=header: check=none passes images "
                f"through unread"
            )

    def _check_stratify(self) -> None:
        if self.stratify == "none":
            return
        if self.grouping is not None:
            raise UsageError(
                "stratify=label cannot keep groups together: their rows may have several labels; "
                "give only one of stratify and group_by"
            )
        if self.splits_by_content:
            raise UsageError(
                f"stratify=label cannot keep copies of a file together that have several labels; "
                f"use duplicates=drop instead of split_by={self.split_by}"
            )

    def _settle_columns(self) -> None:
        """Normalise ``columns``, and copy a table's roles to the options for its columns."""
        roles = parse_columns(self.columns)
        object.__setattr__(self, "columns", columns_text(roles))
        for role, column in TABLE_ROLES.items():
            for name in roles.get(role, ()):
                if getattr(self, column) not in ("", name):
                    raise UsageError(
                        f"columns has {role}={name}, but {column} is {getattr(self, column)!r}; "
                        f"give only one of them"
                    )
                object.__setattr__(self, column, name)

    @property
    def roles(self) -> Roles:
        """The given columns by role."""
        return parse_columns(self.columns)

    @property
    def shard_bytes(self) -> int:
        """Target size of a shard in bytes."""
        return max(1, int(self.shard_mb * 1_000_000))

    @property
    def max_image_bytes(self) -> int:
        """Largest accepted payload in bytes."""
        return int(self.max_image_mb * 1_000_000)

    @property
    def decode_bytes(self) -> int | None:
        """Memory for decoded images per process, in bytes; None: depends on the machine."""
        return None if self.decode_memory is None else int(self.decode_memory * 1_000_000)

    @property
    def eval_share(self) -> EvalFrom | None:
        """The decoded ``eval_from``; None if it is not given. Raises: UsageError."""
        return EvalFrom.parse(self.eval_from) if self.eval_from else None

    @property
    def grouping(self) -> GroupBy | None:
        """The decoded ``group_by``; None if each row is a group. Raises: UsageError."""
        return GroupBy.parse(self.group_by) if self.group_by else None

    @property
    def splits_by_content(self) -> bool:
        """Whether files are read to assign splits."""
        return self.split_by != "uri"

    @property
    def finds_alike(self) -> bool:
        """Whether images are compared to assign splits."""
        return self.split_by == "near"

    @property
    def finds_copies(self) -> bool:
        """Whether the run finds rows that name different files with the same bytes."""
        return self.duplicates != "keep"

    @property
    def decides_together(self) -> bool:
        """Whether all rows must be known before any is planned."""
        return self.finds_copies or self.finds_alike or self.stratify != "none"

    @property
    def stored_size(self) -> tuple[int, int] | None:
        """The height and width of ``size``, in pixels; None if it is not given."""
        return parse_size(self.size) if self.size else None

    @cached_property  # read for each image, like `lint`
    def changes_pictures(self) -> bool:
        """Whether images may be stored in another size or format than their file has."""
        return any(getattr(self, name) != OPTIONS[name].default for name in _CHANGES)

    def without_changes(self) -> ConvertOptions:
        """Return these options, but with images stored in the size and format of their file."""
        return replace(self, **{name: OPTIONS[name].default for name in _CHANGES})

    def of_tables(self) -> list[str]:
        """Return the names of the given options that are for tables only."""
        return [name for name in TABLE_OPTIONS if getattr(self, name) != OPTIONS[name].default]

    @property
    def access(self) -> Access:
        """The files and URLs that rows may reach. Raises: UsageError."""
        return Access(self.allow_scheme, self.allow_root, self.confined)

    @cached_property
    def lint(self) -> Selection:
        """The checks of the data. Raises: UsageError."""
        # If the user chose the format, the suffixes of the files do not matter.
        chosen = self.encode != "keep" or self.pixels != "encoded"
        ignore = (*self.ignore, "SUFFIX") if chosen else self.ignore
        return Selection.of(self.select, ignore, self.fail_on, self.threshold)

    def recorded(self) -> dict[str, Any]:
        """Return the options that affect the output, as ``dataset.json`` has them."""
        values = asdict(self)
        values["split_fractions"] = str(self.split_fractions)
        values["allow_scheme"] = list(self.allow_scheme)  # JSON has no tuples
        values["allow_root"] = list(map(without_secrets, self.allow_root))
        names = [f.name for f in fields(self) if f.metadata.get("affects_bytes", True)]
        names.remove("confined")  # it selects rows, but does not change their examples
        values["vocabulary"] = without_secrets(self.vocabulary)
        return {
            name: values[name]
            for name in names
            if name not in _LATER or values[name] != OPTIONS[name].default
        }


#: All options, in the order of the help.
OPTIONS = declared_options(ConvertOptions)


def recorded_defaults() -> dict[str, Any]:
    """Return the values of the options that a ``dataset.json`` does not name."""
    values = {name: declared.default for name, declared in OPTIONS.items()}
    return {**values, **ConvertOptions().recorded()}


class OptionValues(TypedDict, total=False):
    """The options as keywords of ``convert``, ``check`` and ``plan``, for editors."""

    task: str
    input_format: str
    header: str
    columns: str | Mapping[str, str | int | Sequence[str | int]]
    schema: str | Mapping[str, str] | Schema
    seed: int
    split_fractions: str | Sequence[int] | Mapping[str, int] | SplitFractions
    eval_from: str
    split_from_name: str
    split_by: str
    group_by: str
    duplicates: str
    stratify: str
    missing_split: str
    labels: str
    vocabulary: str
    shard_by: str
    shard_mb: float
    compression: str
    check: str
    max_side: int | None
    short_side: int | None
    size: str | int | Sequence[int]
    resize: str
    encode: str
    quality: int | None
    pixels: str
    bad_boxes: str
    box_orientation: str
    offsets: str
    split_column: str
    target_column: str
    weight_column: str
    prediction: str
    tfmd_schema: str
    max_image_mb: float
    max_image_pixels: int
    image_seconds: float
    decode_memory: float | None
    max_reject_fraction: float
    on_storage_error: str
    select: str | Sequence[str]
    ignore: str | Sequence[str]
    fail_on: str | Sequence[str]
    threshold: str | Sequence[str]
    allow_scheme: str | Sequence[str]
    allow_root: str | Sequence[str]
    url_secrets: str
    card: bool
    threads: int | None


#: Lists the options in the signature of a function that takes them as ``**options``.
takes_options = takes(OptionValues, ConvertOptions)


def make_options(values: Mapping[str, Any]) -> ConvertOptions:
    """Decode keyword options; lists may be text, columns and schemas may be mappings.

    Raises:
        UsageError: a name is unknown, or a value is not allowed.
    """
    check_names(values, tuple(OPTIONS))
    values = {
        name: value
        for name, value in values.items()
        if value is not None or OPTIONS[name].default != ""  # None means an empty text
    }
    decoded: dict[str, Any] = {
        name: parse_names(name, value) if OPTIONS[name].several else value
        for name, value in values.items()
    }
    if isinstance(columns := values.get("columns"), Mapping):
        decoded["columns"] = columns_text(parse_columns(columns))
    if isinstance(schema := values.get("schema"), Mapping | Schema):
        declared = schema if isinstance(schema, Schema) else Schema(schema)
        decoded["schema"] = json.dumps(declared.to_json(), ensure_ascii=False)
    if isinstance(size := values.get("size"), int):
        decoded["size"] = str(size)
    elif isinstance(size, Sequence) and not isinstance(size, str):
        decoded["size"] = "x".join(map(str, size))
    for name, value in decoded.items():
        if OPTIONS[name].annotation is str:
            decoded[name] = _text(name, value)
    return ConvertOptions(**decoded)


def _text(name: str, value: object) -> str:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise UsageError(f"{name} must be a text (got {value!r:.80}); omit it to get the default")
    return text


def parse_names(name: str, value: object) -> tuple[str, ...]:
    """Decode an option with several values: a list, or text separated by commas.

    ``none`` and an empty list mean no values. ``name`` is for the error.

    Raises:
        UsageError: the value is neither, or has only empty texts: perhaps an unset variable was
            meant to limit what rows may reach.
    """
    given: list[object]
    if isinstance(value, str):
        given = [*value.split(",")]
    elif isinstance(value, os.PathLike):
        given = [value]
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        given = [*value]
    else:
        raise UsageError(f"{name} must be a text or a list of texts (got {value!r:.80})")
    names = tuple(text for item in given if (text := _text(name, item).strip()))
    if given and not names:
        raise UsageError(
            f"{name} must not be empty if it is given (got {value!r}); omit the option, or give "
            f"'none'"
        )
    return () if names == (NO_NAMES,) else names


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Check the names of keyword options. Raises: UsageError, which suggests a similar name."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known, f"; known: {', '.join(known)}")
            raise UsageError(f"unknown option {name!r}{hint}")


def parse_size(text: str) -> tuple[int, int]:
    """Parse ``224x320``: height and width in pixels; ``224`` means a square.

    Raises:
        UsageError: the text has another form.
    """
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) > 2 or not all(side.strip().isdecimal() and int(side) for side in sides):
        raise UsageError(
            f"size must be a height and a width in pixels, each at least 1, such as 224x224 (got "
            f"{text!r})"
        )
    return int(sides[0]), int(sides[-1])


def check_image_size(size: object) -> None:
    """Check a height and a width in pixels. Raises: UsageError."""
    sides = size if isinstance(size, Sequence) and bool not in map(type, size) else ()
    if len(sides) != 2 or not all(isinstance(side, Integral) and int(side) >= 1 for side in sides):
        raise UsageError(f"image_size must be height and width, each at least 1 (got {size!r})")


def _absolute(root: str) -> str:
    return os.path.abspath(local_path(root)) if root and is_local(root) else root


def default_threads() -> int:
    """Return one thread per core, at least two: decoders release the interpreter's lock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, cores or 2)
