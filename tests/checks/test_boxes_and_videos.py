"""Checks of boxes and of segments of videos."""

import re
import sys
import wave
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from aiohttp import web
from PIL import Image
from pyarrow.parquet import read_table, write_table

import recordgen
from recordgen import storage
from recordgen.errors import UsageError
from tests.checks.facts import findings
from tests.conftest import encoded, noise
from tests.opened import opened
from tests.servers import serving

BOXES = """TRAIN,a.png,dog,0.1,0.1,,,0.5,0.5,,
TRAIN,a.png,dog,0.1,0.1,,,0.51,0.5,,
TRAIN,a.png,cat,0.1,0.1,,,0.5,0.5,,
TRAIN,b.png,dog,0.2,0.2,,,0.205,0.21,,
TRAIN,b.png,dog,0.7,0.2,,,0.705,0.21,,
TRAIN,c.png,dog,0,0,,,1,1,,
TRAIN,d.png,dog,0.1,0.1,,,0.3,0.4,,
"""

VIDEOS = """TRAIN,a.mp4,run,0,10
TRAIN,a.mp4,walk,10,20
TRAIN,a.mp4,jump,15,30
TRAIN,a.mp4,sit,15,30
TRAIN,a.mp4,walk,25,28
TRAIN,b.mp4,run,0,10
TRAIN,b.mp4,run,5,15
"""


def about_rows(source, **options):
    found = findings(source, **options)
    return [(item.code, item.line, item.message) for item in found if item.source]


@pytest.fixture
def boxes(tmp_path):
    for seed, name in enumerate("abcd"):
        (tmp_path / f"{name}.png").write_bytes(encoded(noise(60, 40, seed), "PNG"))
    (tmp_path / "boxes.csv").write_text(BOXES)
    return tmp_path / "boxes.csv"


def test_boxes(boxes):
    """Each image has one finding per code, with its first odd box."""
    assert about_rows(boxes) == [
        (
            "TINY_BOX",
            4,
            "the box 0.2,0.2,0.205,0.21 of 'dog' covers 0.005 % of the image, and 1 more",
        ),
        ("WHOLE_IMAGE_BOX", 6, "the box 0,0,1,1 of 'dog' covers 100 % of the image"),
        (
            "DOUBLE_BOX",
            1,
            "the box 0.1,0.1,0.51,0.5 of 'dog' is nearly the same as another box with its label",
        ),
    ]


def test_counts_of_boxes(boxes):
    """MANY_BOXES and ONE_BOX_SIZE have thresholds, too."""
    source = boxes.with_name("one_size.csv")
    rows = "".join(f"TRAIN,c.png,cat,0.{n},0.1,,,0.{n}5,0.2,,\n" for n in range(1, 7))
    source.write_text(BOXES.replace("TRAIN,a.png,cat,0.1,0.1,,,0.5,0.5,,\n", "") + rows)
    found = about_rows(source, lint="MANY_BOXES,ONE_BOX_SIZE,MANY_BOXES=6,ONE_BOX_SIZE=6")
    assert found == [
        ("MANY_BOXES", 5, "the image has 7 boxes"),
        (
            "ONE_BOX_SIZE",
            5,
            "all 6 boxes of 'cat' have the size of this one, 0.05×0.1 of the image",
        ),
    ]


# the boxes of a copy, given the boxes of the other; whether they contradict
COPIES = [
    ([".1,.1,,,.5,.5", ".6,.6,,,.8,.8"], [".6,.6,,,.8,.8", ".101,.1,,,.5,.499"], False),
    ([".1,.1,,,.5,.5"], [".1,.1,,,.5,.52"], False),  # intersection over union: 0.95
    ([".1,.1,,,.11,.11"], [".104,.1,,,.114,.11"], False),  # a small box, moved by a pixel
    ([".1,.1,,,.5,.5"], [".15,.1,,,.55,.5"], True),
    ([".1,.1,,,.5,.5"], [".1,.1,,,.5,.5", ".6,.6,,,.8,.8"], True),
    ([".1,.1,,,.5,.5", ".1,.1,,,.501,.5"], [".1,.1,,,.5,.5", ".6,.6,,,.8,.8"], True),
]


@pytest.mark.parametrize(("boxes", "others", "is_conflict"), COPIES)
def test_boxes_that_nearly_coincide_do_not_conflict(boxes, others, is_conflict, tmp_path):
    """Two people never draw the same box to the last digit; another box is a contradiction."""
    rows = [("a", boxes), ("b", others)]
    for name, _ in rows:
        Image.new("RGB", (32, 32), (9, 90, 9)).save(tmp_path / f"{name}.png")
    lines = [f"TRAIN,{name}.png,cat,{box},,\n" for name, found in rows for box in found]
    (tmp_path / "a.csv").write_text("".join(lines))
    found = about_rows(tmp_path / "a.csv", lint="CONFLICT")
    assert [code for code, *_ in found] == ["CONFLICT"] * is_conflict


def test_another_label_conflicts(tmp_path):
    """The same box with another label is a contradiction."""
    for name in ("a", "b"):
        Image.new("RGB", (32, 32), (9, 90, 9)).save(tmp_path / f"{name}.png")
    lines = "TRAIN,a.png,cat,.1,.1,,,.5,.5,,\nTRAIN,b.png,dog,.1,.1,,,.5,.5,,\n"
    (tmp_path / "a.csv").write_text(lines)
    assert len(about_rows(tmp_path / "a.csv", lint="CONFLICT")) == 1


def test_segments(tmp_path):
    """Overlapping segments contradict each other unless they have the same times or label."""
    source = tmp_path / "videos.csv"
    source.write_text(VIDEOS)
    walk = f"overlaps 10 to 20 s, 'walk', in {source}:2 (a.mp4, split train)"
    jump = f"overlaps 15 to 30 s, 'jump', in {source}:3 (a.mp4, split train)"
    assert about_rows(source, task="video_classification") == [
        ("OVERLAP", 3, walk),
        ("OVERLAP", 5, jump),
    ]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """A folder with videos of 2 s and of 1 s, 10 frames a second, and files that are no videos."""
    av = pytest.importorskip("av")
    folder = tmp_path_factory.mktemp("clips")
    # A live recording is written without its length.
    for name, codec, frames, options in (
        ("two.mp4", "mpeg4", 20, {}),
        ("live.webm", "libvpx", 10, {"live": "1"}),
    ):
        with av.open(str(folder / name), "w", options=options) as container:
            stream = container.add_stream(codec, rate=10)
            stream.width = stream.height = 16
            stream.pix_fmt = "yuv420p"
            for _ in range(frames):
                container.mux(stream.encode(av.VideoFrame(16, 16, "yuv420p")))
            container.mux(stream.encode())
    with wave.open(str(folder / "sound.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(800))
    (folder / "broken.mp4").write_bytes(b"not a video")
    (folder / "list.m3u8").write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n{folder}/two.mp4\n#EXT-X-ENDLIST\n"
    )
    return folder


SEGMENTS = """TRAIN,two.mp4,run,0,2
TRAIN,two.mp4,walk,0.5,2.1
TRAIN,two.mp4,walk,0.5,2.2
TRAIN,./two.mp4,sit,2.5,inf
TRAIN,two.mp4,sit,1.5,inf
TRAIN,live.webm,run,0.5,1
TRAIN,live.webm,run,0.5,3
TRAIN,broken.mp4,run,0,1
TRAIN,broken.mp4,run,1,inf
TRAIN,sound.wav,run,0,1
TRAIN,list.m3u8,run,0,1
TRAIN,missing.mp4,run,0,1
"""


# line: the finding there; "…" matches any text
BEYOND = {
    3: "ends at 2.2 s, but the video at 2 s",
    4: "starts at 2.5 s, but the video ends at 2 s",
    7: "ends at 3 s, but the video at 1 s",
    8: "…: broken.mp4 is not a video that FFmpeg reads: Invalid data found…",
    9: "…: broken.mp4 is not a video that FFmpeg reads: Invalid data found…",
    10: "…: sound.wav cannot be read: it holds no video, only other streams",
    # The file that a playlist names is not opened.
    11: "…: list.m3u8 is not a video that FFmpeg reads: Invalid data found…",
    12: "cannot be compared with the end of its video: missing.mp4 cannot be read: …No such file…",
}


def test_segments_beyond_the_end(clips):
    """A segment may end one frame too late; a video that cannot be read is a finding.

    Each video is opened once.
    """
    source = clips / "segments.csv"
    source.write_text(SEGMENTS)
    with opened() as paths:
        found = about_rows(source, task="video_classification", lint="ALL,SEGMENT_END,-OVERLAP")
    assert [(code, line) for code, line, _ in found] == [("SEGMENT_END", line) for line in BEYOND]
    for _, line, message in found:
        assert re.fullmatch(re.escape(BEYOND[line]).replace("…", ".*"), message)
    names = Counter(Path(path).name for path in paths)
    assert {names[Path(row.split(",")[1]).name] for row in SEGMENTS.splitlines()} == {1}


def test_videos_of_an_object_store(clips):
    """Videos are read through the storage in the import file's address."""
    folder = "memory://clips/lists"
    storage.write_bytes(f"{folder}/two.mp4", (clips / "two.mp4").read_bytes())
    storage.write_text(f"{folder}/rows.csv", "TRAIN,two.mp4,run,1,3\nTRAIN,none.mp4,run,1,3\n")
    try:
        [beyond, missing] = about_rows(
            f"{folder}/rows.csv", task="video_classification", lint="SEGMENT_END"
        )
    finally:
        storage.remove("memory://clips")
    assert beyond == ("SEGMENT_END", 1, "ends at 3 s, but the video at 2 s")
    assert (missing[1], "none.mp4" in missing[2]) == (2, True)


def test_videos_are_opened_on_request(monkeypatch, tmp_path):
    """Only its own code selects the check, and then a missing package is an error at once."""
    monkeypatch.setitem(sys.modules, "av", None)
    source = tmp_path / "videos.csv"
    source.write_text(VIDEOS)
    options = {"task": "video_classification", "lint": "ALL,warning"}
    assert {code for code, *_ in about_rows(source, **options)} == {"OVERLAP"}
    remedy = r"SEGMENT_END needs .* pip install 'recordgen\[video\]'"
    with pytest.raises(UsageError, match=remedy):
        recordgen.check(source, task="video_classification", lint="segment_end")
    with pytest.raises(UsageError, match=remedy):
        recordgen.convert(source, tmp_path / "out", task="video_classification", lint="segment_end")
    assert not (tmp_path / "out").exists()


def test_a_foreign_dataset_causes_no_requests(tmp_path):
    """A check that opens payloads reaches only what rows may reach, also in appended datasets."""
    asked = []

    async def answer(request):
        asked.append(request.path)
        return web.Response(status=404)

    source, output = tmp_path / "a.csv", tmp_path / "out"
    source.write_text("TRAIN,a.mp4,jump,0,1\n")
    options = {"task": "video_classification", "lint": "SEGMENT_END"}
    recordgen.convert(source, output, task="video_classification")
    facts = read_table(output / "examples.parquet")
    with serving(answer) as server:
        uris = pa.array([f"{server}/a.mp4"])
        write_table(
            facts.set_column(facts.column_names.index("uri"), "uri", uris),
            output / "examples.parquet",
        )
        source.write_text("TRAIN,b.mp4,jump,0,1\n")
        result = recordgen.convert(source, output, append=True, **options)
    assert asked == []
    [message] = [item.message for item in result.lint.findings() if "a.mp4" in item.uri]
    assert "--allow http " in message
