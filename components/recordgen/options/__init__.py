"""The options of a conversion: declared once, decoded and checked once.

A field of :class:`ConvertOptions` declares name, type, default and choices of an option, and the
docstring its help. The command line and the TFX component read them from :data:`OPTIONS`;
``make options`` writes them into component.yaml and the tables of the documentation.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from numbers import Real
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
)

from recordgen import storage
from recordgen.checks.selection import Selection
from recordgen.core.dataset.splits import EvalFrom, GroupBy, SplitFractions, SplitRule
from recordgen.core.facts import BOXES, IMAGES, MASKS, MEASURES
from recordgen.core.image_settings import JPEG, KEEP, MIXED, PNG, RAW, Encoding, ImageSizing, Limits
from recordgen.errors import UsageError, check_names, check_one_of
from recordgen.messages import attributes, takes
from recordgen.messages.masking import without_secrets
from recordgen.registry import FORMAT_CHOICES, OF_LAYOUTS, OF_SCHEMAS, TASK_CHOICES
from recordgen.storage.access import Access, resolved
from recordgen.tables.columns import Schema, Table
from recordgen.tables.csv_fields import known_encoding
from recordgen.tables.path_layout import GROUP, PathLayout
from recordgen.tables.roles import AUTO as AUTO
from recordgen.tables.roles import TABLE_ROLES, Columns

# The values of options, which editors complete and `choices` lists.
Duplicates: TypeAlias = Literal["keep", "drop", "fail"]
Stratify: TypeAlias = Literal["none", "label"]
MissingSplit: TypeAlias = Literal["assign", "drop"]
ShardBy: TypeAlias = Literal["hash", "label"]
Compression: TypeAlias = Literal["none", "gzip"]
Check: TypeAlias = Literal["decode", "header", "none"]
Resize: TypeAlias = Literal["stretch", "fit", "center_crop"]
BadBoxes: TypeAlias = Literal["clip", "drop", "reject"]
BoxOrientation: TypeAlias = Literal["stored", "upright"]
Labels: TypeAlias = Literal["auto", "text", "integer", "none"]

COMPRESSIONS = get_args(Compression)

# Values of ``group_by`` that are no column: rows of one file, or of files that look alike.
_BY_FILE = ("uri", "content", "near")

# Suffix of a schema of TensorFlow Metadata.
_TFMD_SUFFIX = ".pbtxt"


class Need(NamedTuple):
    """What an option needs to act in a task.

    Attributes:
        facts: sets of facts; the examples of the task must have all facts of one of them.
        what: the same for the error.
        reads: images must be read, at least their headers.
    """

    facts: Sequence[Set[str]]
    what: str
    reads: bool = False


_FILES = {"": Need([{MEASURES}], "compares files, one in each row")}
_LOOKS = Need([{IMAGES, MEASURES}], "compares images, one in each row")
_IMAGES = {"": Need([{IMAGES}], "is for images")}
_READ_IMAGES = {"": Need([{IMAGES}], "is for images", reads=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The declaration of an option.

    Attributes:
        name: the keyword; the flag of the command line is the same with dashes.
        annotation: the type of the field.
        default: the field's default.
        help: what the option does, from the docstring of its dataclass: one sentence without a
            capital. Values and other code are in backticks; see :attr:`plain_help`.
        choices: the allowed values, those of a ``Literal`` by default; None: any value is allowed.
        words: some of the allowed values, if other values have a form of their own.
        metavar: the placeholder in a usage line, a unit or form: ``MB``, ``FILE``, or
            ``H W`` for two values; empty: the choices.
        accepts: types that the keyword takes besides those of the field, as text.
        unset: what happens by default, if the default is None or empty.
        above_zero: only numbers above 0 are allowed.
        affects_bytes: the option affects the output, and is recorded in ``dataset.json``.
        if_given: it is recorded only if it differs from its default: datasets without it are the
            same as before it existed.
        needs: what it needs to act in a task, by its value, or by an empty text for any value; a
            task without it refuses the option.
        heading: heading of this option and the next ones in a command's help; empty: the heading
            of the previous option.
    """

    name: str
    annotation: Any
    default: Any
    help: str
    choices: Collection[str] | None = None
    words: Collection[str] = ()
    metavar: str = ""
    accepts: str = ""
    unset: str = ""
    above_zero: bool = False
    affects_bytes: bool = True
    if_given: bool = False
    needs: Mapping[str, Need] = field(default_factory=dict)
    heading: str = ""

    @property
    def decode(self) -> Callable[[Any], Any] | None:
        """The function that decodes a merged option; None if the value is taken as it is."""
        return getattr(self.annotation, "of", None)

    @property
    def known_values(self) -> Collection[str]:
        """The values that can be listed."""
        return self.words if self.choices is None else self.choices

    @property
    def several(self) -> bool:
        """Whether the option takes a list of any length."""
        return Ellipsis in get_args(self.annotation)

    @property
    def kind(self) -> type[str] | type[int] | type[float]:
        """The type of a value on the command line; lists and shares are text."""
        parts = get_args(self.annotation)
        kinds = (self.annotation, *parts, *chain.from_iterable(map(get_args, parts)))
        return next((kind for kind in (int, float) if kind in kinds), str)

    @property
    def plain_help(self) -> str:
        """The help as plain text."""
        return self.help.replace("`", "")

    @property
    def default_text(self) -> str:
        """The default as a user would type it; empty for None."""
        if isinstance(self.default, tuple):
            return " ".join(map(str, self.default))
        return "" if self.default is None else str(self.default)


def option(default: Any, *, affects_bytes: bool = True, **more: Any) -> Any:
    """Declare a field as an option; ``more`` are further attributes of :class:`Option`."""
    return field(default=default, metadata={"affects_bytes": affects_bytes, **more})


def declared_options(config: type) -> Mapping[str, Option]:
    """Return the options that a dataclass declares, by name; its docstring has their help."""
    kinds, texts = get_type_hints(config), dict(attributes(config))
    found = {}
    for item in fields(config):
        if item.metadata:
            name, kind = item.name, kinds[item.name]
            values = {"choices": get_args(kind)} if get_origin(kind) is Literal else {}
            help = " ".join(texts.get(name, "").split()).removesuffix(".")
            settings: dict[str, Any] = {**values, **item.metadata}
            found[name] = Option(
                name=name, annotation=kind, default=item.default, help=help, **settings
            )
    return found


def without_unset(values: Mapping[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the parameters of a pipeline's step that are set.

    0 and an empty text mean None: not every backend has parameters without a value.
    """
    unset = {name for name, option in options.items() if option.default is None}
    return {name: value for name, value in values.items() if value or name not in unset}


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """How to convert. Every field has the name of its command-line option.

    Attributes:
        task: task of the rows; `auto`: detected from the first lines.
        format: format of the source, such as `csv`, `folder` of images by label, `text_folder`,
            `conll`, `coco`, or an installed one; `auto`: detected.
        encoding: encoding of the import files, or of a folder of texts: `cp1252`, `shift_jis`,
            `gb18030`.
        columns: column of each role, by name, JSON key or number from 1, such as
            `path=image_id,label=source`, or a path made of columns, `path=train/{image_id}.jpg`;
            for tables `target=price` with its kind, `target:class` or `target:number`, and
            `weight`; `header=yes` or `no`; `uncertain=0` or `1`: what -1 and empty fields of
            labels mean; `offsets=utf16` or `bytes` if entities do not count characters; roles:
            path, text, split, label, mask, xmin, ymin, xmax, ymax, xyxy, xywh, center_xywh, width,
            height, start, end, target, weight.
        layout: what the paths of a folder say, such as `{split}/{label}/{name}.jpg`,
            `{label}.{n}.jpg` or `images/{name}.jpg masks/{name}_mask.png`, whose second file has
            the mask, boxes or labels; words: `split`, `label`, `group`, and any others,
            `{n:digits}` for a number; `*`: any part of a name; `**/`: any folders; `[…]`: may be
            missing.
        image_root: folder or URL where the paths of rows start, such as `train/`; its files are
            listed once, so that a path may lack its suffix or its folder, or have another suffix or
            letter case, if only one file fits.
        schema: kinds of a table's columns, as JSON such as `{"photo": "image", "age": "int"}` or a
            file of it; or the TensorFlow Metadata schema (`.pbtxt`) with the types of the columns.
        seed: seed of order, shards and assigned splits; the same seed gives the same bytes.
        split: shares of train,eval,test for rows without a split; `names=yes` takes the split from
            the name of an import file or its folder, as in `train_labels.csv`, and `names=no` does
            not; by default it does if the names say several splits, or a single name says little
            else.
        eval_from: move a share of a split to eval, for data without eval rows: `train:10` moves 10
            % of train.
        group_by: rows that share a split: those with the same `uri`; `content`: files with the same
            bytes; `near`: images that look nearly the same; or rows of a group, such as the images
            of a patient: the value of a column (name, JSON key or number from 1) or the match of a
            regular expression in the uri; `content` and `near` read each such file once more.
        duplicates: rows that name different files with the same bytes: `keep` them all, `drop` all
            but the first, or `fail`; `drop` and `fail` read each file once more.
        stratify: `label`: give each split its share of each label, to within one example; `none`:
            only its approximate share of all rows.
        missing_split: `assign` a split to rows without one, or `drop` them if any other row names a
            split, as Vertex AI does.
        labels: number labels as sorted `text`, or keep the numbers of `integer` labels; `auto`:
            keep them if all labels are whole numbers; `none`: no row has a label, as in data to
            predict.
        label_separator: characters between several labels in one field, such as `|` in `cat|dog`.
        vocabulary: a `labels.txt` or an earlier output whose labels keep their numbers; new labels
            get the next numbers.
        shard_by: mix the labels of a split in its shards (`hash`), or give each `label` its own
            shards.
        shard_mb: target size of a shard, in MB of 10^6 bytes.
        compression: compression of the shards; `gzip` adds .gz to their names.
        check: how images are checked: `decode` them to the last bit, read only the `header`, or
            `none`.
        limit: what an image may cost: `mb` of its file (10^6 bytes), `pixels`, `seconds` of
            processor time for its check; larger ones are rejected; `memory`: MB for decoded images
            in each process, by default half of the machine's or container's divided by its cores.
        image_size: downscale larger images: `512max` and `256short` limit the longer or the shorter
            side, `224x224` gives all images the shape of this height and width; one number means a
            square.
        resize: how an image gets the shape of an `image_size` such as `224x224`: `stretch` it,
            `fit` it between black bars, or `center_crop` it.
        encode: format of stored images: `keep` JPEG as JPEG and store others as PNG if they must be
            encoded, or `jpeg` or `png` for all, with a quality as in `jpeg:90` (default 92); `raw`:
            their pixels, which training reads without decoding; `mixed`: raw up to 65,536 pixels
            (256×256), larger ones encoded, as in `mixed:jpeg:90`; files that need no change keep
            their bytes.
        bad_boxes: what to do with a box that is inverted or extends beyond the image: `clip` it or
            swap its corners, `drop` it, or `reject` its image; an empty box is dropped or its image
            rejected.
        box_orientation: whether boxes and masks refer to the image as `stored` in its file, and are
            rotated with it by its Exif orientation, or to the `upright` image that people see.
        max_reject_fraction: fail above this share of rejected rows, from 0 to 1.
        lint: checks of the data that run: codes such as `LEAK`, `error` or `warning` for all codes
            of that level, or `ALL`; `-CODE` skips a check, and `-ALL` all of them;
            `FEW_EXAMPLES=50` sets the number from which on a check reports.
        fail_on: fail instead of writing a dataset if there are findings of these codes, of `error`
            or of `warning`.
        allow: what rows may reach: a URL scheme such as `https` beside the usual ones; and folders
            or URL prefixes such as `gs://bucket/images`, then nothing outside of them.
        threads: threads per worker that fetch and check files; on this machine, of all processes
            together.
    """

    task: str = option(AUTO, choices=TASK_CHOICES, metavar="NAME", heading="input")
    format: str = option(AUTO, choices=FORMAT_CHOICES, metavar="NAME")
    encoding: str = option(
        "", metavar="NAME", unset="UTF-8, or what a byte order mark shows", if_given=True
    )
    columns: Columns = option(Columns(), metavar="ROLE=NAME,…", unset="detected")
    layout: str = option("", metavar="PATTERN", unset="known forms of folders", if_given=True)
    image_root: str = option(
        "",
        metavar="FOLDER",
        accepts="os.PathLike[str]",
        unset="the folder of the import file",
        if_given=True,
    )
    schema: str = option(
        "", metavar="FILE", accepts="Mapping[str, str] | Schema", unset="inferred from all rows"
    )
    seed: int = option(0, metavar="N", heading="splits")
    split: SplitRule = option(SplitRule(), metavar="T,E,T")
    eval_from: str = option("", metavar="SPLIT:PERCENT", unset="none")
    group_by: str = option(
        "uri",
        words=_BY_FILE,
        metavar="uri|content|near|COLUMN|REGEX",
        needs={"content": _FILES[""], "near": _LOOKS},
    )
    duplicates: Duplicates = option("keep", needs=_FILES)
    stratify: Stratify = option("none")
    missing_split: MissingSplit = option("assign")
    labels: Labels = option("auto", heading="labels")
    label_separator: str = option(
        "", metavar="TEXT", unset="a field holds one label", if_given=True
    )
    vocabulary: str = option("", metavar="FILE|OUT", unset="none")
    shard_by: ShardBy = option("hash", heading="shards")
    shard_mb: float = option(128, metavar="MB", above_zero=True)
    compression: Compression = option("none")
    check: Check = option("decode", needs=_IMAGES, heading="images")
    limit: Limits = option(Limits(), metavar="NAME=VALUE,…")
    image_size: ImageSizing = option(
        ImageSizing(), metavar="Nmax|Nshort|HxW", unset="as they are", needs=_READ_IMAGES
    )
    resize: Resize = option("stretch", needs=_READ_IMAGES)
    encode: Encoding = option(
        Encoding(),
        words=(KEEP, JPEG, PNG, RAW, MIXED),
        metavar="FORMAT[:QUALITY]",
        needs=_READ_IMAGES,
    )
    bad_boxes: BadBoxes = option(
        "clip", needs={"": Need([{BOXES}], "is for boxes")}, heading="boxes"
    )
    box_orientation: BoxOrientation = option(
        "stored", needs={"": Need([{BOXES}, {MASKS}], "is for boxes and masks", reads=True)}
    )
    # Not an option: the rows come from a pipeline's step (recordgen.storage.access).
    confined: bool = False
    # Not an option: the detected columns of a table (recordgen.tables.columns.Table).
    table: str = ""
    max_reject_fraction: float = option(0.01, metavar="F", heading="rejects")
    lint: tuple[str, ...] = option(
        (),
        metavar="CODE|-CODE|CODE=N",
        unset="20 checks",
        affects_bytes=False,
        heading="checks of the data",
    )
    fail_on: tuple[str, ...] = option((), metavar="CODE", unset="none", affects_bytes=False)
    allow: tuple[str, ...] = option(
        (), metavar="SCHEME|PREFIX", unset="the storage of the import file", heading="access"
    )
    threads: int | None = option(
        None,
        metavar="N",
        unset="one per core, at least two",
        above_zero=True,
        affects_bytes=False,
        heading="the run",
    )

    def __post_init__(self) -> None:
        # Resolved here and not by workers, which have their own working directories.
        self._set("allow", tuple(map(resolved, self.allow)))
        for name, declared in OPTIONS.items():
            if declared.decode is not None:
                self._set(name, declared.decode(getattr(self, name)))
        for name in ("image_root", "vocabulary", "schema"):
            self._set(name, storage.normal(getattr(self, name)))
        self._settle_schema()
        self._settle_layout()
        for name, declared in OPTIONS.items():
            value = getattr(self, name)
            if declared.choices is not None:
                check_one_of(name, value, declared.choices)
            is_number = isinstance(value, int | float) and 0 < value < math.inf
            if declared.above_zero and value is not declared.default and not is_number:
                raise UsageError(f"{name} must be a number above 0 (got {value!r})")
        if (share := self.eval_share) is not None:
            self._set("eval_from", str(share))  # one spelling, for --append
        self._set("encoding", known_encoding(self.encoding))
        # The rows of a group may have several labels.
        if self.stratify != "none" and (self.splits_by_content or self.grouping is not None):
            raise UsageError(
                f"stratify=label cannot keep groups together: their rows may have several labels; "
                f"give only one of --stratify and --group-by, or duplicates=drop for copies (got "
                f"group_by={self.group_by})"
            )
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
        if self.resize != OPTIONS["resize"].default and self.image_size.rule != "shape":
            raise UsageError(
                f"resize={self.resize} needs an image_size such as 224x224, the height and width "
                f"of images"
            )
        self._check_unread()
        _ = self.grouping, self.access, self.selection  # they check their options, too

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _settle_schema(self) -> None:
        """Normalise a schema of columns, which implies the task. Raises: UsageError."""
        schema = self.declared_schema
        if schema is None:
            return
        if self.task not in (AUTO, OF_SCHEMAS):
            raise UsageError(
                f"schema declares the columns, but the task {self.task} has its own; give only "
                f"one of them"
            )
        self._set("schema", json.dumps(schema.to_json(), ensure_ascii=False))
        self._set("task", OF_SCHEMAS)

    def _settle_layout(self) -> None:
        """Check a layout, which implies the format and what groups rows. Raises: UsageError."""
        if not self.layout:
            if self.format == OF_LAYOUTS:
                raise UsageError(f"the format {OF_LAYOUTS} needs the option layout")
            return
        words = PathLayout.of(self.layout).first.words
        if self.format not in (AUTO, OF_LAYOUTS) or self.columns.roles:
            other = "columns" if self.columns.roles else f"format={self.format}"
            raise UsageError(f"layout says how to read a folder; omit it, or {other}")
        self._set("format", OF_LAYOUTS)
        if GROUP in words and self.group_by == OPTIONS["group_by"].default:
            self._set("group_by", GROUP)
        if self.grouping and self.grouping.column not in ("", *words):
            raise UsageError(
                f"group_by={self.group_by} is no word of the layout, which has {', '.join(words)}"
            )

    def _check_unread(self) -> None:
        """Check that images are read if an option needs their content. Raises: UsageError."""
        for name, declared in OPTIONS.items():
            is_given = getattr(self, name) != declared.default
            reads = any(need.reads for need in declared.needs.values())
            if is_given and reads and self.check == "none":
                raise UsageError(
                    f"{name} needs check=decode or check=header: check=none passes images through "
                    f"unread"
                )

    @cached_property
    def declared_schema(self) -> Schema | None:
        """The declared columns; None if there are none."""
        return Schema.from_json(self.schema) if self.schema and not self.schema_file else None

    @cached_property
    def inferred_table(self) -> Table | None:
        """The detected columns of a table; None if there are none."""
        return Table.from_json(self.table) if self.table else None

    @property
    def schema_file(self) -> str:
        """Path or URL of the TensorFlow Metadata schema; empty if there is none."""
        return self.schema if self.schema.lower().endswith(_TFMD_SUFFIX) else ""

    @property
    def shard_bytes(self) -> int:
        """Target size of a shard in bytes."""
        return max(1, int(self.shard_mb * 1_000_000))

    @cached_property
    def eval_share(self) -> EvalFrom | None:
        """The decoded ``eval_from``; None if it is not given. Raises: UsageError."""
        return EvalFrom.parse(self.eval_from) if self.eval_from else None

    @cached_property
    def grouping(self) -> GroupBy | None:
        """The column or pattern of groups; None if rows form no groups. Raises: UsageError."""
        return None if self.group_by in _BY_FILE else GroupBy.parse(self.group_by)

    @property
    def splits_by_content(self) -> bool:
        """Whether files are read to assign splits."""
        return self.group_by in ("content", "near")

    @property
    def finds_alike(self) -> bool:
        """Whether images are compared to assign splits."""
        return self.group_by == "near"

    def of_tables(self) -> list[str]:
        """Return the given options that are for tables only, as a user spells them."""
        roles = [f"columns {role}={name}" for role, [name, *_] in self.columns.by_role]
        given = [each for each in roles if each.split()[1].partition("=")[0] in TABLE_ROLES]
        return [*given, *(["schema (.pbtxt)"] if self.schema_file else [])]

    @cached_property
    def access(self) -> Access:
        """The files and URLs that rows may reach. Raises: UsageError."""
        return Access.of(self.allow, confined=self.confined, image_root=self.image_root)

    @cached_property
    def selection(self) -> Selection:
        """The checks of the data. Raises: UsageError."""
        return Selection.of(self.lint, self.fail_on)

    def recorded(self) -> dict[str, Any]:
        """Return the options that affect the output, as ``dataset.json`` has them."""
        values: dict[str, Any] = {
            item.name: _recorded(getattr(self, item.name))
            for item in fields(self)
            if item.metadata.get("affects_bytes", True)
        }
        for name, option in OPTIONS.items():
            if option.if_given and values[name] == option.default:
                del values[name]
        del values["confined"]  # it selects rows, but does not change their examples
        values["schema"] = "" if self.schema_file else self.schema  # `table` has its types
        values["allow"] = list(map(without_secrets, self.allow))  # JSON has no tuples
        values["vocabulary"] = without_secrets(self.vocabulary)
        return values


def _recorded(value: Any) -> Any:
    """Return a value as ``dataset.json`` has it: a merged option is one text."""
    return getattr(value, "recorded", str(value)) if hasattr(type(value), "of") else value


#: All options, in the order of the help.
OPTIONS = declared_options(ConvertOptions)


def recorded_defaults() -> dict[str, Any]:
    """Return the values of the options that a ``dataset.json`` does not name."""
    return ConvertOptions().recorded()


def recorded_there(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a ``dataset.json`` records, each in its one spelling."""
    there = {**recorded_defaults(), **options}
    for name, declared in OPTIONS.items():
        if declared.decode is not None:
            there[name] = _recorded(declared.decode(there[name]))
    return there


def differing(
    there: Mapping[str, Any], here: Mapping[str, Any], names: Iterable[str]
) -> tuple[str, ...]:
    """Return the options that differ: ``split is 'train:90,eval:10' there and … here``."""
    return tuple(
        f"{name} is {there.get(name)!r} there and {here.get(name)!r} here"
        for name in names
        if there.get(name) != here.get(name)
    )


class OptionValues(TypedDict, total=False):
    """The options as keywords of ``convert``, ``check`` and ``plan``, for editors."""

    # options: made by `make options`
    task: str
    format: str
    encoding: str
    columns: str | Mapping[str, str | int | Sequence[str | int]] | Columns
    layout: str
    image_root: str | os.PathLike[str]
    schema: str | Mapping[str, str] | Schema
    seed: int
    split: str | Sequence[int] | Mapping[str, int | str] | SplitFractions | SplitRule
    eval_from: str
    group_by: str
    duplicates: Duplicates
    stratify: Stratify
    missing_split: MissingSplit
    labels: Labels
    label_separator: str
    vocabulary: str
    shard_by: ShardBy
    shard_mb: float
    compression: Compression
    check: Check
    limit: str | Mapping[str, float] | Limits
    image_size: str | int | Sequence[int] | ImageSizing
    resize: Resize
    encode: str | Encoding
    bad_boxes: BadBoxes
    box_orientation: BoxOrientation
    max_reject_fraction: float
    lint: str | Sequence[str]
    fail_on: str | Sequence[str]
    allow: str | Sequence[str]
    threads: int | None
    # /options


#: Lists the options in the signature of a function that takes them as ``**options``.
takes_options = takes(OptionValues, ConvertOptions)


def make_options(values: Mapping[str, Any]) -> ConvertOptions:
    """Decode keyword options; lists may be text, and each merged option has its own forms.

    Raises: UsageError: a name is unknown, or a value is not allowed.
    """
    check_names(values, tuple(OPTIONS))
    decoded: dict[str, Any] = {}
    for name, value in values.items():
        declared = OPTIONS[name]
        if value is None and isinstance(declared.default, str) and declared.choices is None:
            continue  # None means the default of a text
        if declared.several:
            value = parse_names(name, value)
        elif name == "schema" and isinstance(value, Mapping | Schema):
            schema = value if isinstance(value, Schema) else Schema(value)
            value = json.dumps(schema.to_json(), ensure_ascii=False)
        decoded[name] = _text(name, value) if isinstance(declared.default, str) else value
        for text in decoded[name] if declared.several else [decoded[name]]:
            if isinstance(text, str) and text.encode("utf-8", "replace").decode() != text:
                raise UsageError(f"{name} must be UTF-8 (got {text!r:.80})")
    return ConvertOptions(**decoded)


def option_text(name: str, value: Any) -> Any:
    """Return a value as text if its option is merged, for pipelines that carry no objects.

    Raises: UsageError: the value has no form of the option.
    """
    decode = OPTIONS[name].decode
    is_value = isinstance(value, str | int | Mapping | Sequence) or hasattr(type(value), "of")
    return str(decode(value)) if decode is not None and is_value else value


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
    return () if names == ("none",) else names
