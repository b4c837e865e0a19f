"""Segments of videos and the numbers of their classes, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection

from recordgen import features
from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing, labelled
from recordgen.access.records import Example, Records

#: The parts of a segment, and the features that hold them.
SEGMENT = {
    "uri": features.VIDEO_URI,
    "start": features.VIDEO_SEGMENT_START,
    "end": features.VIDEO_SEGMENT_END,
}


def segments(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of segments (path of the video, start and end in seconds) and labels."""

    def segment(example: Example) -> dict[str, object]:
        return {part: example[name] for part, name in SEGMENT.items()}

    return labelled(source, there, tuple(SEGMENT.values()), segment, features.VIDEO_CLASS_LABEL)
