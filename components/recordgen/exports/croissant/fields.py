"""Parts of a description in Croissant: names, files, record sets and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recordgen.core.task.stored import is_image
from recordgen.features import FeatureSpec

TYPES = {
    "bool": "sc:Boolean",
    "bytes": "sc:Text",
    **{f"float{bits}": f"cr:Float{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"cr:Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"cr:UInt{bits}" for bits in (8, 16, 32, 64)},
}

# The context of the specification's appendix, which sorts it.
_OF_CROISSANT = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty "
    "fileSet format includes isArray isLiveDataset jsonPath key md5 parentField path recordSet "
    "references regex repeated replace samplingRate separator source subField transform"
)

CONTEXT: Mapping[str, Any] = dict(
    sorted(
        {
            **{name: f"cr:{name}" for name in _OF_CROISSANT.split()},
            "@language": "en",
            "@vocab": "https://schema.org/",
            "conformsTo": "dct:conformsTo",
            "cr": "http://mlcommons.org/croissant/",
            "data": {"@id": "cr:data", "@type": "@json"},
            "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
            "dct": "http://purl.org/dc/terms/",
            "description": {"@container": "@language"},
            "examples": {"@id": "cr:examples", "@type": "@json"},
            "name": {"@container": "@language"},
            "rai": "http://mlcommons.org/croissant/RAI/",
            "sc": "https://schema.org/",
        }.items()
    )
)

# More records would make the description too large to read; they are in files anyway.
_MOST_EMBEDDED = 10_000


def named(kind: str, name: str) -> dict[str, Any]:
    """Return the start of a file, a record set or another part with a name."""
    return {"@type": kind, "@id": name, "name": name}


def file_object(name: str, kind: str, sha256: str, size: int) -> dict[str, Any]:
    """Return a file; ``kind`` is its media type, and ``size`` its bytes."""
    return {
        **named("cr:FileObject", name),
        "contentUrl": name,
        "contentSize": f"{size} B",
        "encodingFormat": kind,
        "sha256": sha256,
    }


def embedded(
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    *,
    key: str,
    kind: str | None = None,
) -> dict[str, Any] | None:
    """Return a record set with its records; None if there are none, or too many."""
    if not rows or len(rows) > _MOST_EMBEDDED:
        return None
    return {
        **named("cr:RecordSet", name),
        **({} if kind is None else {"dataType": kind}),
        "key": {"@id": f"{name}/{key}"},
        "field": columns_of(name, columns),
        "data": [{f"{name}/{column}": row[column] for column in columns} for row in rows],
    }


def columns_of(
    record_set: str, columns: Mapping[str, str], source: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the fields for columns and their types; ``source`` is the file with the columns."""
    return [
        {
            "@type": "cr:Field",
            "@id": f"{record_set}/{name}",
            "name": name,
            "dataType": data_type,
            **({} if source is None else {"source": {**source, "extract": {"column": name}}}),
        }
        for name, data_type in columns.items()
    ]


def field_of(
    record_set: str, name: str, spec: FeatureSpec, source: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the field for a feature; ``source`` is the file with its column."""
    found: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{record_set}/feature/{name}",
        "name": name,
        "dataType": "sc:ImageObject" if is_image(name) else TYPES[spec.dtype],
        "source": {**source, "extract": {"column": name}},
    }
    if spec.shape is None:
        found |= {"isArray": True, "arrayShape": "-1"}
    elif spec.shape:
        found |= {"isArray": True, "arrayShape": ",".join(map(str, spec.shape))}
    return found
