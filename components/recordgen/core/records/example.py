"""``tf.train.Example`` without TensorFlow.

A conversion worker would need TensorFlow only for this message, and importing it costs seconds and
hundreds of megabytes per worker. The writer produces the protobuf wire format directly, so that an
image's bytes are never copied. The reader builds the message from its public definition
(tensorflow/core/example/{feature,example}.proto) in its own descriptor pool, so it cannot clash
with TensorFlow's. Tests compare both with TensorFlow's bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Union

from recordgen.errors import RecordError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Numbers are packed in files; every parser accepts packed and unpacked numbers.
_DEFINITION = """
name: "recordgen/example.proto" package: "tensorflow" syntax: "proto3"
message_type {
  name: "BytesList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES }
}
message_type {
  name: "FloatList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_FLOAT }
}
message_type {
  name: "Int64List" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 }
}
message_type {
  name: "Feature" oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 type_name: ".tensorflow.BytesList" oneof_index: 0 }
  field { name: "float_list" number: 2 type_name: ".tensorflow.FloatList" oneof_index: 0 }
  field { name: "int64_list" number: 3 type_name: ".tensorflow.Int64List" oneof_index: 0 }
}
message_type {
  name: "FeatureList"
  field { name: "feature" number: 1 label: LABEL_REPEATED type_name: ".tensorflow.Feature" }
}
message_type {
  name: "SequenceExample"
  field { name: "context" number: 1 type_name: ".tensorflow.Features" }
  field { name: "feature_lists" number: 2 type_name: ".tensorflow.FeatureLists" }
}
"""

# A map from names to values of a type.
_MAP = """
message_type {{
  name: "{type}s"
  field {{
    name: "{field}" number: 1 label: LABEL_REPEATED type_name: ".tensorflow.{type}s.{type}Entry"
  }}
  nested_type {{
    name: "{type}Entry" options {{ map_entry: true }}
    field {{ name: "key" number: 1 type: TYPE_STRING }}
    field {{ name: "value" number: 2 type_name: ".tensorflow.{type}" }}
  }}
}}
"""

#: One value, or several of the same kind; arrays are int64 or float32, of any shape.
FeatureValue = Union[
    bytes, int, float, Sequence[bytes], Sequence[int], Sequence[float], "npt.NDArray[Any]", None
]

_LISTS = (list, tuple)  # a tuple of types is compared in half the time of a union


@cache
def _message_class() -> type[Any]:
    # Not needed to write examples, nor to read those of usual writers.
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

    pool = descriptor_pool.DescriptorPool()
    maps = (("Feature", "feature"), ("FeatureList", "feature_list"))
    text = _DEFINITION + "".join(_MAP.format(type=of, field=field) for of, field in maps)
    pool.Add(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()))
    descriptor = pool.FindMessageTypeByName("tensorflow.SequenceExample")
    if hasattr(message_factory, "GetMessageClass"):
        found: type[Any] = message_factory.GetMessageClass(descriptor)
    else:  # protobuf < 4.22
        found = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    return found


def serialize_example(values: Mapping[str, FeatureValue]) -> tuple[bytes, ...]:
    """Serialise features as a ``tf.train.Example``, in pieces and with deterministic bytes.

    ``{"image/class/label": 0, "image/format": b"png"}`` → an Example with an int64 and a bytes
    feature; ``{"box": [0.5, 1.0]}`` → an Example with two floats, stored as float32. Arrays are
    stored row by row. 0 and ``b""`` are kept; features with None are skipped, and so are features
    with ``[]``, whose kind is unknown. Features are sorted by name, as in protobuf's deterministic
    serialisation (whose implementations differ only if one name begins with another).

    Returns:
        The pieces of the message; large values are separate pieces, not copies.

    Raises:
        OverflowError: a float does not fit in float32.
        TypeError: the values of a list differ in kind, or an array has another dtype.
    """
    pieces: list[bytes] = []
    small = bytearray()
    for name in sorted(values):
        value = values[name]
        if isinstance(value, bytes):
            tag = _BYTES
        elif isinstance(value, int):
            tag, value = _INT64, varint(value)
        elif isinstance(value, float):
            tag, value = _FLOAT, _F4.pack(value)
        elif value is None or (isinstance(value, _LISTS) and not value):
            continue
        elif isinstance(value, _LISTS) and isinstance(value[0], bytes):
            parts = [part for item in value for part in (_value_head(len(item)), item)]
            small += _list_head(name, _BYTES, sum(map(len, parts)))
            if max(map(len, parts)) < _SMALL_BYTES:  # such as the tokens of a text
                small += b"".join(parts)
            else:
                pieces += [bytes(small), *parts]
                small.clear()
            continue
        else:
            tag, value = _packed(value)
            if not value:  # an empty array has no value field, not an empty one
                small += _list_head(name, tag, 0)
                continue
        if len(value) < _SMALL_BYTES:
            small += _small_head(name, tag, len(value))
            small += value
        else:
            pieces += [bytes(small) + _head(name, tag, len(value)), value]
            small.clear()
    pieces.append(bytes(small))
    size = sum(map(len, pieces))
    return (_FEATURES + varint(size) + pieces[0], *pieces[1:])


# Field tags, (number << 3) | 2: Example.features, Features.feature, FeatureEntry.key and .value,
# Feature.bytes_list, .float_list and .int64_list, and .value of each list (numbers are packed).
_FEATURES = _ENTRY = _KEY = b"\x0a"
_VALUE = b"\x12"
_BYTES = b"\x0a"
_FLOAT = b"\x12"
_INT64 = b"\x1a"
_LIST_VALUE = b"\x0a"
_TAGS = {"bytes": _BYTES, "float32": _FLOAT, "int64": _INT64}

_F4 = struct.Struct("<f")
_ONE_BYTE = [bytes((value,)) for value in range(1 << 7)]

# Larger values become separate pieces. The bytes before smaller values are cached: they are often
# the same in the next example.
_SMALL_BYTES = 4096

# Array operations pay off from _FEW_NUMBERS numbers; with more than _NUMBERS_AT_ONCE, their tables
# do not fit in the processor's caches.
_FEW_NUMBERS = 64
_NUMBERS_AT_ONCE = 1 << 14


def _head(name: str, list_tag: bytes, size: int) -> bytes:
    """Return the bytes before a single value, or packed values, of ``size`` bytes."""
    inner = _value_head(size)
    return _list_head(name, list_tag, len(inner) + size) + inner


_small_head = lru_cache(4096)(_head)


def _list_head(name: str, list_tag: bytes, size: int) -> bytes:
    """Return the bytes in Features before a list of ``size`` bytes."""
    feature = list_tag + varint(size)
    key = name.encode("utf-8")
    entry = _KEY + varint(len(key)) + key + _VALUE + varint(len(feature) + size) + feature
    return _ENTRY + varint(len(entry) + size) + entry


@lru_cache(4096)
def _value_head(size: int) -> bytes:
    return _LIST_VALUE + varint(size)


def _packed(numbers: Any) -> tuple[bytes, bytes]:
    """Return the list tag and the packed values of several numbers."""
    if isinstance(numbers, _LISTS):
        if isinstance(numbers[0], float):
            return _FLOAT, struct.pack(f"<{len(numbers)}f", *numbers)
        return _INT64, b"".join(map(varint, numbers))
    if numbers.dtype == "float32":
        return _FLOAT, numbers.astype("<f4", copy=False).tobytes()
    if numbers.dtype == "int64":
        return _INT64, _varints(numbers.reshape(-1))
    raise TypeError(f"the array of a feature must be int64 or float32 (got {numbers.dtype})")


def varint(value: int) -> bytes:
    """Return a base 128 varint; a negative number is its 64-bit two's complement."""
    if 0 <= value < 1 << 7:
        return _ONE_BYTE[value]
    if 0 <= value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if 0 <= value < 1 << 21:  # sizes of most photos
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varints(values: npt.NDArray[np.int64]) -> bytes:
    """Return the concatenated varints of int64 [n]."""
    if len(values) < _FEW_NUMBERS:
        return b"".join(map(varint, values.tolist()))
    starts = range(0, len(values), _NUMBERS_AT_ONCE)
    return b"".join(packed_ints(values[at : at + _NUMBERS_AT_ONCE])[0] for at in starts)


def packed_ints(values: npt.NDArray[np.int64]) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Return the concatenated varints of int64 [n], and the number of bytes of each, int64 [n]."""
    import numpy as np

    numbers = values.astype(np.uint64)
    width = len(varint(int(numbers.max(initial=0))))
    if width == 1:
        return numbers.astype(np.uint8).tobytes(), np.ones(len(numbers), np.int64)
    # Row n has the base 128 digits of number n; leading zeros are dropped.
    shifted = numbers[:, None] >> np.arange(0, 7 * width, 7, dtype=np.uint64)
    stays = shifted != 0
    stays[:, 0] = True
    digits = shifted.astype(np.uint8) & 0x7F
    digits[:, :-1] |= stays[:, 1:].astype(np.uint8) << 7  # bit 7: another digit follows
    return digits[stays].tobytes(), stays.sum(axis=1)


def feature_head(name: str, dtype: str, size: int) -> bytes:
    """Return the bytes in ``Features`` before a single value of ``size`` bytes.

    An ``int64`` is a value of :func:`packed_ints`; a ``float32`` has 4 bytes, little-endian.
    """
    return _small_head(name, _TAGS[dtype], size)


def empty_lists(dtypes: Mapping[str, str]) -> bytes:
    """Return a serialised Example of lists without values, by their types; b"" for none."""
    lists = b"".join(_list_head(name, _TAGS[dtype], 0) for name, dtype in dtypes.items())
    return example_head(len(lists)) + lists if lists else b""


def example_head(size: int) -> bytes:
    """Return the bytes before the ``Features`` of an example if these have ``size`` bytes."""
    return _FEATURES + varint(size)


def parse_example(data: bytes) -> dict[str, list[bytes] | list[int] | list[float]]:
    """Parse a serialised ``tf.train.Example`` into plain lists by feature name, sorted.

    Raises: ValueError: the bytes are not an Example.
    """
    values, lists = parse_sequence(data)
    if lists:
        raise ValueError(
            f"a tf.train.SequenceExample, whose feature lists only recordgen.source(…)[i] and "
            f"recordgen.read(…, feature_spec=…) read (its lists: {', '.join(lists):.200}); write "
            f"its values with recordgen.write, a list as an array"
        )
    return values


def parse_sequence(data: bytes) -> tuple[dict[str, list[Any]], dict[str, list[list[Any]]]]:
    """Parse a serialised ``tf.train.SequenceExample``, or an Example, which has the same bytes.

    Returns:
        The context features, or the Example's, as plain lists by name, sorted; and the feature
        lists, each a list of the values of each step.

    Raises: ValueError: the bytes are neither.
    """
    message = _message_class()()
    try:
        message.ParseFromString(data)
    except Exception as exc:  # DecodeError has different modules in different protobuf versions
        raise ValueError(f"not a tf.train.Example: {exc}") from exc
    context, lists = message.context.feature, message.feature_lists.feature_list
    return (
        {name: _plain(context[name]) for name in sorted(context)},
        {name: list(map(_plain, lists[name].feature)) for name in sorted(lists)},
    )


def _plain(feature: Any) -> list[Any]:
    return list(getattr(feature, feature.WhichOneof("kind") or "bytes_list").value)


def parse_record(record: bytes, where: str) -> dict[str, Any]:
    """Parse a record as :func:`parse_example`. Raises: RecordError: it is damaged, at ``where``."""
    try:
        return parse_example(record)
    except ValueError as exc:
        raise RecordError(f"{where}: {exc}") from exc
