"""Which columns of a Parquet file hold images, labels and objects.

Types decide, and the features that Hugging Face declares in the metadata of a schema; then names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordgen.errors import SourceError
from recordgen.formats.declared_classes import class_names
from recordgen.formats.field_kinds import IMAGE_WORD
from recordgen.formats.json_values import json_value
from recordgen.formats.listing import Listing
from recordgen.formats.objects import names_beside
from recordgen.tables.roles import LABEL_COLUMNS

#: The columns with the size of an image.
SIZE = ("width", "height")


@dataclass(frozen=True)
class ParquetColumns:
    """Which columns of a file hold what.

    Attributes:
        leaf: the path of their bytes.
        label: the column of labels; "" if there is none.
        objects: the column of objects; "" if there is none.
        several: a row may have several labels.
        names: the names of classes by number.
    """

    image: str
    leaf: str
    label: str
    objects: str
    several: bool
    names: Sequence[str]
    read: Sequence[str]


def columns_of(file: Any, listing: Listing, document: str) -> ParquetColumns | None:
    """Return the columns of images, labels and objects; None without images.

    Raises: SourceError: it is unclear which column has images or labels.
    """
    import pyarrow as pa

    schema, where = file.schema_arrow, f"{listing.root}{document}"
    features = features_in(schema.metadata or {})
    leaves = image_leaves(schema, features)
    others = [field for field in schema if field.name not in leaves]
    if not leaves:
        return None
    if len(leaves) > 1:
        raise SourceError(
            f"{where}: several columns hold images ({', '.join(leaves)}); declare them in a CSV, "
            f"and convert it with --schema"
        )
    [(image, leaf)] = leaves.items()
    objects = next((field.name for field in others if _has_boxes(field.type)), "")
    label = "" if objects else _label_in(others, features, where)
    used = next((name for name in (objects, label) if name), "")
    names = class_names(features.get(used)) or names_beside(listing, document, used)
    sides = [side for side in SIZE if side in schema.names]
    several = bool(label) and pa.types.is_list(schema.field(label).type)
    read = [name for name in (image, label, objects, *sides) if name]
    return ParquetColumns(image, leaf, label, objects, several, names, read)


def image_leaves(schema: Any, features: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the columns of images in a schema of Arrow, and the path of their bytes."""
    import pyarrow as pa

    leaves = {}
    for field in schema:
        kind, declared = field.type, features.get(field.name)
        inside = [kind.field(at).name for at in range(kind.num_fields)]
        is_struct = pa.types.is_struct(kind) and "bytes" in inside
        is_image = isinstance(declared, dict) and declared.get("_type") == "Image"
        is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if is_struct:
            leaves[field.name] = f"{field.name}.bytes"
        elif is_binary and (is_image or IMAGE_WORD.search(field.name)):
            leaves[field.name] = field.name
    return leaves


def _has_boxes(kind: Any) -> bool:
    """Return whether a column has a field ``bbox`` in a struct, or in a list of structs."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        kind = kind.value_type
    return pa.types.is_struct(kind) and kind.get_field_index("bbox") >= 0


def _label_in(others: Sequence[Any], features: Mapping[str, Any], where: str) -> str:
    """Return the column of labels. Raises: SourceError: there is not exactly one."""
    declared = [field.name for field in others if class_names(features.get(field.name))]
    known = [field.name for field in others if field.name.strip().lower() in LABEL_COLUMNS]
    for found in (declared, known):
        if len(found) == 1:
            return found[0]
    names = ", ".join(field.name for field in others) or "none"
    raise SourceError(
        f"{where}: it is unclear which column has the labels of the images (columns beside them: "
        f"{names:.200}); read the file with pandas, and rename the column to label"
    )


def features_in(metadata: Mapping[bytes, bytes]) -> Mapping[str, Any]:
    """Return the features that Hugging Face declares in the metadata of a schema."""
    try:
        found = json_value(metadata.get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
