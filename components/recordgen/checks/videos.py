"""Checks of videos: overlapping segments with different labels, and segments beyond the end.

The second check opens each video. PyAV reads its length, in nearly all formats from the header.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import IO, Any, NamedTuple

import numpy as np

from recordgen.checks.check import EACH, Check, Examined, FoundRows, OpenPayload
from recordgen.checks.contents import CopyCheck
from recordgen.checks.facts import ExampleFacts
from recordgen.core.facts import PAYLOADS, SEGMENTS
from recordgen.core.ordered import map_in_order
from recordgen.errors import RecordgenError

# Videos that are opened at once; most of the time is spent waiting for storage.
_THREADS = 16


class Overlap(CopyCheck):
    """Parts of one video with different labels overlap."""

    code = "OVERLAP"
    needs = (SEGMENTS,)

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield segments that begin inside an earlier segment of their video with another label.

        Segments with the same start and end are one segment with several labels.
        """
        facts, task = examined.facts, examined.task
        segments = [task.segment(facts.annotation(row)) for row in range(len(facts))]
        videos = facts.contents
        order = sorted(range(len(facts)), key=lambda row: (videos[row], *segments[row][1:]))
        found: dict[int, int] = {}
        for _, parts in groupby(order, videos.__getitem__):
            last, *others = parts  # ``last`` is the segment with the latest end so far
            for row in others:
                label, start, end = segments[row]
                other, other_start, other_end = segments[last]
                is_other = label != other and (start, end) != (other_start, other_end)
                if start < other_end and is_other:
                    found[row] = last
                if end > other_end:
                    last = row
        rows = np.array(sorted(found), np.intp)
        partners = np.array([found[row] for row in rows], np.intp)

        def message(at: int) -> str:
            partner = int(partners[at])
            label, start, end = segments[partner]
            return f"overlaps {start:g} to {end:g} s, {label!r}, in {facts.place(partner)}"

        yield FoundRows(rows, message, partners)


class Length(NamedTuple):
    """The length of a video."""

    seconds: float  # from its first frame to the end of its last
    frame_seconds: float  # average duration of a frame; 0 if unknown


class SegmentEnd(Check):
    """A segment starts or ends more than a frame after the end of its video."""

    code = "SEGMENT_END"
    scope = EACH
    needs = (SEGMENTS, PAYLOADS)
    package, extra = "av", "video"

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        facts = examined.facts
        videos, first, video_of = np.unique(facts.contents, return_index=True, return_inverse=True)
        measure = partial(_length_or_reason, facts, examined.open_payload)
        threads = min(_THREADS, len(videos) or 1)
        lengths = list(map_in_order(measure, first.tolist(), threads=threads))
        found: dict[int, str] = {}
        for row, video in enumerate(video_of):
            _, start, end = examined.task.segment(facts.annotation(row))
            if message := _beyond(start, end, lengths[video]):
                found[row] = message
        rows = np.array(list(found), np.intp)
        yield FoundRows(rows, lambda at: found[int(rows[at])])


def _beyond(start: float, end: float, length: Length | str) -> str:
    """Return the message for a segment beyond its video's end; empty if it is not."""
    if isinstance(length, str):
        return f"cannot be compared with the end of its video: {length}"
    # Times are rounded to 32 bits.
    latest = (length.seconds + length.frame_seconds) * (1 + 2**-22)
    if start >= latest:
        return f"starts at {start:g} s, but the video ends at {length.seconds:g} s"
    if latest < end < float("inf"):
        return f"ends at {end:g} s, but the video at {length.seconds:g} s"
    return ""


def _length_or_reason(facts: ExampleFacts, open_payload: OpenPayload, row: int) -> Length | str:
    """Return the length of an example's video, or the reason why it is unknown."""
    import av

    uri, source = facts.payload(row)
    try:
        with open_payload(uri, source) as file:
            return video_length(file)
    except av.FFmpegError as exc:
        return f"{uri} is not a video that FFmpeg reads: {exc.strerror or type(exc).__name__}"
    except (OSError, RecordgenError, ValueError) as exc:
        return f"{uri} cannot be read: {exc or type(exc).__name__}"


def video_length(file: IO[bytes]) -> Length:
    """Return the length of a video, whose file stays open.

    Raises: av.FFmpegError: it is no video; ValueError: it has no pictures, only sound or text.
    """
    import av

    # A playlist names other files, which must not be opened: no protocol is allowed.
    with av.open(file, options={"protocol_whitelist": "none"}) as container:
        if not container.streams.video:
            raise ValueError("it holds no video, only other streams")
        stream = container.streams.video[0]
        frame = 1 / float(stream.average_rate) if stream.average_rate else 0.0
        if stream.duration is not None:
            return Length(float(stream.duration * stream.time_base), frame)
        if container.duration is not None:
            return Length(container.duration / av.time_base, frame)
        # Recorded live: the header was written before the length was known.
        start = stream.start_time or 0
        ends = (
            packet.pts + (packet.duration or 0)
            for packet in container.demux(stream)
            if packet.pts is not None
        )
        return Length(float((max(ends, default=start) - start) * stream.time_base), frame)
