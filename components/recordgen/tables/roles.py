"""The option ``columns``: the role of each column in an import file, and how its lines read.

A role is the use of a column. Its value names the column: by its name in the header, by the key of
JSON objects, or by its number, counted from 1.

    image=image_id,label=source   →  roles {"path": ("image_id",), "label": ("source",)}
    path=1,label=3,label=4        →  roles {"path": ("1",), "label": ("3", "4")}
    header=no,target:class=5      →  no header; the target is column 5, a class
    offsets=utf16                 →  offsets of entities count UTF-16 units
    label=cat|dog,uncertain=0     →  one-hot columns, in which -1 and an empty field mean 0
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recordgen.errors import UsageError, check_one_of, did_you_mean
from recordgen.messages.masking import without_secrets

#: The image's size in pixels, for boxes in pixels.
SIZE_ROLES = ("width", "height")
BOX_ROLES = ("xmin", "ymin", "xmax", "ymax")
#: A column of boxes of four numbers: two corners, or one and the width and height.
BOX_LISTS = ("xyxy", "xywh", "center_xywh")
SEGMENT_ROLES = ("start", "end")
#: The roles that only tables have.
TABLE_ROLES = ("target", "weight")
ROLES = (
    *("path", "text", "split", "label", "mask"),
    *(*BOX_ROLES, *BOX_LISTS, *SIZE_ROLES, *SEGMENT_ROLES, *TABLE_ROLES),
)

# Other names of a role: what the path names.
_SAME = {"image": "path", "video": "path", "uri": "path"}

#: The value of a setting that is detected.
AUTO = "auto"

# How the lines read: names in the option that are no roles, with their values.
_SETTINGS: Mapping[str, Sequence[str]] = {
    "header": (AUTO, "yes", "no"),
    "offsets": (AUTO, "codepoints", "utf16", "bytes"),
    "uncertain": (AUTO, "0", "1"),
}

# The kinds of a target, ``target:class``, by what they mean for training.
_TARGETS = {"class": "classification", "number": "regression"}

#: The column of a label's number, and of its name beside it, as the hub's datasets call it.
LABEL, LABEL_TEXT = "label", "label_text"
#: The role of such a number beside its name, which nothing reads.
LABEL_NUMBER = "label_number"

Roles = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an import file, as far as the user names them."""

    # Role and its columns, in the order of ROLES.
    by_role: tuple[tuple[str, tuple[str, ...]], ...] = ()
    header: str = AUTO  # whether the first line is a header: `auto`, `yes` or `no`
    prediction: str = AUTO  # what the target is: `auto`, `classification` or `regression`
    # The unit of the offsets of entities: `auto`, `codepoints`, `utf16` or `bytes`.
    offsets: str = AUTO
    # What -1 means in one-hot columns: `0` or `1`, and an empty field 0; `auto`: an error.
    uncertain: str = AUTO

    @classmethod
    def of(
        cls, given: str | Mapping[str, str | int | Sequence[str | int]] | Columns | None
    ) -> Columns:
        """Decode ``NAME=VALUE`` pairs, quoted as in a CSV line, or a mapping.

        The value for labels in a mapping may be several columns.

        Raises: UsageError: a name is unknown or given twice, or a pair has no ``=`` or no value.
        """
        if isinstance(given, Columns):
            return given
        found: dict[str, tuple[str, ...]] = {}
        settings: dict[str, str] = {}
        if not isinstance(given, str | Mapping | None):
            raise UsageError(f"columns must be a text or a mapping (got {given!r:.80})")
        for name, value in _pairs(given or ""):
            if not value:
                raise UsageError(f"columns: {name!r} needs the name of a column (got none)")
            if name in _SETTINGS:
                check_one_of(f"columns: {name}", value, _SETTINGS[name])
                settings[name] = value
                continue
            role, _, kind = name.partition(":")
            if kind:
                if role != "target" or kind not in _TARGETS:
                    raise UsageError(
                        f"columns: only the target has a kind, target:class or target:number (got "
                        f"{name!r})"
                    )
                settings["prediction"] = _TARGETS[kind]
            role = _SAME.get(role, role)
            if role not in ROLES:
                known = (*ROLES, *_SETTINGS)
                hint = did_you_mean(role, known, f"; roles: {', '.join(known)}")
                raise UsageError(f"columns: there is no role {role!r}{hint}")
            if role in found and role != LABEL:  # several columns may have labels
                raise UsageError(
                    f"columns: the role {role!r} must have one column (got {found[role][0]} and "
                    f"{value})"
                )
            found[role] = (*found.get(role, ()), value)
        if len(found.keys() & {*BOX_LISTS}) > 1:
            raise UsageError(f"columns: boxes have one form of {', '.join(BOX_LISTS)}")
        return cls(tuple((role, found[role]) for role in ROLES if role in found), **settings)

    @property
    def roles(self) -> Roles:
        """The named columns by role."""
        return dict(self.by_role)

    @property
    def split(self) -> str:
        """The column of the split; empty if none is named."""
        return self._only("split")

    @property
    def target(self) -> str:
        """The column to predict; empty if none is named."""
        return self._only("target")

    @property
    def weight(self) -> str:
        """The column of weights; empty if none is named."""
        return self._only("weight")

    @property
    def recorded(self) -> str:
        """The columns as ``dataset.json`` has them, without secrets in a URL made of columns."""
        by_role = ((role, tuple(map(without_secrets, names))) for role, names in self.by_role)
        return str(replace(self, by_role=tuple(by_role)))

    def _only(self, role: str) -> str:
        return self.roles.get(role, ("",))[0]

    def __str__(self) -> str:
        """Return text for :meth:`of`; equal columns have equal texts."""
        kinds = {meaning: f":{kind}" for kind, meaning in _TARGETS.items()}
        pairs = [
            f"{role}{kinds.get(self.prediction, '') if role == 'target' else ''}={name}"
            for role, names in self.by_role
            for name in names
        ]
        values = {name: getattr(self, name) for name in _SETTINGS}
        pairs += [f"{name}={value}" for name, value in values.items() if value != AUTO]
        line = io.StringIO(newline="")
        csv.writer(line, lineterminator="").writerow(pairs)
        return line.getvalue()


def _pairs(value: str | Mapping[str, Any]) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [
            (str(role), _text(name))
            for role, names in value.items()
            for name in ([names] if isinstance(names, str | int) else names)
        ]
    if not value.strip():
        return []
    try:
        [items] = csv.reader([value], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as exc:
        raise UsageError(f"columns: quotes must be balanced ({exc}; got {value!r})") from exc
    pairs = []
    for item in items:
        role, equals, name = item.partition("=")
        if not equals:
            raise UsageError(
                f"columns must be comma-separated ROLE=NAME pairs, such as "
                f"path=image_id,label=source (got {item!r})"
            )
        pairs.append((role.strip().lower(), name.strip()))
    return pairs


def _text(name: str | int) -> str:
    """Return a column as text; True and False are the values of ``header``."""
    return ("no", "yes")[name] if isinstance(name, bool) else str(name).strip()


#: Known names of a column of labels.
MASK_COLUMNS = frozenset(
    {"mask", "mask_path", "mask_uri", "mask_file", "mask_filename", "mask_image", "segmentation"}
)
SIZE_COLUMNS: Mapping[str, frozenset[str]] = {
    "width": frozenset({"width", "image_width", "img_width"}),
    "height": frozenset({"height", "image_height", "img_height"}),
}
LABEL_COLUMNS = frozenset(
    {"label", "labels", "label_name", "class", "class_name", "display_name", "category"}
    | {"category_name"}
)
