"""Which columns of a Parquet file hold images, labels and objects.

Types decide, and the features that Hugging Face declares in the metadata of a schema; then names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordgen.errors import NotUnderstoodError
from recordgen.formats.column_names import SPLIT_COLUMNS, column_name
from recordgen.formats.field_kinds import IMAGE_WORD
from recordgen.formats.given_columns import GivenColumns
from recordgen.formats.header import NOTHING_GIVEN, Given
from recordgen.formats.json_values import json_value
from recordgen.formats.listing import Listing
from recordgen.formats.objects import class_names, names_beside
from recordgen.tables.roles import LABEL_COLUMNS, MASK_COLUMNS

#: The columns with the size of an image.
SIZE = ("width", "height")

# Columns that name an image, which need not be read.
_NAMES = ("id", "image_id", "source_id", "file_name", "filename", "image_name")


@dataclass(frozen=True)
class ParquetColumns:
    """Which columns of a file hold what.

    Attributes:
        leaf: the path of their bytes.
        mask: the column of masks; "" if there is none.
        mask_leaf: the path of their bytes.
        label: the column of labels; "" if there is none.
        objects: the column of objects; "" if there is none.
        several: a row may have several labels.
        names: the names of classes by number.
        given: the columns that options name, which are read instead of the others.
    """

    image: str
    leaf: str
    mask: str
    mask_leaf: str
    label: str
    objects: str
    several: bool
    names: Sequence[str]
    read: Sequence[str]
    given: GivenColumns


def columns_of(
    file: Any, listing: Listing, document: str, given: Given = NOTHING_GIVEN
) -> ParquetColumns | None:
    """Return the columns of images, labels and objects; None without images.

    Raises:
        UsageError: a given column is missing.
        NotUnderstoodError: a column has no known role, and options do not name that of the images.
    """
    import pyarrow as pa

    schema, where = file.schema_arrow, f"{listing.root}{document}"
    features, by_role = features_in(schema.metadata or {}), GivenColumns(given)
    leaves = dict(image_leaves(schema, features, by_role.image))
    is_labelled = any(column_name(name) in LABEL_COLUMNS for name in schema.names)
    masks = [name for name in leaves if column_name(name) in MASK_COLUMNS and not is_labelled]
    mask = by_role.mask or "".join(masks[:1])
    mask_leaf = leaves.pop(mask, "") or image_leaves(schema, features, mask).get(mask, "")
    if not leaves:
        return None
    by_role.check(schema.names, where)
    others = [field for field in schema if field.name not in leaves]
    objects = next((field.name for field in others if _has_boxes(field.type)), "")
    label = proposed = "" if objects else _label_in(others, features)
    if by_role.has_labels or by_role.has_boxes:
        objects, label = "", next((n for n in by_role.names if n in given.keys_of("label")), "")
    known = {label, objects, mask, f"{mask}_source_id", *by_role.names, *SIZE, *_NAMES}
    others = [field for field in others if field.name not in known]
    has_label = bool(label or objects or mask or by_role.has_labels)
    if not by_role.image and (len(leaves) > 1 or others or not has_label):
        raise _not_understood(where, [*leaves], proposed, others, schema.names)
    image = by_role.image or next(iter(leaves))
    used = objects or label
    names = class_names(features.get(used)) or names_beside(listing, document, used)
    label = "" if mask else label  # the pixels show the classes
    several = bool(label) and pa.types.is_list(schema.field(label).type)
    wanted = [image, mask, label, objects, *by_role.names, *SIZE]
    read = [name for name in dict.fromkeys(wanted) if name in schema.names]
    several &= not by_role.has_boxes
    leaf = leaves[image]
    return ParquetColumns(
        *(image, leaf, mask, mask_leaf, label, objects, several, names, read), given=by_role
    )


def _not_understood(
    where: str, images: Sequence[str], label: str, others: Sequence[Any], names: Sequence[str]
) -> NotUnderstoodError:
    unknown = [field.name for field in others] or images[1:] or images
    split = next((name for name in unknown if column_name(name) in SPLIT_COLUMNS), "")
    found = {"image": images[0], "split": split, "label": label}
    roles = ",".join(f"{role}={name}" for role, name in found.items() if name)
    return NotUnderstoodError(
        f"{where}: no role is known for {', '.join(unknown):.200}",
        shown=f"columns: {', '.join(names):.200}",
        options={"columns": roles},
    )


def image_leaves(schema: Any, features: Mapping[str, Any], given: str = "") -> Mapping[str, str]:
    """Return the columns of images in a schema of Arrow, and the path of their bytes.

    ``given`` is the only one, if it is not empty.
    """
    import pyarrow as pa

    leaves = {}
    for field in schema:
        kind, declared = field.type, features.get(field.name)
        inside = [kind.field(at).name for at in range(kind.num_fields)]
        is_struct = pa.types.is_struct(kind) and "bytes" in inside
        is_image = isinstance(declared, dict) and declared.get("_type") == "Image"
        is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if given not in ("", field.name):
            continue
        if is_struct:
            leaves[field.name] = f"{field.name}.bytes"
        elif is_binary and (is_image or given or IMAGE_WORD.search(field.name)):
            leaves[field.name] = field.name
    return leaves


def _has_boxes(kind: Any) -> bool:
    """Return whether a column has a field ``bbox`` in a struct, or in a list of structs."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        kind = kind.value_type
    return pa.types.is_struct(kind) and kind.get_field_index("bbox") >= 0


def _label_in(others: Sequence[Any], features: Mapping[str, Any]) -> str:
    """Return the column of labels; "" if there is not exactly one."""
    declared = [field.name for field in others if class_names(features.get(field.name))]
    known = [field.name for field in others if field.name.strip().lower() in LABEL_COLUMNS]
    return next((found[0] for found in (declared, known) if len(found) == 1), "")


def features_in(metadata: Mapping[bytes, bytes]) -> Mapping[str, Any]:
    """Return the features that Hugging Face declares in the metadata of a schema."""
    try:
        found = json_value(metadata.get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
