"""``tf.train.Example`` without TensorFlow.

A conversion worker needs no TensorFlow but for this one message, and importing it costs seconds
and hundreds of megabytes per worker. Writing lays out the protobuf wire format itself, so that an
image's bytes are handed on and never copied; reading builds the message from its public
definition (tensorflow/core/example/{feature,example}.proto) in a descriptor pool of its own, so it
cannot clash with TensorFlow's. Tests hold both to TensorFlow's bytes.
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


def serialize_example(values: Mapping[str, FeatureValue]) -> tuple[bytes, ...]:
    """Serialise scalar features as a ``tf.train.Example``, in pieces, always to the same bytes.

    ``{"image/class/label": 0, "image/format": b"png"}`` → an Example with an int64 and a bytes
    feature. 0 and ``b""`` are kept; None leaves the feature out. Features stand in the order of
    their names, as protobuf's deterministic serialisation has them (whose implementations differ
    only where one name begins with another).

    Returns:
        Pieces that make up the message; large values are pieces of their own, not copies.
    """
    pieces: list[bytes] = []
    small = bytearray()
    for name in sorted(values):
        value = values[name]
        if value is None:
            continue
        if isinstance(value, bytes):
            head = _nested(_BYTES, len(value))
        else:
            head, value = _nested(_INT64, len(number := _varint(value))), number
        key = name.encode("utf-8")
        entry = _KEY + _varint(len(key)) + key + _VALUE + _varint(len(head) + len(value)) + head
        small += _ENTRY + _varint(len(entry) + len(value)) + entry
        if len(value) < _SMALL_BYTES:
            small += value
        else:
            pieces += [bytes(small), value]
            small.clear()
    pieces.append(bytes(small))
    size = sum(map(len, pieces))
    return (_FEATURES + _varint(size) + pieces[0], *pieces[1:])


# Field tags, (number << 3) | 2: Example.features, Features.feature, FeatureEntry.key and .value,
# Feature.bytes_list and .int64_list, and .value of each list (int64s are packed).
_FEATURES = _ENTRY = _KEY = b"\x0a"
_VALUE = b"\x12"
_BYTES = b"\x0a"
_INT64 = b"\x1a"
_LIST_VALUE = b"\x0a"

# A value of this size is worth a piece of its own.
_SMALL_BYTES = 4096


def _nested(list_tag: bytes, size: int) -> bytes:
    """Return what stands in a Feature before a single value of ``size`` bytes."""
    inner = _LIST_VALUE + _varint(size)
    return list_tag + _varint(len(inner) + size) + inner


def _varint(value: int) -> bytes:
    """Return a base 128 varint; a negative number is its 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


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
