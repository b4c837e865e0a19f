"""``tf.train.Example`` without TensorFlow.

A conversion worker needs no TensorFlow but for this one message, and importing it costs seconds
and hundreds of megabytes per worker. The message is built here from its public definition
(tensorflow/core/example/{feature,example}.proto) in a descriptor pool of its own, so it cannot
clash with TensorFlow's; a test holds the two to the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "tensorflow"

FeatureValue = bytes | int | None


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="recordgen/example.proto", package=_PACKAGE, syntax="proto3"
    )

    def message(name: str) -> descriptor_pb2.DescriptorProto:
        return file.message_type.add(name=name)

    def field(
        owner: descriptor_pb2.DescriptorProto, name: str, number: int, kind: int | str, **more: Any
    ) -> None:
        typed = (
            {"type_name": kind, "type": _FIELD.TYPE_MESSAGE}
            if isinstance(kind, str)
            else {"type": kind}
        )
        label = more.pop("label", _FIELD.LABEL_OPTIONAL)
        owner.field.add(name=name, number=number, label=label, **typed, **more)

    packed = descriptor_pb2.FieldOptions(packed=True)
    repeated = {"label": _FIELD.LABEL_REPEATED}
    field(message("BytesList"), "value", 1, _FIELD.TYPE_BYTES, **repeated)
    field(message("FloatList"), "value", 1, _FIELD.TYPE_FLOAT, options=packed, **repeated)
    field(message("Int64List"), "value", 1, _FIELD.TYPE_INT64, options=packed, **repeated)
    feature = message("Feature")
    feature.oneof_decl.add(name="kind")
    for number, kind in enumerate(("bytes", "float", "int64"), start=1):
        list_type = f".{_PACKAGE}.{kind.capitalize()}List"
        field(feature, f"{kind}_list", number, list_type, oneof_index=0)
    features = message("Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    field(entry, "key", 1, _FIELD.TYPE_STRING)
    field(entry, "value", 2, f".{_PACKAGE}.Feature")
    field(features, "feature", 1, f".{_PACKAGE}.Features.FeatureEntry", **repeated)
    field(message("Example"), "features", 1, f".{_PACKAGE}.Features")
    return file


@cache
def _example_class() -> type[Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.Example")
    if hasattr(message_factory, "GetMessageClass"):
        found: type[Any] = message_factory.GetMessageClass(descriptor)
    else:  # protobuf < 4.22
        found = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    return found


def serialize_example(values: Mapping[str, FeatureValue]) -> bytes:
    """Serialise scalar features as a ``tf.train.Example``, always to the same bytes.

    ``{"image/class/label": 0, "image/format": b"png"}`` → an Example with an int64 and a bytes
    feature. 0 and ``b""`` are kept; None leaves the feature out.
    """
    example = _example_class()()
    feature = example.features.feature
    for name, value in values.items():
        if isinstance(value, bytes):
            feature[name].bytes_list.value.append(value)
        elif value is not None:
            feature[name].int64_list.value.append(value)
    # Without `deterministic`, the order of map keys differs from process to process.
    data: bytes = example.SerializeToString(deterministic=True)
    return data


def parse_example(data: bytes) -> dict[str, list[bytes] | list[int] | list[float]]:
    """Parse a serialised ``tf.train.Example`` into plain lists by feature name, sorted.

    Raises:
        ValueError: the bytes are no Example.
    """
    example = _example_class()()
    try:
        example.ParseFromString(data)
    except Exception as exc:  # DecodeError lies in other places in other protobuf versions
        raise ValueError(f"not a tf.train.Example: {exc}") from exc
    features = example.features.feature
    return {
        name: list(getattr(features[name], features[name].WhichOneof("kind") or "bytes_list").value)
        for name in sorted(features)
    }
