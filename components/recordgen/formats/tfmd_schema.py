"""Types of columns from a TensorFlow Metadata schema, as TFX's SchemaGen and TFDV write it."""

from __future__ import annotations

from recordgen import storage
from recordgen.errors import SourceError, UsageError


def column_types(path: str) -> dict[str, str]:
    """Return the dtype of each column that a schema (pbtxt) names.

    ``feature {name: "age" type: INT}`` → ``{"age": "int64"}``

    Raises:
        UsageError: tensorflow_metadata is not installed.
        SourceError: the file is missing, is not a schema, or lacks a type.
    """
    try:
        from google.protobuf import text_format
        from tensorflow_metadata.proto.v0 import schema_pb2
    except ImportError as exc:
        raise UsageError(
            "a .pbtxt schema needs tensorflow_metadata: pip install tensorflow-metadata"
        ) from exc
    try:
        text = storage.read_text(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this schema: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise SourceError(
            f"{path}: this schema is not UTF-8 (byte {exc.start + 1}); it must be text (pbtxt)"
        ) from exc
    try:
        schema = text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as exc:
        raise SourceError(f"{path}: not a TensorFlow Metadata schema as text: {exc}") from exc
    dtypes = {
        schema_pb2.INT: "int64",
        schema_pb2.FLOAT: "float32",
        schema_pb2.BYTES: "bytes",
    }
    for feature in schema.feature:
        if feature.type not in dtypes:
            raise SourceError(
                f"{path}: the type of {feature.name!r} must be INT, FLOAT or BYTES (got "
                f"{schema_pb2.FeatureType.Name(feature.type)})"
            )
    if not schema.feature:
        raise SourceError(f"{path}: this schema names no feature")
    return {feature.name: dtypes[feature.type] for feature in schema.feature}
