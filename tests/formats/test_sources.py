# ruff: noqa: E501 - tables with a case on each line
"""Sources other than CSV lines with one label: boxes, JSONL, frames; and the unit of offsets."""

import json
from codecs import BOM_UTF8

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recordgen
from recordgen.core.rows.row import Adjustments, Row
from recordgen.errors import SourceError, UsageError
from recordgen.formats import automl_jsonl
from recordgen.formats.detect import detect, detect_frame
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.tables.csv_fields import MAX_RECORD_BYTES
from recordgen.tasks import TASKS, ImageClassification, ImageMultiLabel, ObjectDetection
from recordgen.tasks.texts.tags import Span, TagError, in_codepoints
from recordgen.tasks.texts.task import TextContent
from tests.conftest import stored_examples, write_file
from tests.formats.sources import Reading, frame_rows, parsed, write_files

CAT = '[["cat",0.1,0.2,0.5,0.6]]'


def read_jsonl(lines, task):
    return parsed(automl_jsonl.parse_lines, lines, "f.jsonl", task)


def record(**more):
    return {"imageGcsUri": "gs://b/1.jpg", **more}


PREFIX = "aiplatform.googleapis.com/"


def ml_use(value):
    return record(dataItemResourceLabels={f"{PREFIX}ml_use": value})


# object of a line, split
SPLITS = [
    (record(), None),
    (record(dataItemResourceLabels={"color": "red"}), None),
    (ml_use("validation"), "eval"),
    (ml_use(" TEST "), "test"),
    ({**ml_use("test"), "split": "fold 1"}, "test"),
    (record(dataItemResourceLabels={f"{PREFIX}ml_use": "validation", "split": "a"}), "eval"),
    (record(split=None, ml_use=""), None),
]


@pytest.mark.parametrize(("said", "split"), SPLITS)
def test_jsonl_rows(said, split):
    """Lines of a managed dataset's export give rows; only the uri is required."""
    line = json.dumps({**said, "classificationAnnotation": {"displayName": "größe"}}).encode()
    expected = Row("f.jsonl", 2, split, "gs://b/1.jpg", "größe")
    assert read_jsonl([b"\xef\xbb\xbf\r\n", line + b"\r"], ImageClassification()) == [expected]


# line, code
JSONL_REJECTS = [
    (b"{", "bad_line"),
    (b"[1]", "bad_line"),
    (b'{"imageGcsUri": "a\xff"}', "bad_encoding"),
    (b"[" * 100_000, "bad_line"),
    (b" " * MAX_RECORD_BYTES + b"{}", "bad_line"),
    (b"{}", "no_path"),
    (b'{"imageGcsUri": 3, "x": 1}', "no_path"),
    (b'{"imageGcsUri": "a", "\\ud800Annotation": 1}', "bad_annotation"),
    (b'{"imageGcsUri": "a\\nb"}', "bad_line"),
    (b'{"imageGcsUri": "\\ud800"}', "bad_encoding"),
    (ml_use("trian"), "unknown_ml_use"),
    (record(mlUse="test"), "unknown_ml_use"),
    (record(split="test"), "unknown_ml_use"),
    (record(dataItemResourceLabels={"ml_use": "test"}), "unknown_ml_use"),
    (record(classification_annotation={"displayName": "a"}), "bad_annotation"),
    (record(boundingBoxAnnotations=[{}]), "bad_annotation"),
    (record(sentimentAnnotation={"sentiment": 1}), "bad_annotation"),
]


@pytest.mark.parametrize(("line", "code"), JSONL_REJECTS)
def test_wrong_json_lines_are_rejects(line, code):
    """A line that cannot be used costs no other."""
    good = json.dumps(record()).encode()
    wrong = line if isinstance(line, bytes) else json.dumps(line).encode()
    found = read_jsonl([good, wrong, good], ImageClassification())
    assert [type(item) for item in found] == [Row, Reject, Row]
    assert (found[1].line, found[1].code) == (2, code)


SPAN = '{"textContent": "Anna flew", "textSegmentAnnotations": [{"displayName": "x", %s}]}'
OLDER = '{"text_snippet": {"content": "Anna flew"}, "annotations": [%s]}'
PLACE = '{"text_extraction": {"text_segment": {"startOffset": 5, "end_offset": 9}}, "display_name": "x"}'
AREA = '{"displayName": "x", "xMin": 0.1, "yMin": 0.1, "xMax": 0.2, "yMax": 0.2, "area": 3}'
SEGMENT = '{"displayName": "x", "startTime": "1s"}'

# task, an object; keys that are nearly right are rejected: tests/wrong_rows.txt has them
OTHER_KEYS = [
    ("text_entities", SPAN % '"endOffset": 9, "confidence": 0.9'),
    ("text_entities", SPAN % '"startOffset": 0, "start_offset": 3, "endOffset": 9'),
    ("text_entities", OLDER % PLACE),
    ("object_detection", f'{{"imageGcsUri": "a.jpg", "boundingBoxAnnotations": [{AREA}]}}'),
    ("image_classification", '{"imageGcsUri": "a.jpg", "classificationAnnotations": [], "class": "x"}'),
    ("image_classification", '{"imageGcsUri": "a.jpg", "dataItemResourceLabels": {"x.com/model": "a"}}'),
    ("text_sentiment", '{"textContent": "Good", "sentimentAnnotation": {"sentimentMax": 4}}'),
    ("video_classification", f'{{"videoGcsUri": "a.mp4", "timeSegmentAnnotations": [{SEGMENT}]}}'),
]  # fmt: skip


@pytest.mark.parametrize(("task", "record"), OTHER_KEYS)
def test_keys_that_are_not_read(task, record):
    """A key that is like none that is missing is passed over."""
    [found] = read_jsonl([record.encode()], TASKS[task]())
    assert isinstance(found, Row)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line), max_size=5))
@example([b"", BOM_UTF8])
@example([BOM_UTF8 * 2, BOM_UTF8 * 2])
def test_any_bytes_give_one_item_per_json_line(lines):
    """Each non-blank line of arbitrary bytes gives one row or reject: nothing is lost.

    A byte order mark before a line is no part of it; the first line may have that of the file, too.
    """
    try:
        found = read_jsonl(lines, ImageClassification())
    except SourceError:
        return
    first, *others = [*lines, b""]
    filled = [line.removeprefix(BOM_UTF8) for line in (first.removeprefix(BOM_UTF8), *others)]
    expected = [number for number, line in enumerate(filled, start=1) if line.strip()]
    assert [item.line for item in found] == expected


@pytest.mark.parametrize("text", ["[\n{}\n]", '[{"imageGcsUri": "a.jpg"}]'])
def test_files_that_are_no_jsonl(text, tmp_path):
    """A JSON document is one clear error."""
    path = write_file(tmp_path / "a.jsonl", text)
    with pytest.raises(SourceError, match=r"a\.jsonl"):
        recordgen.check(str(path), task="image_classification")


def test_files_of_two_formats_stop(tmp_path):
    """So does a folder of images if the task is none of it; the message says what is there."""
    images = {"f/cat/1.jpg": "", "f/dog/2.jpg": ""}
    root = write_files(tmp_path, {"a.csv": "a.jpg,x", "b.jsonl": json.dumps(record()), **images})
    with pytest.raises(UsageError, match=r"a\.csv .* csv .*b\.jsonl .* jsonl"):
        recordgen.check([f"{root}/a.csv", f"{root}/b.jsonl"])
    with pytest.raises(UsageError, match="image_classification"):
        recordgen.check(f"{root}/f", task="object_detection")


BOX = {"xmin": [0.1], "ymin": [0.2], "xmax": [0.5], "ymax": [0.6]}

# columns, task, annotation of the first row
FRAMES = [
    ({"image_uri": ["a"], "label": ["x"]}, "image_classification", "x"),
    ({"image_uri": ["a", "b"], "labels": [["y", "x"], None]}, "image_multi_label", '["x", "y"]'),
    ({"image_uri": ["a"], "label": [np.array(["x", "y"])]}, "image_multi_label", '["x", "y"]'),
    ({"image_uri": ["a"], "label": [{"y", "x"}]}, "image_multi_label", '["x", "y"]'),
    ({"image_uri": ["a"], "label": [["x", None, 2.0]]}, "image_multi_label", '["2", "x"]'),
    ({"image_uri": ["a"], "label": [[]]}, "image_multi_label", None),
    ({"image_uri": ["a"], "label": [1]}, "image_classification", "1"),
    ({"image_uri": ["a"], "label_1": ["x"], "label_2": [None]}, "image_multi_label", '["x"]'),
    ({"image_uri": ["a"], "label": ["cat"], **BOX}, "object_detection", CAT),
]


@pytest.mark.parametrize(("columns", "task", "annotation"), FRAMES)
def test_dataframes(columns, task, annotation):
    """Columns, or lists in them, decide the task; the rows are the same as from a CSV."""
    frame = pd.DataFrame(columns)
    for named, decided in (("auto", task), ("image_multi_label", "image_multi_label")):
        assert detect_frame(frame, ConvertOptions(task=named)).options.task == decided
    kinds = {kind.name: kind for kind in (ImageClassification, ImageMultiLabel, ObjectDetection)}
    first, *others = frame_rows(frame, kinds[task]())
    assert first == Row("DataFrame", 1, None, "a", annotation)
    assert all(isinstance(row, Row) and row.annotation is None for row in others)


@pytest.mark.parametrize("value", [["x", "y"], {"x": 1}, np.ones(3)])
def test_cells_that_are_no_text(value):
    """A cell with several values is a reject that names its row, not a label."""
    frame = pd.DataFrame({"image_uri": ["a"], "label": [value]})
    [reject] = frame_rows(frame, ImageClassification())
    assert (reject.line, reject.uri) == (1, "a")


@pytest.mark.parametrize("source", [pd.Series(["1.jpg"] * 99), {"uri": ["1.jpg"] * 99}, [], None])
def test_a_source_of_another_type_is_named_briefly(source):
    """What is no path and no frame is a UsageError with its type, however much it holds."""
    with pytest.raises(UsageError, match=type(source).__name__) as caught:
        recordgen.check(source)
    assert len(str(caught.value)) < 300


def test_texts_as_bytes():
    """Bytes in UTF-8 are the text that they are in any other record; a table needs texts."""
    frame = pd.DataFrame({"image": [b"a.png"], "label": [b"x"]})
    assert frame_rows(frame, ImageClassification()) == [Row("DataFrame", 1, None, "a.png", "x")]
    with pytest.raises(UsageError, match="column 'image'"):
        recordgen.check(frame, task="tabular")


def test_blank_lines_are_not_kept(tmp_path):
    """Detection reads at most the first ten thousand lines, however many of them are blank."""
    path = write_file(tmp_path / "a.csv", "\n" * 9_000 + "a.jpg,x,y\n")
    assert detect([ImportFile(str(path))], ConvertOptions()).reason == f"{path}:9001 has 2 labels"
    path.write_text("\n" * 20_000 + "a.jpg,x,y\n")
    assert "9001" not in detect([ImportFile(str(path))], ConvertOptions()).reason


# --- the unit of offsets --------------------------------------------------------------------------

#: The offset of a character in each unit, counted by Python's encoders.
UNITS = {
    "codepoints": lambda text, place: place,
    "utf16": lambda text, place: len(text[:place].encode("utf-16-le")) // 2,
    "bytes": lambda text, place: len(text[:place].encode()),
}
TEXTS = ["🎉 Anna flew to York", "👍👍 Anna ate", "Größe: Anna flew", "Anna sat", "日本 Anna 🎉"]
NAMES = ("Anna", "York")


def line(text, unit, *, older=False):
    spans = [(text.index(name), text.index(name) + len(name)) for name in NAMES if name in text]
    places = [[UNITS[unit](text, place) for place in span] for span in spans]
    if not older:
        items = [{"startOffset": a, "endOffset": b, "displayName": "x"} for a, b in places]
        return json.dumps({"textContent": text, "textSegmentAnnotations": items})
    segments = ({"text_segment": {"start_offset": a, "end_offset": b}} for a, b in places)
    items = [{"text_extraction": segment, "display_name": "x"} for segment in segments]
    return json.dumps({"text_snippet": {"content": text}, "annotations": items})


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_another_unit_stops_until_it_is_given(unit, older, tmp_path):
    """The default reads characters only if the spans do; the named unit reads the right words."""
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(line(text, unit, older=older) for text in TEXTS))
    if unit != "codepoints":
        with pytest.raises(UsageError, match=f"offsets={unit}', or"):
            recordgen.plan(path)
    options = {} if unit == "codepoints" else {"columns": f"offsets={unit}"}
    result = recordgen.check(path, **options)
    assert not result.rejects
    assert not result.dataset.rows.adjusted
    assert result.dataset.options["columns"] == options.get("columns", "")
    task = TASKS["text_entities"](unit)
    for text in TEXTS:
        [row] = task.from_record(json.loads(line(text, unit, older=older)), Adjustments())
        spans = TextContent.decode(row.annotation).said["spans"]
        assert [text[start:end] for start, end, _ in spans] == [n for n in NAMES if n in text]


def test_a_few_cut_words_are_no_evidence(tmp_path):
    """Spans that cut words in every unit, or only a few in characters, do not stop the run."""
    good = [line(text, "codepoints") for text in TEXTS]
    segment = {"startOffset": 4, "endOffset": 9, "displayName": "x"}
    odd = json.dumps({"textContent": "🎉 unhappy Anna", "textSegmentAnnotations": [segment]})
    cut = line(TEXTS[0], "utf16")
    write_files(tmp_path, {"a.jsonl": "\n".join([*good, odd]), "b.jsonl": odd, "c.jsonl": cut})
    assert len(Reading(tmp_path / "a.jsonl").rows) == 6
    assert len(Reading(tmp_path / "b.jsonl").rows) == 1
    # Each file is examined on its own.
    with pytest.raises(UsageError, match="utf16"):
        Reading([tmp_path / "a.jsonl", tmp_path / "c.jsonl"])


def test_texts_in_files_have_the_unit_too(tmp_path):
    """Offsets in a text file are converted when the file is read."""
    record = json.loads(line(TEXTS[0], "utf16"))
    del record["textContent"]
    record["textGcsUri"] = "1.txt"
    write_files(tmp_path, {"1.txt": TEXTS[0], "a.jsonl": json.dumps(record)})
    recordgen.convert(tmp_path / "a.jsonl", tmp_path / "out", columns="offsets=utf16")
    [(_, values)] = stored_examples(tmp_path / "out")
    places = zip(values["entity/start"], values["entity/end"], strict=True)
    assert [TEXTS[0][start:end] for start, end in places] == ["Anna", "York"]


def test_offsets_within_a_character():
    """An offset between the units of one character, or after the text, is an error."""
    for start, end, unit in [(1, 4, "utf16"), (0, 1, "utf16"), (2, 5, "bytes"), (0, 99, "utf16")]:
        with pytest.raises(TagError):
            in_codepoints("🎉 ab", [Span(start, end, "x")], unit)
    assert in_codepoints("🎉 ab", [Span(3, 5, "x")], "utf16") == [Span(2, 4, "x")]


def test_offsets_are_for_entities(tmp_path):
    """The option is refused where it would do nothing."""
    sentences = {"sentences.txt": "Anna flew\n", "labels.txt": "B-x O\n"}
    write_files(tmp_path, {"a.csv": "a.jpg,cat\n", **sentences})
    for name in ("a.csv", "sentences.txt"):
        with pytest.raises(UsageError, match="offsets=utf16"):
            Reading(tmp_path / name, columns="offsets=utf16")
    frame = pd.DataFrame({"text": ["Anna flew"], "label": ["a"]})
    with pytest.raises(UsageError, match="offsets=utf16"):
        Reading(frame, columns="offsets=utf16")
