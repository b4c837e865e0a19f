"""Detection of the task and the columns of import files, and conflicts that stop the run."""

import json
import re

import pandas as pd
import pytest

import recordgen
from recordgen.cli import main
from recordgen.conversion.texts.summaries import detection_lines
from recordgen.errors import SourceError, UsageError
from recordgen.formats.detect import detect, detect_frame
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import preview_files
from recordgen.formats.samples import Samples
from recordgen.options import ConvertOptions
from tests.formats.sources import Reading, write_files
from tests.rows import read_rows


def found(folder, name, lines, **options):
    """Write an import file and return its detection."""
    path = folder / name
    path.write_text(lines, encoding="utf-8")
    return detect([ImportFile(str(path))], ConvertOptions(**options))


def first_row(folder, name, options):
    return preview_files([ImportFile(str(folder / name))], options, Samples()).rows[0]


# lines of a file, its task, and the end of the reason
CSV = [
    ("a.jpg,cat", "image_classification", ":1 has one label"),
    ("img001,cat\nimg002,dog", "image_classification", ":1 has one label"),
    ("gs://b/my photo.jpg,cat", "image_classification", ":1 has one label"),
    ("TRAIN,gs://b/photo,cat,dog", "image_multi_label", ":1 has 2 labels"),
    ("a.jpg,cat,.1,.2,,,.5,.6,,", "object_detection", ":1 has a box"),
    ("a.jpg", "image_classification", ": no line has an annotation"),
    ("a.jpg,x\nb.jpg,x,y", "image_multi_label", ":2 has 2 labels"),
    ("a.jpg,1,2,3,4,5,6,7,8,9", "image_multi_label", ":1 has 9 labels"),
    ("a.jpg\nb.jpg,x,.1,.2,,,.3,.4,,", "object_detection", ":2 has a box"),
    ("a.jpg,x,1,0,,,9,400,,", "object_detection", ":1 has a box"),
    ("a.jpg,x,.1,.2,.5,.6", "object_detection", ":1 has a box"),
    ("a.jpg,x,10,20,50,20,50,60,10,60", "object_detection", ":1 has a box"),
    ("a.jpg,x,.1,nan,,,.3,.4,,", "object_detection", ":1 has a box"),
    ("a.jpg,x,0,0,1,0,1,1,0,1", "object_detection", ":1 has a box"),
    ("image,label,x1,y1,x2,y2\na", "object_detection", ":1 names the columns of a box"),
    ("image,label,xmin,ymin,xmax,ymax\na", "object_detection", ":1 names the columns of a box"),
    ("\nxmin,image,label,ymin,xmax,ymax\n,a", "object_detection", ":2 names the columns of a box"),
    ("image,label,class\na,b,c", "image_classification", ":1 names the columns of images"),
    ("image,label,label\na,b,c", "image_multi_label", ":1 names the columns of images"),
    ("TRAIN,Good and cheap.,praise", "text_classification", ":1 has a text and its label"),
    ("\ngs://b/1.txt,praise\n", "text_classification", ":2 has a text and its label"),
    ('"Good, and cheap",praise,price', "text_multi_label", ":1 has a text and 2 labels"),
    ("Good and cheap,2\nBad and dear,11", "text_classification", "a text and its label"),
    ("review,sentiment\nGood and cheap,good", "text_classification", "the columns of texts"),
    ("review,sentiment\nGood and cheap,4", "text_sentiment", "columns of texts and sentiments"),
    ("text,label\nGood and cheap,4", "text_classification", ":1 names the columns of texts"),
    ("id,keyword,location,text,target\n1,,,Good,1", "tabular", "lines below fill them"),
    ("age,job,comment,target\n3,x,nice,1\n4,y,bad,0", "tabular", "lines below fill them"),
    ("split,image_uri,label,comment\nTRAIN,a,cat,nice", "image_classification", "of images"),
    ("filename,text,label\n1.xml,Good and cheap,good", "text_classification", "columns of texts"),
    ("TRAIN,my photos/0,cat", "image_classification", ":1 has one label"),
    ("TRAIN,gs://b/My Photos/1 a b c,cat", "image_classification", ":1 has one label"),
    ("https://h/my image.jpg?w=1,cat", "image_classification", ":1 has one label"),
    ("IM 0.jfif,cat", "image_classification", ":1 has one label"),
    ("img0,golden retriever", "image_classification", ":1 has one label"),
    ("img0,cat,dog\nimg1,cat,bird\nimg2,dog,bird", "image_multi_label", ":1 has 2 labels"),
    ("image_id,label\nimg0,0\nimg1,1", "image_classification", "names the columns of images"),
    ("image_path,label,start,end\n0.png,a,0,1", "image_classification", "columns of images"),
    ("text,label\nGood,praise", "text_classification", ":1 names the columns of texts"),
    ("TRAIN,gs://b/list.csv", "video_classification", ":1 names a video, or a list of them"),
    ("a.mp4,car,1,inf", "video_classification", ":1 names a video, or a list of them"),
    ("uri,label,start,end\na,car,1,2", "video_classification", ":1 names the columns of a segment"),
    ("image_uri,label\na,cat", "image_classification", ":1 names the columns of images"),
    ("age,job\n31,nurse\n,clerk", "tabular", ":1 names columns, and the lines below fill them"),
    ("a,b,c\nx,y,z", "tabular", ":1 names columns, and the lines below fill them"),
    (",text,label\n0,Good and cheap,2", "text_classification", ":1 names the columns of texts"),
    ("text,label,,\nGood and cheap,2,,", "text_classification", "the columns of texts"),
    ("a b\nc d\ne f\nGood and cheap,x,y", "text_multi_label", ":4 has a text and 2 labels"),
    ("So good,U.S.\nSo bad,U.K.\nSo so,a b c d e", "text_classification", "and its label"),
    ('a.jpg,cat,"0,1","0,2",,,"0,5","0,6",,', "object_detection", ":1 has a box"),
    ("a.jpg,a,b,c,,,d,e", "image_multi_label", ":1 has 5 labels"),
    ("img,label\na,cat", "image_classification", ":1 names the columns of images"),
    ('a,"Not a man."\nb c,"Not a man."\nd,"A man."\ne,"A man."', "text_classification", "label"),
    ('"Hello, how are you?","I am fine."', "text_classification", ":1 has a text and its label"),
    ('TRAIN,"Hello you there","I am fine."', "text_classification", "has a text and its label"),
    ("wow http://t.co/a.jpg,good\nsee http://t.co/b.jpg,bad", "text_classification", "its label"),
    ("TRAIN,http://[a,cat", "image_classification", ":1 has one label"),
    ("partition,split,text,label\n0,TEST,Good,x", "text_classification", "columns of texts"),
    ("sepal.length,species\n5.1,setosa", "tabular", "lines below fill them"),
    ("filepaths,labels\nx/1.jpg,cat", "image_classification", ":1 names the columns of images"),
    ("video_path,label\n1.mp4,run", "video_classification", ":1 names the columns of a segment"),
    ("text_path,label\n1.txt,good", "text_classification", ":1 names the columns of texts"),
    # Published forms: rows with and without ML_USE, ragged labels, one class, a class "train".
    ("test,gs://b/1.jpg,a\ngs://b/3.png\ngs://b/4.bmp,b", "image_classification", "one label"),
    ("TRAIN,gs://b/1.jpg,a\ngs://b/2.jpg,b,c\ngs://b/3.jpg", "image_multi_label", "has 2 labels"),
    ("".join(f"gs://b/{n}.jpg,cat\n" for n in range(9)), "image_classification", "one label"),
    ("TRAIN,a.jpg,train\nTEST,b.jpg,bus\n,c.jpg,train", "image_classification", "has one label"),
    ("TEST,gs://f/3.png,,,,,,,,,\nb.jpg,x,.1,.2,,,.3,.4,,\nc.jpg", "object_detection", "a box"),
    ("age,split,y\n31,TRAIN,1\n40,TEST,0\n,UNASSIGNED,1", "tabular", "lines below fill them"),
    ("TRAIN,\u3053\u308c\u306f\u30da\u30f3\u3067\u3059,a", "text_classification", "its label"),
    ("\u8fd9\u5bb6\u9152\u5e97\u5f88\u597d\u3002,a\nx,b", "text_classification", "its label"),
    ("\u7167\u7247\u7167\u7247\u7167\u7247/1.jpg,a", "image_classification", "has one label"),
    ('"Good, and cheap"\n"Bad, and dear"\n', "text_classification", ": no line has an annotation"),
    ("Good and cheap,a\nSo and so\nBad and dear,a,b\nSo so so,a,c", "text_multi_label", "2 labels"),
    ("a.jpg,cat,.1,.2,,,.3,.4,,\nb.jpg,train,.1,.2,,,.3,.4,,", "object_detection", "has a box"),
    ("a.jpg,train,.1,.2,,,.3,.4,,\nb.jpg,train,.1,.2,,,.3,.4,,", "object_detection", "has a box"),
    ("a.mp4,1\nb.mp4,run", "video_classification", ":1 names a video, or a list of them"),
    ("image,label,state\na.jpg,cat,valid\nb.jpg,dog,valid", "image_classification", "of images"),
]


@pytest.mark.parametrize(("lines", "task", "reason"), CSV)
def test_lines_of_csv_tell_their_task(lines, task, reason, tmp_path):
    check_finding(tmp_path, "a.csv", lines, task, reason)


def check_finding(folder, name, lines, task, reason):
    finding = found(folder, name, lines, seed=3)
    decided = ConvertOptions(
        seed=3,
        task=task,
        format="csv" if name.endswith(".csv") else "jsonl",
        table=finding.options.table,
    )
    assert finding.options == decided
    assert finding.header or task != "tabular"
    assert finding.reason.startswith(f"{folder / name}:")
    assert finding.reason.endswith(reason)
    if task != "tabular":
        said = detect([ImportFile(str(folder / name))], decided)
        assert (said.options, said.reason) == (decided, "")


# lines of a file, its task, and the end of the reason
JSONL = [
    ('no JSON\n{"imageGcsUri": "a", "classificationAnnotations": [{"displayName": "x"}]}',
     "image_multi_label", ":2 has classificationAnnotations"),
    ('\ufeff{"imageGcsUri": "a", "boundingBoxAnnotations": [{}]}', "object_detection",
     ":1 has boundingBoxAnnotations"),
    ('{"imageGcsUri": "a", "boundingBoxAnnotations": [{}]}', "object_detection", "Annotations"),
    ('{"imageGcsUri": "a"}', "image_classification", "no line has an annotation"),
    ('{"imageGcsUri": "a", "boundingBoxAnnotations": []}', "object_detection", "Annotations"),
    ('{"imageGcsUri": "a", "classificationAnnotations": [], "boundingBoxAnnotations": [{}]}',
     "object_detection", "boundingBoxAnnotations"),
    ('{"textGcsUri": "a", "classificationAnnotation": {}}', "text_classification", "tation"),
    ('{"textContent": "a", "classificationAnnotations": [{}]}', "text_multi_label",
     "classificationAnnotations"),
    ('{"textContent": "a", "sentimentAnnotation": 0}', "text_sentiment", "ation"),
    ('{"textContent": "a", "textSegmentAnnotations": []}', "text_entities", "Annotations"),
    ('{"imageGcsUri": "a", "textContent": "b", "classificationAnnotation": {"a": "c"}}',
     "image_classification", "classificationAnnotation"),
    ('{"textContent": "a", "textSegmentAnnotations": [{}]}', "text_entities", "Annotations"),
    ('{"text_snippet": {"content": "a"}, "annotations": [{"text_extraction": {}}]}',
     "text_entities", "annotations of parts of a text"),
    ('{"videoGcsUri": "a", "classificationAnnotation": {}}', "video_classification", "videoGcsUri")
]  # fmt: skip


@pytest.mark.parametrize(("line", "task", "reason"), JSONL)
def test_keys_of_jsonl_tell_their_task(line, task, reason, tmp_path):
    check_finding(tmp_path, "a.jsonl", f"{line}\n", task, reason)


# file name, its line, format
NAMES = [
    ("a", "a.jpg,x", "csv"),
    ("a", '\n{"imageGcsUri": "a"}', "jsonl"),
    ("a.json", '{"imageGcsUri": "a"}', "jsonl"),
]


@pytest.mark.parametrize(("name", "line", "input_format"), NAMES)
def test_names_and_first_lines_tell_the_format(name, line, input_format, tmp_path):
    assert found(tmp_path, name, line).options.format == input_format


def test_sentences_are_told_by_their_name(tmp_path):
    (tmp_path / "labels.txt").write_text("O O")
    finding = found(tmp_path, "sentences.txt", "Good bye")
    assert (finding.options.task, finding.options.format) == ("text_entities", "iob")


CLASSIFIED = '{"%s": "a", "classificationAnnotation": {"displayName": "cat"}}'
FELT = '{"textContent": "a", "sentimentAnnotation": {"sentiment": 1}}'
NAMED_PARTS = '{"textContent": "a", "textSegmentAnnotations": [{}]}'
BOTH = f"{CLASSIFIED % 'imageGcsUri'}\n{CLASSIFIED % 'textContent'}"
PHOTOS_AND_TEXTS = "image_classification", "text_classification"
MIXED = [
    ("a.csv", "a.jpg,cat\nGood and cheap,praise", *PHOTOS_AND_TEXTS),
    ("a.csv", "a.mp4,car\na.jpg,cat", "image_classification", "video_classification"),
    ("a.csv", "a.jpg,x\nb.jpg,x\nc.jpg,x\nsome text here,dog", *PHOTOS_AND_TEXTS),
    ("a.jsonl", BOTH, *PHOTOS_AND_TEXTS),
    ("a.jsonl", f"{FELT}\n{NAMED_PARTS}", "text_sentiment", "text_entities"),
]


@pytest.mark.parametrize(("name", "lines", "one", "other"), MIXED)
def test_two_tasks_in_a_file_are_both_shown(name, lines, one, other, tmp_path):
    with pytest.raises(UsageError, match="task") as caught:
        found(tmp_path, name, lines)
    assert f"{one}: {tmp_path / name}:" in str(caught.value)
    assert f"{other}: {tmp_path / name}:" in str(caught.value)


WHEAT = "image_id,width,height,bbox,source\n" + "".join(
    f'b6ab77fd{n},1024,1024,"[{n}.0, 222.0, 56.0, 36.0]",usask_1\n' for n in range(300)
)
CLOTHES = "Review Text,Department\n" + "".join(
    f"It fits me well {n},{('Tops', 'Dresses')[n % 2]}\n" for n in range(4)
)
HAM = "ham,Go until jurong point, crazy..\nspam,Free entry in 2 a wkly comp\nham,Ok lar. So\n"
SPLIT = "".join(
    f"img/a{n}.jpg,{('train', 'test')[n == 4]},{'cat' if n % 2 else 'dog'}\n" for n in range(5)
)
SPLIT_LAST = "a.jpg,cat,TRAIN\nb.jpg,dog,TRAIN\nc.jpg,cat,TEST\n"

# lines of a file, error message, options that settle the conflict, and then task, split, subject
# and labels of the first row
STOPS = [
    (SPLIT, r"column 2 .* --columns path=1,split=2,label=3", {"columns": "path=1,split=2,label=3"},
     "image_classification: train | img/a0.jpg | 'dog'"),
    (SPLIT_LAST, r"column 3 .* --columns path=1,split=3,label=2",
     {"columns": "path=1,split=3,label=2"}, "image_classification: train | a.jpg | 'cat'"),
    ("a.jpg,train\nb.jpg,bus\n", ".train., .* --columns path=1,label=2",
     {"columns": "path=1,label=2"}, "image_classification: (assigned) | a.jpg | 'train'"),
    ("image_uri,label\na.jpg,train\nb.jpg,test\n", "--task image_classification",
     {"task": "image_classification"}, "image_classification: (assigned) | a.jpg | 'train'"),
    (WHEAT, r":1: .* --columns path=image_id,width=width,height=height,xywh=bbox,label=source",
     {"columns": "label='wheat'"},
     'object_detection: (assigned) | b6ab77fd0 | '
     '{"boxes":[["wheat",0.0,0.21679688,0.0546875,0.25195312]],"s…'),
    (CLOTHES, r":1: .*'Review Text' .* header=no .* --columns header=yes",
     {"columns": "text=Review Text,label=Department"},
     "text_classification: (assigned) | It fits me well 0 | 'Tops'"),
    (CLOTHES, "header=no .* header=yes", {"columns": "header=no"},
     "text_classification: (assigned) | Review Text | 'Department'"),
    ("Image Index,Findings\n0.png,Cardio\n1.png,No Finding\n", ":1: .*header=no .* header=yes",
     {"columns": "path=1,label=2,header=yes"},
     "image_classification: (assigned) | 0.png | 'Cardio'"),
    ("id,breed\n000bec,collie\n", ":1: .*'id'", {"columns": "path=id,label=breed"},
     "image_classification: (assigned) | 000bec | 'collie'"),
    ("id_code,diagnosis\n000c14,2\n001639,4\n", ":1: .*id_code,diagnosis",
     {"columns": "path=id_code,label=diagnosis"},
     "image_classification: (assigned) | 000c14 | '2'"),
    ("image_name,label_name,x1,y1,x2,y2\na.jpg,dog,0,.1,.1,.2\n",
     ":1: .* --columns path=image_name,",
     {"columns": "path=image_name,label=label_name,xmin=x1,ymin=y1,xmax=x2,ymax=y2"},
     'object_detection: (assigned) | a.jpg | [["dog",0.0,0.1,0.1,0.2]]'),
    ("text,target\nGood and cheap,1\n", ":1: .*text,target", {"columns": "text=text,label=target"},
     "text_classification: (assigned) | Good and cheap | '1'"),
    (HAM, r"column 1 .*\(ham, spam\) .*column 2", {"columns": "label=1,text=2"},
     "text_classification: (assigned) | Go until jurong point | 'ham'"),
    ("cat,a.jpg\ndog,b.jpg\ncat,c.jpg\n", "column 1 .* --columns label=1,path=2",
     {"columns": "label=1,path=2"}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ("".join(f"TRAIN,{('ham', 'spam')[n % 2]},Go until {n} o clock\n" for n in range(4)),
     r"column 2 .* column 3 .*--columns split=1,label=", {"columns": "split=1,label=2,text=3"},
     "text_classification: train | Go until 0 o clock | 'ham'"),
    ("0,a.jpg,cat\n1,b.jpg,dog\n2,c.jpg,cat\n", "column 1 .* --columns path=2,label=3",
     {"columns": "path=2,label=3"}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ("cat,train,a.jpg\ndog,test,b.jpg\n", "column 2 .* --columns path=3,split=2,label=1",
     {"columns": "path=3,split=2,label=1"}, "image_classification: train | a.jpg | 'cat'"),
    ("a.jpg,train,cat,.1,.2,,,.5,.6,,\nb.jpg,test,cat,.1,.2,,,.5,.6,,\n",
     "column 2 .*: TRAIN,PATH,LABEL,",
     {"columns": "path=1,split=2,label=3,xmin=4,ymin=5,xmax=8,ymax=9"},
     'object_detection: train | a.jpg | [["cat",0.1,0.2,0.5,0.6]]'),
    ("a.mp4,run,0,inf,TEST\nb.mp4,run,0,inf,TRAIN\n", "column 5 ",
     {"columns": "path=1,label=2,start=3,end=4,split=5"},
     'video_classification: test | a.mp4 | ["run", 0.0, null]'),
    ("a.mp4,run,0,inf,TEST\n", "column 5 ", {"columns": "path=1,label=2,start=3,end=4,split=5"},
     'video_classification: test | a.mp4 | ["run", 0.0, null]'),
    ("filepaths,labels,data set\na.jpg,cat,train\nb.jpg,dog,valid\n",
     r":1: .*'data set' .*--columns 'split=data set'; ", {"columns": "split=data set"},
     "image_classification: train | a.jpg | 'cat'"),
    ("filename,category,label\na.jpg,pet,cat\nb.jpg,pet,dog\n",
     ":1: .* category and label .* --columns label=label", {"columns": "label=label"},
     "image_classification: (assigned) | a.jpg | 'cat'"),
    ("text,label,fold\nGood and cheap,praise,test\n", "'fold' .* --columns text=text",
     {"columns": "text=text"}, "text_classification: (assigned) | Good and cheap | 'praise'"),
    ("v1,v2\n" + "".join(f"{('ham', 'spam')[n % 2]},Go until {n} o clock\n" for n in range(10)),
     r":1: .*'v1' .* header=yes,text=v2,label=v1", {"columns": "text=v2,label=v1"},
     "text_classification: (assigned) | Go until 0 o clock | 'ham'"),
    ("0,1\na.jpg,cat\nb.jpg,dog\n", ":1: .*=yes,path=0,label=1",
     {"columns": "path=0,label=1,header=yes"}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ("a.jpg,cat,usask\nb.jpg,cat,usask\nc.jpg,cat,usask\n", "'cat'", {"columns": "path=1,label=2"},
     "image_classification: (assigned) | a.jpg | 'cat'"),
    ("a.jpg,1\nb.jpg,cat\n", r"\(1\) .* \(cat\); .*--task image_class",
     {"task": "image_classification"}, "image_classification: (assigned) | a.jpg | '1'"),
    ('a.jpg,"[1, 2, 10, 12]"\nb.jpg,"[2, 2, 10, 12]"\n', "--task image_classification",
     {"task": "image_classification"},
     "image_classification: (assigned) | a.jpg | '[1, 2, 10, 12]'"),
    ("a.jpg,x,cat\nb.jpg,x,dog\nc.jpg,x,cat\n", "'x'.* --task image_multi_label",
     {"task": "image_multi_label"}, 'image_multi_label: (assigned) | a.jpg | ["cat", "x"]'),
    ("a.jpg,1024\nb.jpg,1024\nc.jpg,1024\n", "'1024'", {"task": "image_classification"},
     "image_classification: (assigned) | a.jpg | '1024'"),
    ("So good, and cheap.,praise\nSo bad,poor\n", ":1: .*'and cheap.'",
     {"task": "text_multi_label"},
     "text_multi_label: (assigned) | So good | 'and cheap.', 'praise'"),
    ("So good, and so very cheap for us\nSo so, so\n", ":1: .*'and so very cheap for us'",
     {"task": "text_classification"},
     "text_classification: (assigned) | So good | 'and so very cheap for us'"),
    ("".join(f"Good as gold {n}, part {n},{'yn'[n % 2]}\n" for n in range(12)), ":1: .*'part 0'",
     {"columns": "text=1,label=3"}, "text_classification: (assigned) | Good as gold 0 | 'y'"),
    ("path,path,label\na.jpg,b.jpg,cat\n", r"'path' .* --columns path=1",
     {"columns": "path=1,label=label"}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ("image,label,x,y,w,h\na.jpg,cat,1,2,3,4\n", ":1: .*: x, y, w, h; ",
     {"columns": "path=image,label=label"}, "image_classification: (assigned) | a.jpg | 'cat'"),
    ("document,label\n1.png,bill\n2.png,letter\n", r":1: .* \(document,label\)",
     {"columns": "path=document,label=label"},
     "image_classification: (assigned) | 1.png | 'bill'")
]  # fmt: skip


@pytest.mark.parametrize(("lines", "message", "settled", "row"), STOPS)
def test_conflicts_stop_until_an_option_settles_them(lines, message, settled, row, tmp_path):
    """The run stops without guessing, shows rows, and reads them correctly with the option."""
    with pytest.raises(UsageError, match=f"(?s){message}") as caught:
        found(tmp_path, "a.csv", lines)
    shown = str(caught.value).split("\n")[1:]
    assert "rows" in shown[0] or "lines" in shown[0]
    assert 2 <= len(shown) <= 4
    options = found(tmp_path, "a.csv", lines, **settled).options
    first = first_row(tmp_path, "a.csv", options)
    assert f"{options.task}: {first.split} | {first.subject} | {first.annotation}" == row


@pytest.mark.parametrize(
    ("lines", "columns"),
    [(CLOTHES, "text=1,label=2"), ("foto,kind\na.jpg,cat\nb.jpg,dog\n", "path=1,label=2")],
)
def test_numbers_of_columns_do_not_say_that_there_is_no_header(lines, columns, tmp_path):
    """A first line that reads as a header stops the run until --columns header=decides."""
    with pytest.raises(UsageError, match=r"header=no .* header=yes"):
        found(tmp_path, "a.csv", lines, columns=columns)
    for header, line in (("yes", 2), ("no", 1)):
        decided = found(tmp_path, "a.csv", lines, columns=f"{columns},header={header}")
        first = first_row(tmp_path, "a.csv", decided.options)
        assert first.where == f"{tmp_path / 'a.csv'}:{line}"


def test_a_task_does_not_name_the_split(tmp_path):
    """A column of ML_USE words next to labels stops the run even if the task is given."""
    path = tmp_path / "a.csv"
    path.write_text(SPLIT)
    with pytest.raises(UsageError, match="column 2 "):
        recordgen.convert(str(path), tmp_path / "out", task="image_multi_label")
    assert not (tmp_path / "out").exists()


# lines of a file, error message
REFUSED = [
    (",age,job\n0,31,nurse\n1,40,clerk", r":1: column 1 has no name; .*index=False"),
    ("age,,job\n31,x y,nurse b\n40,y z,clerk c", r":1: "),
    ("text,label\n", r":1: .*\(text,label\)"),
    ("TRAIN,gs://b/a.jsonl\nTEST,b.jsonl", ":1: .*JSONL"),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED)
def test_what_is_no_import_file_is_refused(lines, message, tmp_path):
    """Files of other programs are errors with a remedy; they are never converted as they are."""
    with pytest.raises(SourceError, match=rf"a\.csv{message}"):
        found(tmp_path, "a.csv", lines)


IMAGES = "pic,what,fold\nx/1.jpg,cat,train\nx/2.jpg,dog,\n"
BOXES = "f,l,t,r,b,what\n1.jpg,.1,.2,.5,.6,cat\n"
OBJECTS = '{"f": "1.jpg", "what": ["cat", "dog"], "set": "test"}\n{"f": "2.jpg", "what": null}\n'
SCORED = '{"body": "So good", "stars": 4.0}\n{"body": "So bad"}\n'
AUTOML = (
    '{"imageGcsUri": "1.jpg", "classificationAnnotation": {"displayName": "cat"}, "fold": "dev"}'
)

# file name, lines, options, task, columns as shown, first row
COLUMNS = [
    ("a.csv", IMAGES, {"columns": "label=what, path=pic ,split=fold"}, "image_classification",
     {"fold": "split", "pic": "path", "what": "label"}, ("train", "x/1.jpg", "'cat'")),
    ("a.csv", IMAGES.partition("\n")[2], {"columns": "path=1,label=2,label=3,header=no"},
     "image_multi_label", {"1": "path", "2": "label", "3": "label"},
     ("(assigned)", "x/1.jpg", '["cat", "train"]')),
    ("a.csv", "a,b,a\n1.jpg,x,2.jpg\n", {"columns": "path=3,label=b,header=yes"},
     "image_classification", {"a": "path", "b": "label"}, ("(assigned)", "2.jpg", "'x'")),
    ("a.csv", BOXES, {"columns": "path=f,label=what,xmin=l,ymin=t,xmax=r,ymax=b"},
     "object_detection",
     {"f": "path", "what": "label", "l": "xmin", "t": "ymin", "r": "xmax", "b": "ymax"},
     ("(assigned)", "1.jpg", '[["cat",0.1,0.2,0.5,0.6]]')),
    ("a.csv", "clip,what,from,to\n1.mp4,run,1,2.5\n",
     {"columns": "path=clip,label=what,start=from,end=to"}, "video_classification",
     {"clip": "path", "what": "label", "from": "start", "to": "end"},
     ("(assigned)", "1.mp4", '["run", 1.0, 2.5]')),
    ("a.csv", 'note,"a, b"\n"So good, so cheap",praise\n', {"columns": 'text=note,"label=a, b"'},
     "text_classification", {"note": "text", "a, b": "label"},
     ("(assigned)", "So good, so cheap", "'praise'")),
    ("a.csv", "label,path\n1.jpg,cat\n", {"columns": "path=label,label=path"},
     "image_classification", {"label": "path", "path": "label"}, ("(assigned)", "1.jpg", "'cat'")),
    ("a.jsonl", OBJECTS, {"columns": "path=f,label=what,split=set"}, "image_multi_label",
     {"f": "path", "set": "split", "what": "label"}, ("test", "1.jpg", '["cat", "dog"]')),
    ("a.jsonl", SCORED, {"columns": "text=body,label=stars", "task": "text_sentiment"},
     "text_sentiment", {"body": "text", "stars": "label"}, ("(assigned)", "So good", "'4'")),
    ("a.jsonl", AUTOML.replace("dev", "test"),
     {"columns": "split=fold", "task": "image_classification"}, "image_classification",
     {"fold": "split"}, ("test", "1.jpg", "")),
    ("a.csv", "age,fold,y\n31,TRAIN,1\n40,TEST,0\n", {"columns": "target=y,split=fold"}, "tabular",
     {"age": "int", "fold": "split", "y": "int (target, classification)"},
     ("train", "31,TRAIN,1", None))
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


# lines with boxes, masks or outlines beside the file
LOST = [
    "filename,x0,y0,x1,y1\n{0}.jpg,5,6,20,30\n{1}.jpg,7,8,20,30\n",
    "filename,mask,poly\n{0}.jpg,{0}.png,1 2 3 4 5 6\n{1}.jpg,{1}.png,1 2 3 4 5 7\n",
    "image,cat,x_min,y_min,w,h\n{0}.jpg,3,5,6,20,30\n{1}.jpg,4,7,8,20,30\n",
]


@pytest.mark.parametrize("lines", LOST)
def test_a_label_alone_loses_no_boxes(lines, tmp_path):
    """A label for all rows does not choose the columns: without a path they stop the run."""
    lines = lines.format("a", "b")
    with pytest.raises(UsageError):
        found(tmp_path, "a.csv", lines, columns="label='wheat'")
    path = lines.partition(",")[0]
    chosen = found(tmp_path, "a.csv", lines, columns=f"path={path},label='wheat'")
    assert chosen.options.task == "image_classification"


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
    (IMAGES, {"columns": "header=yes"}, "--columns path="),
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


def test_other_objects_are_refused(tmp_path):
    """A file whose objects have no known key is an error; a single such line is a mistake."""
    other = '{"my_row": {"id": 1}, "projects": {}}'
    with pytest.raises(SourceError, match=r"a\.ndjson:2: .*my_row, projects"):
        found(tmp_path, "a.ndjson", f"\n{other}\n{other}\n")
    line = '{"textContent": "a"}'
    assert found(tmp_path, "a.jsonl", f"{other}\n{line}").options.task == "text_classification"


def test_a_number_of_thousands_of_digits_is_no_sentiment(tmp_path):
    """Python refuses to read it as a number: the run stops as for other odd labels."""
    lines = f"TRAIN,Good and cheap,{'9' * 5000}\nTRAIN,Bad and dear,{'8' * 5000}\n"
    with pytest.raises(UsageError, match="labels"):
        found(tmp_path, "a.csv", lines)


def test_whole_numbers_may_be_sentiments_or_classes(tmp_path):
    lines = "TRAIN,Good and cheap,2\nBad and dear,0\nSo so\n"
    finding = found(tmp_path, "a.csv", lines)
    assert finding.options.task == "text_sentiment"
    assert re.search("a.csv:1 .* --task text_classification", finding.reason)
    (tmp_path / "b.csv").write_text("Never again,poor\n")
    files = [ImportFile(str(tmp_path / name)) for name in ("a.csv", "b.csv")]
    with pytest.raises(UsageError, match=r"\(0, 2\) .* \(poor\)"):
        detect(files, ConvertOptions())


def test_one_line_of_another_task_is_a_mistake(tmp_path):
    """A single line of another task among ten is malformed; two such lines are a conflict."""
    lines, odd = "a.jpg,cat\nb.jpg,dog\n" * 5, "Good and cheap,praise\n"
    assert found(tmp_path, "a.csv", lines + odd).options.task == "image_classification"
    with pytest.raises(UsageError, match="task"):
        found(tmp_path, "b.csv", lines + odd * 2)


def test_options_of_tables_say_that_it_is_one(tmp_path):
    lines = "text,y\nGood and cheap,1\n"
    finding = found(tmp_path, "a.csv", lines, columns="target=y")
    assert (finding.options.task, finding.reason) == ("tabular", "columns target=y is given")
    frame = pd.DataFrame({"text": ["a", "b"], "label": ["x", "y"]})
    assert Reading(frame, columns="target=label").options.task == "tabular"
    with pytest.raises(UsageError, match=r"target=y .* image_classification"):
        found(tmp_path, "a.csv", lines, columns="target=y", task="image_classification")


def test_texts_without_annotations_do_not_count(tmp_path):
    """One line with entities decides the task if the other lines have no annotations."""
    lines = ['{"textContent": "a"}'] * 9
    lines.append('{"textContent": "b", "textSegmentAnnotations": [{"displayName": "x"}]}')
    assert found(tmp_path, "a.jsonl", "\n".join(lines)).options.task == "text_entities"


def test_the_preview_is_always_printed(tmp_path, capsys, caplog):
    """Convert, check and dry run print the detection and three rows, as text and as JSON."""
    path = tmp_path / "a.csv"
    path.write_text("note,kind\nSo good,praise\nSo bad,blame\nSo so,blame\nFine,praise\n")
    out, columns = tmp_path / "out", "--columns=text=note,label=kind"
    rows = [
        f"{path}:{line}: (assigned) | {text} | {label!r}"
        for line, text, label in [(2, "So good", "praise"), (4, "So so", "blame")]
    ]
    for command in (["check", str(path)], ["convert", str(path), str(out)]):
        for more in ([], ["--dry-run"])[: 1 + (command[0] == "convert")]:
            assert main([*command, columns, *more]) == 0
            shown = capsys.readouterr().out
            assert "text_classification (--columns " in shown
            assert "note = text, kind = label" in shown
            assert all(row in shown for row in rows)
            before, after = caplog.text.split("planning", 1)
            assert rows[0] in before
            assert rows[0] not in after
            caplog.clear()
            main(
                [*command, columns, *more, "--json", "-q", *(["--resume"] if out.exists() else [])]
            )
            found = json.loads(capsys.readouterr().out)["detection"]
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
    shown = detection_lines(found(tmp_path, "a.csv", "\n".join(lines) + "\n", **options))
    assert any(line.endswith(columns) for line in shown)


# the first lines of a table, whose names have slashes, and which has few addresses
NAMED = [
    "city,murders,source\nBerlin,3,https://a.org/a.jpg\nBonn,4,by letter\nKiel,5,by phone\n",
    "id,delay/disorder,age\n1,Yes,3\n2,No,4\n3,Yes,7\n",
    "id,homeless,age\n1,housed,3\n2,homeless,4\n3,housed,7\n",
]


@pytest.mark.parametrize("lines", NAMED)
def test_names_with_slashes_and_few_addresses_make_a_table(lines, tmp_path):
    check_finding(tmp_path, "a.csv", lines, "tabular", "lines below fill them")


# columns of a frame, task
TOLD = [
    ({"text": ["a"], "label": ["x"]}, "text_classification"),
    ({"review": ["a"], "label": [["x", "y"]]}, "text_multi_label"),
    ({"text": ["a"], "label_1": ["x"], "label_2": ["y"]}, "text_multi_label"),
    ({"text": ["a", "b"], "sentiment": [1, None]}, "text_sentiment"),
    ({"text": ["a"], "sentiment": ["good"]}, "text_classification"),
    ({"image_uri": ["1.jpg"], "comment": ["a"], "label": ["x"]}, "image_classification"),
]


@pytest.mark.parametrize(("cells", "task"), TOLD)
def test_frames_tell_their_task(cells, task):
    """A column of texts means texts unless another names files; the labels decide the task."""
    assert detect_frame(pd.DataFrame(cells), ConvertOptions()).options.task == task


# columns of a frame, options, task, annotation of the first row
FRAMES = [
    ({"pic": ["1.jpg", "2.jpg"], "kind": ["cat", "dog"], "label": [1, 2]},
     {"columns": {"path": "pic", "label": "kind"}}, "image_classification", "'cat'"),
    ({"pic": ["1.jpg"], "a": ["cat"], "b": [["dog", "cow"]]},
     {"columns": {"path": "pic", "label": ["a", "b"]}}, "image_multi_label",
     '["cat", "cow", "dog"]'),
    ({"words": ["So good"], "stars": [3.0]},
     {"columns": "text=words,label=stars", "task": "text_sentiment"}, "text_sentiment", "'3'")
]  # fmt: skip


@pytest.mark.parametrize(("cells", "options", "task", "annotation"), FRAMES)
def test_columns_of_a_frame(cells, options, task, annotation):
    """The columns of a DataFrame are given by name, including columns with lists of labels."""
    found = Reading(pd.DataFrame(cells), **options)
    assert (found.options.task, found.detection.rows[0].annotation) == (task, annotation)


def test_frames_stop_as_files_do():
    """A conflict in a DataFrame is an error that names the option that settles it."""
    frame = pd.DataFrame({"image_uri": ["1.jpg", "2.jpg"], "label": ["train", "test"]})
    with pytest.raises(UsageError, match=r"task='image_class"):
        recordgen.check(frame)
    with pytest.raises(UsageError, match=r"'labl', .* image_uri, label; .*'label'"):
        recordgen.check(frame, columns={"path": "image_uri", "label": "labl"})
    with pytest.raises(UsageError, match=r"header.*"):
        recordgen.check(frame, columns="header=no")
    table = pd.DataFrame({"age": [31, 40], "category": ["a", "b"], "label": ["x", "x"]})
    assert Reading(table).options.task == "tabular"  # in a table, both possible labels are features
    with pytest.raises(UsageError, match=r"\(text,label\), .*\(a.jpg\)"):
        recordgen.check(pd.DataFrame({"text": ["a b", None, "a.jpg"], "label": ["x"] * 3}))
    with pytest.raises(UsageError, match=": BBox; "):
        recordgen.check(pd.DataFrame({"image": ["a"], "label": ["x"], "BBox": [[1, 2]]}))
    twice = pd.DataFrame([["1.jpg", "2.jpg", "a"]], columns=["path", "path", "label"])
    with pytest.raises(UsageError, match="'path'"):
        recordgen.check(twice)
    folds = pd.DataFrame({"image": ["1.jpg", "2.jpg"], "label": ["a", "b"], "fold": ["test", None]})
    with pytest.raises(UsageError, match=r"'fold' .*split=fold"):
        recordgen.check(folds, task="image_classification")


REVIEWS = "review,stars\n" + "".join(f'"Good, and cheap {n}.",{n % 5 + 1}\n' for n in range(12))
PHOTOS = "".join(f"{n}.jpg,{'cat' if n % 2 else 'dog'}\n" for n in range(12))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (REVIEWS, "text=1,label=2"),
        (REVIEWS, "text=review,label=stars"),
        (f"image,breed\n{PHOTOS}", "path=1,label=2"),
        (f"Filename,breed\n{PHOTOS}", "path=1,label=2"),
        (f"name,label\n{PHOTOS}", "path=1,label=2"),
    ],
)
@pytest.mark.parametrize("task", ["auto", "given"])
def test_the_reader_obeys_the_header_that_was_detected(text, columns, task, tmp_path):
    """A header with a known name is no example, also if columns are given by number."""
    path = write_files(tmp_path, {"a.csv": text}) / "a.csv"
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


def test_integer_classes_below_a_header_stay_integers(tmp_path):
    """The header adds no class, so labels keep their numbers."""
    path = write_files(tmp_path, {"a.csv": REVIEWS}) / "a.csv"
    dataset = recordgen.check(path, columns="text=1,label=2", lint="-ALL").dataset
    assert (dataset.examples, dataset.labels[1:]) == (12, ("1", "2", "3", "4", "5"))


@pytest.mark.parametrize(
    "text",
    [
        "0.jpg,cat,VALIDATION\n1.jpg,dog\n",
        "0.jpg,train\n1.jpg,dog\n",
        "a\nx,1.jpg\ny,2.jpg\nz,3.jpg\n",
        "name\nx,1.jpg\ny,2.jpg\nz,3.jpg\n",
        'Image URI,labels\n""\n"",""\n',
    ],
)
def test_odd_files_stop_with_a_message(text, tmp_path):
    """Splits after the label, and a first line shorter than the column of paths, are no crash."""
    with pytest.raises((UsageError, SourceError), match=r"header|split"):
        found(tmp_path, "a.csv", text)


def test_a_file_of_one_line_with_numbers(tmp_path):
    """A single line has no lines below it that could show that it is a header."""
    assert found(tmp_path, "a.csv", "0,1,\n", task="image_classification").header is False


def test_the_reader_obeys_the_decision_about_the_first_line(tmp_path):
    """Names of columns in a line that detection takes for a row do not cost the row."""
    text = "set,Image URI,clas;Validation,my photo 0.jpg,do\n,,\n"
    found = Reading(write_files(tmp_path, {"a.csv": text}) / "a.csv")
    assert found.detection.header is False
    assert [item.line for item in found.items] == [1]
