"""Change a file that is a list of parts: chunks, segments or blocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

Change = Callable[[bytes, random.Random], bytes]

# A part of a file: its kind, and its body or all of its bytes.
Part = tuple[bytes, bytes]
Parts = list[Part]


def _repeat(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    return [*parts[: at + 1], parts[at], *parts[at + 1 :]]


def _repeat_elsewhere(parts: Parts, draw: random.Random) -> Parts:
    return inserted(parts, draw.choice(parts), draw)


def _drop(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    return parts[:at] + parts[at + 1 :]


def _move(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    return inserted(parts[:at] + parts[at + 1 :], parts[at], draw)


def _swap(parts: Parts, draw: random.Random) -> Parts:
    one, two = sorted(draw.choices(range(len(parts)), k=2))
    found = list(parts)
    found[one], found[two] = found[two], found[one]
    return found


def _in_body(parts: Parts, draw: random.Random) -> Parts:
    """Change one byte of one body."""
    at = draw.choice([at for at, (_, body) in enumerate(parts) if body] or [0])
    kind, body = parts[at]
    place = draw.randrange(max(1, min(len(body), 40)))
    return [*parts[:at], (kind, with_byte(body, place, draw.choice(ODD))), *parts[at + 1 :]]


def _shorter(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    kind, body = parts[at]
    return [*parts[:at], (kind, body[: draw.randrange(len(body) + 1)]), *parts[at + 1 :]]


def _longer(parts: Parts, draw: random.Random) -> Parts:
    at = draw.randrange(len(parts))
    kind, body = parts[at]
    more = draw.randbytes(draw.randint(1, 9))
    return [*parts[:at], (kind, body + more), *parts[at + 1 :]]


#: name: a change of the list of chunks, segments or blocks.
OF_PARTS: Mapping[str, Callable[[Parts, random.Random], Parts]] = {
    "repeat a part": _repeat,
    "repeat a part elsewhere": _repeat_elsewhere,
    "drop a part": _drop,
    "move a part": _move,
    "swap parts": _swap,
    "a byte of a part": _in_body,
    "a shorter part": _shorter,
    "a longer part": _longer,
}

# Bytes at the limits of fields.
ODD = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 129, 240, 254, 255)


def inserted(parts: Parts, part: Part, draw: random.Random) -> Parts:
    at = draw.randint(0, len(parts))
    return [*parts[:at], part, *parts[at:]]


def with_byte(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


def of_parts(
    read: Callable[[bytes], Parts], write: Callable[[Sequence[Part]], bytes]
) -> Mapping[str, Change]:
    """Return the changes of any list of parts for one format."""

    def applied(change: Callable[[Parts, random.Random], Parts]) -> Change:
        return lambda data, draw: write(change(read(data), draw))

    return {name: applied(change) for name, change in OF_PARTS.items()}
