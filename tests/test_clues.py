"""What import files say of their task, and that it is said which lines do."""

from __future__ import annotations

from pathlib import Path

import pytest

from recordgen.errors import SourceError, UsageError
from recordgen.options import ConvertOptions
from recordgen.sources import ImportFile
from recordgen.sources.deciding import Finding, decide


def found(folder: Path, name: str, lines: str) -> Finding:
    path = folder / name
    path.write_text(lines, encoding="utf-8")
    return decide([ImportFile(str(path))], ConvertOptions())


# lines of a file, its task, and the end of the reason
CSV = [
    ("a.jpg,cat", "image_classification", ":1 has one label"),
    ("img001,cat\nimg002,dog", "image_classification", ":1 has one label"),
    ("gs://b/my photo.jpg,cat", "image_classification", ":1 has one label"),
    ("id,breed\n000bec,collie", "image_classification", ":1 has one label"),
    ("TRAIN,gs://b/photo,cat,dog", "image_multi_label", ":1 has 2 labels"),
    ("a.jpg,cat,.1,.2,,,.5,.6,,", "object_detection", ":1 has a box"),
    ("TRAIN,Good and cheap.,praise", "text_classification", ":1 has a text"),
    ("\ngs://b/1.txt,praise\n", "text_classification", ":2 has a text"),
    ('"Good, and cheap",praise,price', "text_multi_label", ":1 has a text and 2 labels"),
    ("Good and cheap,2\nBad and dear,11", "text_classification", ":1 has a text"),
    ("review,sentiment\nGood and cheap,good", "text_classification", ":2 has a text"),
    ("review,sentiment\nGood and cheap,4", "text_sentiment", ":2 has a text and its sentiment"),
    ("text,label\nGood and cheap,4", "text_classification", ":2 has a text"),
    ("id,keyword,location,text,target\n1,,,Good,1", "tabular", "lines behind it fill them"),
    ("age,job,comment,target\n3,x,nice,1\n4,y,bad,0", "tabular", "lines behind it fill them"),
    ("split,image_uri,label,comment\nTRAIN,a,cat,nice", "image_classification", "one label"),
    ("filename,text,label\n1.xml,Good and cheap,good", "text_classification", ":2 has a text"),
    ("TRAIN,my photos/0,cat", "image_classification", ":1 has one label"),
    ("TRAIN,gs://b/My Photos/1 a b c,cat", "image_classification", ":1 has one label"),
    ("https://h/my image.jpg?w=1,cat", "image_classification", ":1 has one label"),
    ("IM 0.jfif,cat", "image_classification", ":1 has one label"),
    ("img0,golden retriever", "image_classification", ":1 has one label"),
    ("img0,cat,dog\nimg1,cat,bird\nimg2,dog,bird", "image_multi_label", ":1 has 2 labels"),
    ("image_id,label\nimg0,0\nimg1,1", "image_classification", ":1 has one label"),
    ("image_path,label,start,end\n0.png,a,0,1", "image_classification", ":2 has one label"),
    ("Image Index,Findings\n0.png,Cardio\n1.png,No Finding", "image_classification", "one label"),
    ("a.jpg,x\nb.jpg,x\nc.jpg,x\nsome text here,dog", "image_classification", ":1 has one label"),
    ("text,label\nGood,praise", "text_classification", ":2 has a text"),
    ("TRAIN,gs://b/list.csv", "video_classification", ":1 names a video, or a list of them"),
    ("a.mp4,car,1,inf", "video_classification", ":1 names a video, or a list of them"),
    ("uri,label,start,end\na,car,1,2", "video_classification", ":1 names the columns of a segment"),
    ("image_uri,label\na,cat", "image_classification", ":2 has one label"),
    ("age,job\n31,nurse\n,clerk", "tabular", ":1 names columns, and the lines behind it fill them"),
    ("a,b,c\nx,y,z", "tabular", ":1 names columns, and the lines behind it fill them"),
    (",text,label\n0,Good and cheap,2", "text_classification", ":2 has a text"),
    ("text,label,,\nGood and cheap,2,,", "text_classification", ":2 has a text"),
    ("Good and cheap,2\nBad and dear,0\nSo so,none", "text_classification", ":1 has a text"),
    ("a b\nc d\ne f\nGood and cheap,x,y", "text_multi_label", ":4 has a text and 2 labels"),
    ("So good,U.S.\nSo bad,U.K.\nSo so,a b c d e", "text_classification", ":1 has a text"),
    ('a.jpg,cat,"0,1","0,2",,,"0,5","0,6",,', "object_detection", ":1 has a box"),
    ("a.jpg,a,b,c,,,d,e", "image_multi_label", ":1 has 5 labels"),
    ("img,label\na,cat", "image_classification", ":2 has one label"),
    (
        'a,"Not a person."\nb c,"Not a person."\nd,"A person."\ne,"A person."',
        "text_classification",
        ":1 has a text",
    ),
    ('"Hello, how are you?","I am fine."', "text_classification", ":1 has a text"),
    ('TRAIN,"Hello you","I am fine."', "text_classification", ":1 has a text"),
    ("wow http://t.co/a.jpg,good\nsee http://t.co/b.jpg,bad", "text_classification", "has a text"),
    ("TRAIN,http://[a,cat", "image_classification", ":1 has one label"),
    ("partition,split,text,label\n0,TEST,Good,x", "text_classification", ":2 has a text"),
    ("sepal.length,species\n5.1,setosa", "tabular", "lines behind it fill them"),
]


@pytest.mark.parametrize(("lines", "task", "reason"), CSV)
def test_lines_of_csv_tell_their_task(lines: str, task: str, reason: str, tmp_path: Path) -> None:
    finding = found(tmp_path, "a.csv", lines)
    assert (finding.options.task, finding.options.input_format) == (task, "csv")
    assert finding.reason.startswith(f"{tmp_path / 'a.csv'}:")
    assert finding.reason.endswith(reason)


# a line of a file, its task, and the end of the reason
JSONL = [
    ('{"imageGcsUri": "a", "boundingBoxAnnotations": [{}]}', "object_detection", "Annotations"),
    ('{"imageGcsUri": "a"}', "image_classification", "no line has an annotation"),
    ('{"textGcsUri": "a", "classificationAnnotation": {}}', "text_classification", "tation"),
    (
        '{"textContent": "a", "classificationAnnotations": [{}]}',
        "text_multi_label",
        "classificationAnnotations",
    ),
    ('{"textContent": "a", "sentimentAnnotation": 0}', "text_sentiment", "ation"),
    ('{"textContent": "a", "textSegmentAnnotations": []}', "text_entities", "Annotations"),
    (
        '{"imageGcsUri": "a", "textContent": "b", "classificationAnnotation": {"a": "c"}}',
        "image_classification",
        "classificationAnnotation",
    ),
    ('{"textContent": "a", "textSegmentAnnotations": [{}]}', "text_entities", "Annotations"),
    (
        '{"text_snippet": {"content": "a"}, "annotations": [{"text_extraction": {}}]}',
        "text_entities",
        "annotations of parts of a text",
    ),
    ('{"videoGcsUri": "a", "classificationAnnotation": {}}', "video_classification", "videoGcsUri"),
]


@pytest.mark.parametrize(("line", "task", "reason"), JSONL)
def test_keys_of_jsonl_tell_their_task(line: str, task: str, reason: str, tmp_path: Path) -> None:
    finding = found(tmp_path, "a.jsonl", f"{line}\n")
    assert (finding.options.task, finding.options.input_format) == (task, "jsonl")
    assert finding.reason.startswith(f"{tmp_path / 'a.jsonl'}:")
    assert finding.reason.endswith(reason)


def test_sentences_are_told_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("O O")
    finding = found(tmp_path, "sentences.txt", "Good bye")
    assert (finding.options.task, finding.options.input_format) == ("text_entities", "iob")


MIXED = [
    ("a.csv", "a.jpg,cat\nGood and cheap,praise", "image_classification", "text_classification"),
    ("a.csv", "a.mp4,car\na.jpg,cat", "image_classification", "video_classification"),
    (
        "a.jsonl",
        '{"imageGcsUri": "a", "classificationAnnotation": {"displayName": "cat"}}\n'
        '{"textContent": "a", "classificationAnnotation": {"displayName": "cat"}}',
        "image_classification",
        "text_classification",
    ),
    (
        "a.jsonl",
        '{"textContent": "a", "sentimentAnnotation": {"sentiment": 1}}\n'
        '{"textContent": "a", "textSegmentAnnotations": [{}]}',
        "text_sentiment",
        "text_entities",
    ),
]


@pytest.mark.parametrize(("name", "lines", "one", "other"), MIXED)
def test_two_tasks_in_a_file_are_both_shown(
    name: str, lines: str, one: str, other: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="read as more than one task") as caught:
        found(tmp_path, name, lines)
    assert f"{one}: {tmp_path / name}:" in str(caught.value)
    assert f"{other}: {tmp_path / name}:" in str(caught.value)


# lines of a file, what is said of it
REFUSED = [
    (",text,target\n0,Good and cheap,1", r":1: column 1 has no name; .*index=False"),
    (",age,job\n0,31,nurse\n1,40,clerk", r":1: column 1 has no name; .*index=False"),
    ("age,job,,\n31,nurse,,\n40,clerk,,", r":1: column 3 has no name"),
    ("document,label\n1.png,bill", r":2: .* texts \(document,label\), .* image_uri, or video_uri"),
    ("image,label,bbox\na.jpg,cat,0", r":1: the columns bbox are boxes in a form that is not"),
    ("image,label,x,y,w,h\na.jpg,cat,1,2,3,4", r":1: the columns x, y, w, h are boxes in a form"),
    ("image_id,label,split\na,cat,TRAIN", r":1: .* none of them is known to hold paths"),
    ("TRAIN,gs://b/a.jsonl\nTEST,b.jsonl", r":1: this file lists JSONL files, .* themselves"),
    (
        "So good, and cheap.,praise\nSo bad,poor",
        r":1: the label 'and cheap.' reads as part of a text",
    ),
    (
        "So good, and so very cheap for us\nSo so, so",
        r":1: the label 'and so very cheap for us' reads",
    ),
    ("TRAIN;a b;cat\nTEST;c d;dog", r":1: fields must be separated by commas \(got semicolons\)"),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED)
def test_what_is_no_import_file_is_refused(lines: str, message: str, tmp_path: Path) -> None:
    """What other programs write is an error that says what to do, not a dataset of something."""
    with pytest.raises(SourceError, match=rf"a\.csv{message}"):
        found(tmp_path, "a.csv", lines)


def test_other_objects_are_refused(tmp_path: Path) -> None:
    """An export of another tool names none of the keys; a single line of it is a mistake."""
    other = '{"data_row": {"id": 1}, "projects": {}}'
    with pytest.raises(
        SourceError, match=r"a\.ndjson:2: no line has .* \(this one has data_row, p"
    ):
        found(tmp_path, "a.ndjson", f"\n{other}\n{other}\n")
    line = '{"textContent": "a"}'
    assert found(tmp_path, "a.jsonl", f"{other}\n{line}").options.task == "text_classification"


def test_whole_numbers_may_be_sentiments_or_classes(tmp_path: Path) -> None:
    """They are sentiments, with a word about the other reading, unless other lines say more."""
    lines = "TRAIN,Good and cheap,2\nBad and dear,0\nSo so\n"
    finding = found(tmp_path, "a.csv", lines)
    assert finding.options.task == "text_sentiment"
    assert finding.reason.endswith(
        "a.csv:1 has a text and its sentiment; --task text_classification if such numbers are "
        "classes"
    )
    for more, task in (
        ("Never again,poor\n", "text_classification"),
        ("Never again,poor,late\n", "text_multi_label"),
    ):
        (tmp_path / "b.csv").write_text(more)
        files = [ImportFile(str(tmp_path / name)) for name in ("a.csv", "b.csv")]
        assert decide(files, ConvertOptions()).options.task == task


def test_few_lines_of_another_task_are_mistakes(tmp_path: Path) -> None:
    finding = found(tmp_path, "a.csv", "a.jpg,cat\n" * 9 + "Good and cheap,praise\n")
    assert finding.options.task == "image_classification"


def test_options_of_tables_say_that_it_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,y\nGood and cheap,1\n")
    files = [ImportFile(str(path))]
    finding = decide(files, ConvertOptions(target_column="y"))
    assert (finding.options.task, finding.reason) == ("tabular", "target_column is given")
    with pytest.raises(UsageError, match="target_column is for tables, and the task is image"):
        decide(files, ConvertOptions(target_column="y", task="image_classification"))


def test_texts_without_annotations_do_not_count(tmp_path: Path) -> None:
    """One line with entities among many that say nothing is what the file is about."""
    lines = ['{"textContent": "a"}'] * 9
    lines.append('{"textContent": "b", "textSegmentAnnotations": [{"displayName": "x"}]}')
    assert found(tmp_path, "a.jsonl", "\n".join(lines)).options.task == "text_entities"
