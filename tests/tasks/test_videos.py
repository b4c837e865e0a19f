"""Segments of videos: lists, rows, splits, records and batches, as on the task's page."""

import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import recordgen
from recordgen.conversion.api import payloads_of
from recordgen.core.dataset.vocabulary import build_vocabulary
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import PlannedRow, Row
from recordgen.core.task.task import placing_name
from recordgen.errors import DataError, SourceError
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.tasks import VideoClassification
from recordgen.tasks.video_classification.task import Segment
from tests.conftest import ROOT, stored_examples, write_file
from tests.planned import record_of
from tests.rows import read_rows
from tests.servers import serving

PAGE = (ROOT / "docs/tasks/video_classification.md").read_text(encoding="utf-8")

TASK = "video_classification"
CSV = ConvertOptions(task=TASK, format="csv")


def segments(output):
    """Return (split, source_id, label, start, end) of all records, sorted."""
    found = []
    for name, values in stored_examples(output):
        [uri] = values["video/uri"]
        assert values["video/source_id"] == [uri]
        label = values.get("video/class/text", [b""])[0].decode()
        times = (f"{values[f'video/segment/{end}'][0]:g}" for end in ("start", "end"))
        found.append((name, uri.decode(), label, *times))
    return sorted(found)


def read(path, options=CSV):
    return read_rows(options, *RowReader(options).with_lists([ImportFile(path)]))


# line, split, annotation
LINES = [
    ("TRAIN,gs://b/1.mp4,car,120,180.5", "train", '["car", 120.0, 180.5]'),
    ("gs://b/1.mp4,car,.5,1e2", None, '["car", 0.5, 100.0]'),
    ("1.mp4,car,1,inf", None, '["car", 1.0, null]'),
    ("1.mp4,car,1,", None, '["car", 1.0, null]'),
    ("1.mp4,car,,2", None, '["car", 0.0, 2.0]'),
    ("TEST,1.mp4,car,,", "test", '["car", 0.0, null]'),
    ("1.mp4,car", None, '["car", 0.0, null]'),
    ("1.mp4,,1,2", None, "[null, 1.0, 2.0]"),
    ("1.mp4,,0,inf", None, None),
    ("1.mp4,,,", None, None),
    ("1.mp4", None, None),
]


@pytest.mark.parametrize(("line", "split", "annotation"), LINES)
def test_lines(line, split, annotation, make_csv):
    """Each published form of a line is a row; equivalent forms have equal annotations."""
    [row] = read(make_csv([line]))
    assert isinstance(row, Row)
    assert (row.split, row.annotation) == (split, annotation)
    assert row.uri == next(field for field in line.split(",") if field.endswith(".mp4"))


@given(
    label=st.none()
    | st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1).filter(
        lambda text: text.lower() != "nan"  # rejected
    ),
    start=st.floats(0, 1e6),
    length=st.floats(0.001, 1e6) | st.just(math.inf),
)
def test_a_record_says_what_its_row_said(label, start, length):
    """A record has the label and the times of its row, for any times."""
    task = VideoClassification()
    try:
        annotation = task.from_fields([label or "", str(start), str(start + length)], None)
    except ValueError:
        assert np.float32(start) == np.float32(start + length)
        return
    row = PlannedRow(0, "/f/a.csv", 1, "1.mp4", annotation, 0, "row", False)
    vocabulary = build_vocabulary([label] if label else [])
    record, _ = record_of(task, row, [], vocabulary, payloads_of(CSV))
    values = parse_example(record)
    assert values["video/uri"] == values["video/source_id"] == [b"1.mp4"]
    assert values.get("video/class/text", []) == ([label.encode()] if label else [])
    times = (*values["video/segment/start"], *values["video/segment/end"])
    assert times == tuple(map(np.float32, Segment.decode(annotation)[1:]))


def test_lists(tmp_path):
    """Rows of a list have its path and lines, and the split of the line that names the list."""
    write_file(tmp_path / "lists/a.csv", "uri,label,start,end\n1.mp4,x,0,1\n2.mp4,y,2,1\n")
    write_file(tmp_path / "lists/b.CSV", "\n3.mp4,x\nlists/a.csv\n")
    top = tmp_path / "top.csv"
    top.write_text("TRAIN,lists/a.csv\n4.mp4,z,1,2\nlists/b.CSV,\nTEST,lists/a.csv,x\n")
    a, b = f"{tmp_path}/lists/a.csv", f"{tmp_path}/lists/b.CSV"
    found = [(item.source, item.line, item.uri, item[2]) for item in read(str(top))]
    assert found[:3] == [
        (str(top), 2, "4.mp4", None),
        (str(top), 4, "lists/a.csv", "lists/a.csv"),  # a list with a label
        (a, 2, "1.mp4", "train"),
    ]
    assert found[3:] == [
        (a, 3, "2.mp4", "2.mp4"),
        (b, 2, "3.mp4", None),
        (b, 3, "lists/a.csv", "lists/a.csv"),  # a list in a list
    ]
    dataset = recordgen.convert(
        str(top), tmp_path / "out", task=TASK, max_reject_fraction=0.9
    ).dataset
    assert dataset.source == (str(top), a, b)
    assert (dataset.rows.read, dataset.examples, dataset.rows.rejects) == (6, 3, 3)
    records = recordgen.read(tmp_path / "out", split="train")
    assert dataset.folder == str(tmp_path)
    assert "lists/1.mp4" in [item["video/uri"].numpy().decode() for item in records]


def test_a_list_that_is_missing(make_csv):
    """The error names the line, and the path that it meant."""
    source = make_csv(["1.mp4,x", "TRAIN,gone.csv"])
    folder = source.rpartition("/")[0]
    with pytest.raises(SourceError, match=f"{source}:2: .* {folder}/gone.csv"):
        recordgen.plan(source, task=TASK)


def test_lists_are_gated_as_rows_are(tmp_path):
    """A remote import file cannot request a local list, or a list outside --allow."""
    (tmp_path / "secret.csv").write_text("1.mp4,x\n")
    asked = []

    async def answer(request):
        asked.append(request.path)
        lines = {
            "/top.csv": f"TRAIN,{tmp_path}/secret.csv\n",
            "/far.csv": "TRAIN,lists/a.csv\n",
            "/lists/a.csv": "1.mp4,x,0,1\n",
        }
        return web.Response(text=lines[request.path])

    with serving(answer) as url:
        with pytest.raises(SourceError, match=r"top.csv:1: .*secret\.csv"):
            recordgen.plan(f"{url}/top.csv", task=TASK)
        rows = read(f"{url}/far.csv")
        assert [(row.source, row.uri) for row in rows] == [(f"{url}/lists/a.csv", "1.mp4")]
        options = ConvertOptions(task=TASK, format="csv", allow=(f"{url}/other",))
        with pytest.raises(SourceError, match=r"far.csv:1: .*--allow"):
            read(f"{url}/far.csv", options)
        asked.clear()
        local = write_file(tmp_path / "local.csv", f"TRAIN,{url}/lists/a.csv\n")
        with pytest.raises(SourceError, match=r"local.csv:1: .*allow=.http"):
            recordgen.plan(str(local), task=TASK)
        assert asked == []


def test_videos_are_gated_as_payloads_are():
    """A payload that a row must not access does not become an example, even if never opened."""

    async def answer(request):
        return web.Response(text="/etc/passwd.mp4,x\n1.mp4,x\ngs://b/1.mp4,x\n")

    with serving(answer) as url:
        result = recordgen.check(f"{url}/a.csv", task=TASK, max_reject_fraction=1)
    assert [(item.line, item.uri, item.code) for item in result.rejects] == [
        (1, "/etc/passwd.mp4", "not_allowed"),
        (3, "gs://b/1.mp4", "not_allowed"),
    ]
    assert result.rejects[0].message.startswith(
        "/etc/passwd.mp4: rows of an import file on http:// reach no local files"
    )


# address, folder, path below the last folder that they share
SHARED = [
    ("/d/v/1.mp4", "/d", "v/1.mp4"),
    ("/d/v/1.mp4", "/d/lists", "v/1.mp4"),
    ("/1.mp4", "/d", "1.mp4"),
    ("/d/d", "/d/d", "d"),
    ("gs://b/d/./x/../1.mp4", "gs://b/d", "1.mp4"),
    ("gs://b/d/v/1.mp4", "gs://b/e", "d/v/1.mp4"),
    ("gs://b/d/v/1.mp4", "gs://c/d", "d/v/1.mp4"),
    ("https://h/v/1?id=2", "/d", "v/1?id=2"),
]


@pytest.mark.parametrize(("address", "folder", "below"), SHARED)
def test_common_parent_does_not_place(address, folder, below):
    """The folders that a video shares with its import file do not decide about its split."""
    assert placing_name(Row("a", 1, None, address, None), VideoClassification(), folder) == below


def test_appending(make_csv, out):
    """Known segments are skipped; new segments of a video get the split of its others."""
    old = ["TEST,1.mp4,x,0,1", "TEST,1.mp4,,,", "TRAIN,2.mp4,x", "TRAIN,1.mp4,x,0.1,0.3"]
    recordgen.convert(make_csv(old), out, task=TASK, max_reject_fraction=0.9)
    new = ["1.mp4,x,0,1", "1.mp4", "1.mp4,y,5,6", "TRAIN,1.mp4,y,7,8", "2.mp4,a"]
    result = recordgen.convert(make_csv(new, "new.csv"), out, append=True, max_reject_fraction=0.9)
    assert result.dataset.rows.existing == 2
    found = [(split, Path(uri).name, *rest) for split, uri, *rest in segments(out)]
    assert found == [
        ("test", "1.mp4", "", "0", "inf"),
        ("test", "1.mp4", "x", "0", "1"),
        ("test", "1.mp4", "y", "5", "6"),
        ("train", "2.mp4", "a", "0", "inf"),
        ("train", "2.mp4", "x", "0", "inf"),
    ]
    assert [(item.code, item.line) for item in result.rejects] == [
        ("conflicting_splits", 4),
        ("conflicting_splits", 4),
    ]


def test_all_ways_in_agree(make_csv, tmp_path):
    """CSV, JSONL and a DataFrame of the same segments give the same records; twice: unchanged."""
    lines = ["TRAIN,/v/1.mp4,x,1.5,3", "TRAIN,/v/1.mp4,y,0,inf", "TEST,/v/2.mp4,y,0,2"]
    timed = {"displayName": "x", "startTime": "1.5s", "endTime": "3.000s"}
    whole = {"displayName": "y"}
    short = {**whole, "timeSegment": {"endTime": 2}}
    objects = [
        {"videoGcsUri": "/v/1.mp4", "timeSegmentAnnotations": [timed]},
        {"videoGcsUri": "/v/2.mp4"},
    ]
    for found, label, split in zip(objects, (whole, short), ("training", "test"), strict=True):
        found["classificationAnnotation"] = label
        found["dataItemResourceLabels"] = {"aiplatform.googleapis.com/ml_use": split}
    names = ["split", "video_uri", "label", "start", "end"]
    frame = pd.read_csv(io.StringIO("\n".join(lines)), names=names)
    source = make_csv(lines)
    sources = [source, make_csv(map(json.dumps, objects), "a.jsonl"), frame]
    datasets = [
        recordgen.convert(source, tmp_path / str(number), task=TASK).dataset
        for number, source in enumerate(sources)
    ]
    assert len({dataset.digest for dataset in datasets}) == 1
    assert len(segments(tmp_path / "0")) == 3
    assert recordgen.convert(source, tmp_path / "0", task=TASK, resume=True).unchanged
    by_label = recordgen.convert(source, tmp_path / "by", task=TASK, shard_by="label").dataset
    assert [shard.label for shard in by_label.splits["train"].shards] == ["x", "y"]


def test_one_wrong_segment_does_not_spoil_its_line(make_csv):
    """The other segments of the line become rows."""
    segments = [
        {"displayName": "x", "startTime": "1s", "endTime": "2s"},
        {"displayName": "x", "startTime": "2s", "endTime": "1s"},
        {"displayName": "", "startTime": "1s"},
        "x",
        {"displayName": "y", "startTime": "3s"},
    ]
    line = {
        "videoGcsUri": "1.mp4",
        "timeSegmentAnnotations": segments,
        "classificationAnnotation": {"displayName": "z", "timeSegment": 5},
    }
    good = {"videoGcsUri": "2.mp4", "classificationAnnotation": {"displayName": "z"}}
    source = make_csv(map(json.dumps, [line, good]), "a.jsonl")
    found = read(source, ConvertOptions(task=TASK, format="jsonl"))
    assert [item[1:4] if isinstance(item, Reject) else (item.line, item[4]) for item in found] == [
        (1, '["x", 1.0, 2.0]'),
        (1, '["y", 3.0, null]'),
        *[(1, "1.mp4", "bad_annotation")] * 4,
        (2, '["z", 0.0, null]'),
    ]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Ten animated GIFs of four frames a second: one second black, then another white."""
    folder = tmp_path_factory.mktemp("videos")
    lines = []
    for number in range(10):
        frames = [
            Image.fromarray(np.full((6, 8, 3), shade + number, np.uint8))
            for shade in [0, 9, 18, 27, 200, 209, 218, 227]
        ]
        frames[0].save(
            folder / f"{number}.gif", save_all=True, append_images=frames[1:], duration=250
        )
        lines += [f"{number}.gif,dark,0,1", f"{number}.gif,light,1,inf"]
    (folder / "train.csv").write_text("\n".join([*lines, "9.gif"]))
    (folder / "top.csv").write_text("TRAIN,train.csv\nTEST,8.avi\n")
    recordgen.convert(str(folder / "top.csv"), folder / "out", task=TASK)
    return folder / "out"


def test_batches(output):
    """Labelled segments are (uri, start, end) and the number; all are read without labels."""
    for labels, shape in (("int", (20,)), ("categorical", (20, 2)), ("binary", (20, 1))):
        data = recordgen.input_fn(output, batch_size=20, label_mode=labels, seed=1)
        found, numbers = next(iter(data))
        assert numbers.shape == shape
        if labels == "int":
            assert [math.isinf(end) for end in found["end"]] == [n == 1 for n in numbers]
            assert {start.numpy() for start in found["start"]} == {0, 1}
            assert str(output.parent / "3.gif").encode() in found["uri"].numpy()
    full = recordgen.reading.Tuning(drop_remainder=True)
    assert recordgen.steps_per_epoch(output, 3, tuning=full) == 6
    assert recordgen.steps_per_epoch(output, 3, label_mode=None) == 7
    everything = recordgen.eval_dataset(output, split="train", label_mode=None)
    assert sum(len(batch["uri"]) for batch in everything) == 21
    assert set(recordgen.load(output)) == {"train"}  # the other has no label
    files = str(output / "Split-train/*")
    data = recordgen.eval_dataset([files], only=lambda record: record["video/segment/start"] > 0)
    assert sum(len(numbers) for _, numbers in data) == 10
    with pytest.raises(DataError, match="test"):
        recordgen.input_fn(output, split="test")
    light = recordgen.eval_dataset(output, split="train", only=["light"], weights={"light": 2.0})
    assert [(set(n.numpy()), set(w.numpy())) for _, n, w in light] == [({1}, {2.0})]


def test_the_page_converts(tmp_path):
    """The lists and lines on the page give the record on the page."""
    top, train, lines, *_ = re.findall(r"^```\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    top = top.replace("gs://bucket/lists/", "")
    (tmp_path / "top.csv").write_text(top)
    (tmp_path / "train.csv").write_text(train)
    (tmp_path / "validation.csv").write_text("gs://bucket/9.mp4,car\n")
    recordgen.convert(str(tmp_path / "top.csv"), tmp_path / "out", task=TASK)
    records = stored_examples(tmp_path / "out")
    [first] = [item for _, item in records if item["video/segment/start"] == [120]]
    shown = re.findall(r"^\| `(video/\S+)` \(\w+\) \| `([^`]+)`", PAGE, re.MULTILINE)
    assert [(name, _text(values)) for name, [values] in first.items()] == sorted(shown)
    (tmp_path / "a.jsonl").write_text(lines)
    dataset = recordgen.convert(str(tmp_path / "a.jsonl"), tmp_path / "json", task=TASK).dataset
    assert (dataset.examples, dataset.rows.rejects, dataset.labels) == (3, 0, ("bike", "car"))


def _text(value):
    return value.decode() if isinstance(value, bytes) else str(value)
