# ruff: noqa: E501 - tables with a case on each line
"""Detection of the task and the columns of import files, and conflicts that stop the run."""

import pandas as pd
import pytest

import recordgen
from recordgen.conversion.summaries import summary
from recordgen.errors import SourceError, UsageError
from recordgen.formats.detect import detect, detect_frame
from recordgen.formats.import_file import ImportFile, Samples
from recordgen.formats.row_reader import preview_files
from recordgen.options import ConvertOptions
from tests.conftest import write_file
from tests.formats.sources import Reading, refusal
from tests.rows import read_rows


def found(folder, name, lines, **options):
    """Write an import file and return its detection."""
    path = folder / name
    path.write_text(lines, encoding="utf-8")
    return detect([ImportFile(str(path))], ConvertOptions(**options))


def first_row(folder, name, options):
    return preview_files([ImportFile(str(folder / name))], options, Samples()).rows[0]


# lines of a file, its task
JSONL = [
    ('no JSON\n{"imageGcsUri": "a", "classificationAnnotations": [{"displayName": "x"}]}', "image_multi_label"),
    ('\ufeff{"imageGcsUri": "a", "boundingBoxAnnotations": [{}]}', "object_detection"),
    ('{"imageGcsUri": "a"}', "image_classification"),
    ('{"textGcsUri": "a", "classificationAnnotation": {}}', "text_classification"),
    ('{"textContent": "a", "classificationAnnotations": [{}]}', "text_multi_label"),
    ('{"textContent": "a", "sentimentAnnotation": 0}', "text_sentiment"),
    ('{"imageGcsUri": "a", "textContent": "b", "classificationAnnotation": {"a": "c"}}', "image_classification"),
    ('{"textContent": "a", "textSegmentAnnotations": [{}]}', "text_entities"),
    ('{"text_snippet": {"content": "a"}, "annotations": [{"text_extraction": {}}]}', "text_entities"),
    ('{"videoGcsUri": "a", "classificationAnnotation": {}}', "video_classification"),
    ('{"textContent": "a"}\n' * 9 + '{"textContent": "b", "textSegmentAnnotations": [{"displayName": "x"}]}', "text_entities"),
    ('{"my_row": {"id": 1}}\n{"textContent": "a"}', "text_classification"),
    ('{"imageGcsUri": "a.jpg", "file_name": "a.jpg", "annotation_id": 1}', "image_classification"),
    ('{"textContent": "{\\"images\\": [{\\"file_name\\": 1}]}"}', "text_classification"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "task"), JSONL)
def test_keys_of_jsonl_tell_their_task(line, task, tmp_path):
    """The reason names the file; with the task that was found, there is nothing to find."""
    finding = found(tmp_path, "a.jsonl", f"{line}\n", seed=3)
    decided = ConvertOptions(seed=3, task=task, format="jsonl")
    assert finding.options == decided
    assert finding.reason.startswith(f"{tmp_path}/a.jsonl:")
    said = detect([ImportFile(f"{tmp_path}/a.jsonl")], decided)
    assert (said.options, said.reason) == (decided, "")


CLASSIFIED = '{"%s": "a", "classificationAnnotation": {"displayName": "cat"}}'
FELT = '{"textContent": "a", "sentimentAnnotation": {"sentiment": 1}}'
NAMED_PARTS = '{"textContent": "a", "textSegmentAnnotations": [{}]}'
BOTH = f"{CLASSIFIED % 'imageGcsUri'}\n{CLASSIFIED % 'textContent'}"
PHOTOS_AND_TEXTS = "image_classification", "text_classification"
MIXED = [
    ("a.csv", 'a.jpg,cat\n"Good and cheap",praise', *PHOTOS_AND_TEXTS),
    ("a.csv", "a.jpg,x,y\nb.jpg,x,.1,.2,,,.3,.4,,", "image_multi_label", "object_detection"),
    ("a.csv", "a.mp4,car\na.jpg,cat", "image_classification", "video_classification"),
    ("a.csv", "a.jpg,x\nb.jpg,x\nc.jpg,x\nTRAIN,some text here,dog", *PHOTOS_AND_TEXTS),
    ("a.jsonl", BOTH, *PHOTOS_AND_TEXTS),
    ("a.jsonl", f"{FELT}\n{NAMED_PARTS}", "text_sentiment", "text_entities"),
]


@pytest.mark.parametrize(("name", "lines", "one", "other"), MIXED)
def test_two_tasks_in_a_file_are_both_shown(name, lines, one, other, tmp_path):
    """Rows of two tasks are refused with a line of each."""
    with pytest.raises(UsageError, match="task") as caught:
        found(tmp_path, name, lines)
    assert f"{one}: {tmp_path / name}:" in str(caught.value)
    assert f"{other}: {tmp_path / name}:" in str(caught.value)


CLOTHES = "Review Text,Department\n" + "".join(
    f"It fits me well {n},{('Tops', 'Dresses')[n % 2]}\n" for n in range(4)
)


@pytest.mark.parametrize(
    ("lines", "columns"),
    [(CLOTHES, "text=1,label=2"), ("foto,kind\na.jpg,cat\nb.jpg,dog\n", "path=1,label=2")],
)
def test_numbers_of_columns_do_not_say_that_there_is_no_header(lines, columns, tmp_path):
    """A first line that reads as a header stops the run until --columns header=decides."""
    assert refusal(found, tmp_path, "a.csv", lines, columns=columns)
    for header, line in (("yes", 2), ("no", 1)):
        decided = found(tmp_path, "a.csv", lines, columns=f"{columns},header={header}")
        first = first_row(tmp_path, "a.csv", decided.options)
        assert first.where == f"{tmp_path / 'a.csv'}:{line}"


def test_a_header_without_rows_is_refused(tmp_path):
    """Its line and its columns are named."""
    with pytest.raises(SourceError, match=r"a\.csv:1: .*\(text,label\)"):
        found(tmp_path, "a.csv", "text,label\n")


IMAGES = "pic,what,fold\nx/1.jpg,cat,train\nx/2.jpg,dog,\n"
SCORED = '{"body": "So good", "stars": 4.0}\n{"body": "So bad"}\n'
AUTOML = (
    '{"imageGcsUri": "1.jpg", "classificationAnnotation": {"displayName": "cat"}, "fold": "dev"}'
)

# file name, lines, options, task, columns as shown, first row
COLUMNS = [
    ("a.csv", IMAGES, {"columns": "label=what, path=pic ,split=fold"}, "image_classification", {"fold": "split", "pic": "path", "what": "label"}, ("train", "x/1.jpg", "'cat'")),
    ("a.csv", IMAGES.partition("\n")[2], {"columns": "path=1,label=2,label=3,header=no"}, "image_multi_label", {"1": "path", "2": "label", "3": "label"}, ("(assigned)", "x/1.jpg", "'cat', 'train'")),
    ("a.csv", "a,b,a\n1.jpg,x,2.jpg\n", {"columns": "path=3,label=b,header=yes"}, "image_classification", {"a": "path", "b": "label"}, ("(assigned)", "2.jpg", "'x'")),
    ("a.csv", "clip,what,from,to\n1.mp4,run,1,2.5\n", {"columns": "path=clip,label=what,start=from,end=to"}, "video_classification", {"clip": "path", "what": "label", "from": "start", "to": "end"}, ("(assigned)", "1.mp4", "'run' from 1 s to 2.5 s")),
    ("a.csv", 'note,"a, b"\n"So good, so cheap",praise\n', {"columns": 'text=note,"label=a, b"'}, "text_classification", {"note": "text", "a, b": "label"}, ("(assigned)", "So good, so cheap", "'praise'")),
    ("a.csv", "label,path\n1.jpg,cat\n", {"columns": "path=label,label=path"}, "image_classification", {"label": "path", "path": "label"}, ("(assigned)", "1.jpg", "'cat'")),
    ("a.jsonl", SCORED, {"columns": "text=body,label=stars", "task": "text_sentiment"}, "text_sentiment", {"body": "text", "stars": "label"}, ("(assigned)", "So good", "'4'")),
    ("a.jsonl", AUTOML.replace("dev", "test"), {"columns": "split=fold", "task": "image_classification"}, "image_classification", {"fold": "split"}, ("test", "1.jpg", "")),
]  # fmt: skip


def test_numbers_of_columns_that_the_first_line_lacks(tmp_path):
    """Every line has a path, so that its column must be there; later lines may have more labels."""
    lines = "a.jpg,cat\nb.jpg,cat,dog\n"
    task = "image_multi_label"
    columns = "path=1,label=2,label=3,header=no"
    finding = found(tmp_path, "a.csv", lines, columns=columns, task=task)
    assert dict(finding.columns) == {"1": "path", "2": "label", "3": "label"}
    with pytest.raises(UsageError, match=r"a\.csv:1: .*column 3 .*path"):
        found(tmp_path, "a.csv", lines, columns="path=3,label=2,header=no", task=task)
    with pytest.raises(UsageError, match=r"column 4 .*label"):  # no line has it
        found(tmp_path, "a.csv", lines, columns="path=1,label=4,header=no", task=task)


@pytest.mark.parametrize(("name", "lines", "options", "task", "columns", "row"), COLUMNS)
def test_columns_say_what_a_file_holds(name, lines, options, task, columns, row, tmp_path):
    """Columns are given by name, number or key, for every task; the detection shows their roles."""
    finding = found(tmp_path, name, lines, **options)
    assert (finding.options.task, dict(finding.columns)) == (task, columns)
    first = first_row(tmp_path, name, finding.options)
    assert (first.split, first.subject, first.annotation) == row


# lines, options, error message
WRONG = [
    (IMAGES, {"columns": "path=pick"}, r"'pick', .* pic, what, fold; .*'pic'"),
    (IMAGES, {"columns": "path=pic,lable=what"}, "'lable'.*'label'"),
    (IMAGES, {"columns": "pic"}, r"ROLE=NAME .* \(got 'pic'\)"),
    (IMAGES, {"columns": "path="}, "'path'"),
    (IMAGES, {"columns": "path=pic,path=what"}, r"'path' .*\(got pic and what\)"),
    (IMAGES, {"columns": "path=pic,header=no"}, r"\(got path=pic\)"),
    (IMAGES, {"columns": "path=pic,text=what", "task": "image_classification"}, "'text'"),
    (IMAGES, {"columns": "path=9,header=yes"}, "'9', .* pic, what, fold"),
    (IMAGES, {"columns": "header=yes"}, "path=pic"),
    (IMAGES, {"columns": "header=maybe"}, "header .* auto, yes, no"),
    (IMAGES, {"columns": "path=pic", "task": "tabular"}, "'path'"),
    (IMAGES, {"columns": "path=pic", "schema": '{"pic": "image"}'}, "schema"),
    (AUTOML, {"columns": "path=f"}, "'f', .* imageGcsUri"),
    (AUTOML, {"columns": "header=yes"}, "header.*"),
]


@pytest.mark.parametrize(("lines", "options", "message"), WRONG)
def test_columns_that_cannot_be_meant(lines, options, message, tmp_path):
    """A wrong name is an error that lists the existing columns and suggests the most similar."""
    with pytest.raises(UsageError, match=message):
        found(tmp_path, "a.jsonl" if lines == AUTOML else "a.csv", lines, **options)


def test_whole_numbers_may_be_sentiments_or_classes(tmp_path):
    """Whole numbers are sentiments unless another file has words there."""
    lines = "TRAIN,Good and cheap,2\nBad and dear,0\nSo so\n"
    assert found(tmp_path, "a.csv", lines).options.task == "text_sentiment"
    (tmp_path / "b.csv").write_text("Never again,poor\n")
    files = [ImportFile(str(tmp_path / name)) for name in ("a.csv", "b.csv")]
    assert refusal(detect, files, ConvertOptions())


def test_one_line_of_another_task_is_a_mistake(tmp_path):
    """A single line of another task among ten is malformed; two such lines are a conflict."""
    lines, odd = "a.jpg,cat\nb.jpg,dog\n" * 5, "Good and cheap,praise\n"
    assert found(tmp_path, "a.csv", lines + odd).options.task == "image_classification"
    with pytest.raises(UsageError, match="task"):
        found(tmp_path, "b.csv", lines + odd * 2)
    [reject] = Reading(write_file(tmp_path / "c.csv", f"x.jpg,a,b\n{lines * 3}")).rejects
    assert (reject.line, "--task image_multi_label" in reject.message) == (1, True)


def test_options_of_tables_say_that_it_is_one(tmp_path):
    """An option of tables makes the task tabular and contradicts another one."""
    lines = "text,y\nGood and cheap,1\n"
    finding = found(tmp_path, "a.csv", lines, columns="target=y")
    assert (finding.options.task, finding.reason) == ("tabular", "columns target=y is given")
    frame = pd.DataFrame({"text": ["a", "b"], "label": ["x", "y"]})
    assert Reading(frame, columns="target=label").options.task == "tabular"
    with pytest.raises(UsageError, match=r"target=y .* image_classification"):
        found(tmp_path, "a.csv", lines, columns="target=y", task="image_classification")


@pytest.mark.parametrize("words", [["check"], ["convert", "out"], ["convert", "out", "--dry-run"]])
def test_the_preview_is_always_printed(words, tmp_path, monkeypatch, stdout_of, json_of, caplog):
    """Convert, check and dry run print the detection and three rows, as text and as JSON."""
    monkeypatch.chdir(tmp_path)
    lines = "note,kind\nSo good,praise\nSo bad,blame\nSo so,blame\nFine,praise\n"
    (tmp_path / "a.csv").write_text(lines)
    command = [words[0], "a.csv", *words[1:], "--columns=text=note,label=kind"]
    rows = "a.csv:2: (assigned) | So good | 'praise'", "a.csv:4: (assigned) | So so | 'blame'"
    shown = stdout_of(*command)
    for text in (*rows, "text_classification (--columns ", "note = text, kind = label"):
        assert text in shown
    before, after = caplog.text.split("planning", 1)
    assert rows[0] in before
    assert rows[0] not in after
    found = json_of(*command, "-q", *["--overwrite"] * ("out" in words))["detection"]
    assert found["columns"] == {"note": "text", "kind": "label"}
    assert (found["format"], found["delimiter"], found["header"]) == ("csv", ",", True)
    assert len(found["rows"]) == 3


SCHEMA = '{"age": "float", "set": "split", "kind": "label"}'

# header line, further options, how the columns are shown
SHOWN = "age = float, set = split, kind = "
TABLES = [
    ("age,set,kind", {"columns": "target=kind"}, f"{SHOWN}text (target, classification)"),
    ("age,set,kind", {"schema": SCHEMA}, f"{SHOWN}label (target, classification)"),
    ("", {"schema": SCHEMA}, f"{SHOWN}label (target, classification)"),
]


@pytest.mark.parametrize(("header", "options", "columns"), TABLES)
def test_types_and_prediction_of_tables_are_printed(header, options, columns, tmp_path):
    """Inferred and declared columns are shown in the same words, and what the target asks for."""
    lines = [*filter(None, [header]), "1.5,TRAIN,a", "2,TEST,b"]
    shown = summary(found(tmp_path, "a.csv", "\n".join(lines) + "\n", **options))
    assert any(line.endswith(columns) for line in shown.splitlines())


# columns of a frame, task
TOLD = [
    ({"text": ["a"], "label": ["x"]}, "text_classification"),
    ({"review": ["a"], "label": [["x", "y"]]}, "text_multi_label"),
    ({"text": ["a"], "label_1": ["x"], "label_2": ["y"]}, "text_multi_label"),
    ({"text": ["a", "b"], "sentiment": [1, None]}, "text_sentiment"),
    ({"text": ["a"], "sentiment": ["good"]}, "text_classification"),
]


@pytest.mark.parametrize(("cells", "task"), TOLD)
def test_frames_tell_their_task(cells, task):
    """A column of texts means texts unless another names files; the labels decide the task."""
    assert detect_frame(pd.DataFrame(cells), ConvertOptions()).options.task == task


# columns of a frame, the option that is proposed
FRAMES_STOP = [
    ({"image_uri": ["1.jpg"], "comment": ["a"], "label": ["x"]}, "path=image_uri,label=label"),
    ({"age": [31, 40], "category": ["a", "b"]}, "target=category"),
    ({"text": ["a b", None, "a.jpg", "b.jpg"], "label": ["x"] * 4}, "path=text,label=label"),
    ({"image": ["a"], "label": ["x"], "BBox": [[1, 2, 3, 4]]}, "path=image,label=label,xywh=BBox"),
    ({"image": ["1.jpg", "2.jpg"], "label": ["a", "b"], "fold": ["test", None]}, "path=image,split=fold,label=label"),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "columns"), FRAMES_STOP)
def test_frames_stop_as_files_do(cells, columns):
    """A DataFrame that fits no definition is an error with the columns that read it."""
    assert refusal(recordgen.check, pd.DataFrame(cells)).options["columns"] == columns
    frame = pd.DataFrame({"fil": ["1.jpg", "2.jpg"] * 6, "kind": ["a", "b"] * 6})
    stopped = refusal(recordgen.check, frame, task="image_classification")
    assert stopped.options["columns"] == "path=fil,label=kind"


def test_wrong_columns_of_a_frame():
    """A name that no column has, a header, and a name that two columns have."""
    frame = pd.DataFrame({"image_uri": ["1.jpg", "2.jpg"], "label": ["a", "b"]})
    for columns in ({"path": "image_uri", "label": "labl"}, "header=no"):
        with pytest.raises(UsageError, match=r"labl|header"):
            recordgen.check(frame, columns=columns)
    twice = pd.DataFrame([["1.jpg", "2.jpg", "a"]], columns=["path", "path", "label"])
    with pytest.raises(UsageError, match="'path'"):
        recordgen.check(twice)


REVIEWS = "review,stars\n" + "".join(f'"Good, and cheap {n}.",{n % 5 + 1}\n' for n in range(12))
PHOTOS = "".join(f"{n}.jpg,{'cat' if n % 2 else 'dog'}\n" for n in range(12))


# text, columns
FIRST_LINES = [
    (REVIEWS, "text=1,label=2"),
    (REVIEWS, "text=review,label=stars"),
    (f"image,breed\n{PHOTOS}", "path=1,label=2"),
    (f"name,label\n{PHOTOS}", "path=1,label=2"),
]


@pytest.mark.parametrize(("text", "columns"), FIRST_LINES)
@pytest.mark.parametrize("task", ["auto", "given"])
def test_the_reader_obeys_the_header_that_was_detected(text, columns, task, tmp_path):
    """A header with a known name is no example, also if columns are given by number."""
    path = write_file(tmp_path / "a.csv", text)
    options = {"columns": columns}
    if task == "given":
        kind = "text" if "text" in columns else "image"
        options["task"] = f"{kind}_classification"
    found = Reading(path, **options)
    assert found.detection.header is True
    assert [row.line for row in found.items] == list(range(2, 14))
    # A reader of a file that detection has not opened decides alike.
    assert read_rows(found.options, ImportFile(str(path))) == found.items


def test_a_label_may_be_a_known_name(tmp_path):
    """A first row with a path is no header, although its label is the word "label"."""
    given = {"columns": "path=1,label=2"}
    assert found(tmp_path, "a.csv", "1.jpg,label\n2.jpg,image\n", **given).header is False
