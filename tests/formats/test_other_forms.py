"""Forms of rows that other tools write are refused by name, before a row is read wrongly."""

import re

import pandas as pd
import pytest

from recordgen.errors import RecordgenError
from recordgen.formats.detect import detect, detect_frame
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from tests.rows import read_rows

ROWS = 12

# The message about :: names it as a separator.
SIGN = "::"
SPANS, ENTITY = "label .*spans", '{{"start": 0, "end": 4, "label": "PER"}}'
GLUE = "{i}\tWhen did it begin?\tIt began in the year {i}.\tentailment"
TWEET = "4,{i},Mon Apr 06 22:19:45 PDT 2009,NO,user{i},Awww that is such a bummer for me {i}."

# name of the file, header, a line of which {i} is the number, words of the message
REFUSED = {
    "fastText": ("a.txt", "", "__label__praise Good and cheap, in fact {i}.", "fastText"),
    "boxes after blanks": ("a.txt", "", "{i}.jpg 10,20,30,40,0 50,60,70,80,1", "PATH,LABEL"),
    "keras-retinanet": ("a.csv", "", "{i}.jpg,4,5,8,10,cat\nx{i}.jpg,,,,,", "retinanet"),
    "SKU-110K": ("a.csv", "", "{i}.jpg,4,5,8,10,cat,40,20", "retinanet"),
    "shares before labels": ("a.csv", "", "{i}.jpg,0,.5,.8,1.0,cat", "use --columns .*,label=6$"),
    "pipes": ("a.csv", "", "Good, and cheap {i}.|praise", r"\|"),
    "blanks": ("a.data", "", " 0.0063{i}  18.00   2.31  0  0.538", "header"),
    "blanks and quotes": ("a.data", "", '18.{i}   8   307.0  130.0\t"ford f{i}"', "blanks"),
    "iris": ("a.csv", "", "5.{i},3.5,1.4,0.2,Iris-setosa", "header"),
    "adult": ("a.csv", "", "3{i}, State-gov, 7{i}, Male, <=50K", "header"),
    "zoo": ("a.csv", "", "animal{i}x,1,0,0,1,4", "header"),
    "words": ("a.csv", "", "b,x,o,negative", "header"),
    "two numbers": ("a.csv", "", "{i}.5,{i}.25", "header"),
    "a split and a table": ("a.csv", "", "TRAIN,5.{i},3.5,1.4,setosa", "header"),
    "one-hot, bare": ("a.csv", "", "{i}.jpg,1,0,0", "one-hot"),
    "joined": ("a.csv", "", "{i}.jpg,cat|dog\nx{i}.jpg,dog|owl", r"'\|'"),
    "joined in quotes": ("a.csv", "", '{i}.jpg,"cat,dog"\nx{i}.jpg,"dog,owl"', "separator ',',"),
    "doccano": ("a.jsonl", "", '{{"text": "Anna flew {i}", "label": [[0, 4, "PER"]]}}', SPANS),
    "spaCy": ("a.jsonl", "", f'{{{{"text": "Anna", "ents": [{ENTITY}]}}}}', "ents .*spans"),
    "fractions": ("a.csv", "", "{i}.jpg,0.{i}1,0.25", "fractions"),
    "fractions below a header": ("a.csv", "image,label", "{i}.jpg,3.{i}1", "fractions"),
    "one joined label": ("a.csv", "", "{i}.jpg,cat\nx{i}.jpg,cat|dog", r"'\|'"),
    "joined by blanks": ("a.csv", "", "{i}.jpg,a\ny{i}.jpg,b\nx{i}.jpg,a b", "' '"),
    "no label": ("a.csv", "image,breed,split", "{i}.jpg,cat,train", "path=image,label=breed"),
    "texts below words": ("a.csv", "ask,mean", "How do I do {i} now?,c{i}", "text=ask,label=mean"),
    "labels before texts": ("a.csv", "v1,v2,,,", "ham,Go until {i} now,,,", "text=v2,label=v1"),
    "ids below words": ("a.csv", "datei,typ", "im_{i},c{i}", "path=datei,label=typ"),
    "boxes below words": ("a.csv", "fname,bbox_x1,bbox_y1,class", "{i}.jpg,1,2,c", "bbox_x1, bbox"),
    "boxes without classes": (
        "a.csv",
        "image_id,xmin,ymin,xmax,ymax",
        "{i}.jpg,1,2,3,4",
        "label=",
    ),
    "AG News": ("a.csv", "", "{i},Bears are back,The sellers see green {i}.", "text=3,label=1"),
    "LIBSVM": ("a.txt", "", "+1 3:1 11:0.{i}", "blanks"),
    "CUB's paths": ("images.txt", "", "{i} 001.Albatross/{i}.jpg", "PATH,LABEL"),
    "tokens in a table": ("a.csv", "Sentence #,Word,POS,Tag", "S: {i},York,NNP,B-geo", "'Tag'"),
    "pairs of GLUE": ("a.tsv", "index\tquestion\tsentence\tlabel", GLUE, "question"),
    "dates before texts": ("a.csv", "", TWEET, "text=6"),
    "labels of doccano": ("a.csv", "text,label", "Good and cheap,a\nBad,b\nFine {i},a#b", "'#'"),
    "spans in a table": ("a.csv", "text,start,end,type", "Anna flew {i},0,4,PER", "start.*end"),
    "a numbered test set": ("a.csv", "image,label,test", "{i}.jpg,cat,0", "'test'"),
    "MovieLens": ("ratings.dat", "", "{i}::1193::5::978300760", SIGN),
    "MovieLens' titles": ("movies.dat", "", "{i}::Toy Story, The (1995)::Animation|Comedy", SIGN),
    "paths and ::": ("a.csv", "", "{i}.jpg::cat", SIGN),
    "ARFF": ("a.arff", "% Iris\n@RELATION iris\n@ATTRIBUTE sl NUMERIC\n@DATA", "5.{i},a", "ARFF"),
    "offsets": ("a.csv", "text,start,end,label", "Anna flew there {i},0,4,PER", "start, end"),
}


def refusal(folder, name, header, line, **options):
    lines = [header] if header else []
    lines += [line.format(i=number) for number in range(ROWS)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return refusal_of(folder / name, **options)


def refusal_of(path, **options):
    with pytest.raises(RecordgenError) as caught:
        detect([ImportFile(str(path))], ConvertOptions(**options))
    return str(caught.value)


@pytest.mark.parametrize(("name", "header", "line", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_other_forms_are_refused_by_name(name, header, line, words, tmp_path):
    """No row of another form becomes an example with exit 0."""
    assert re.search(words, refusal(tmp_path, name, header, line))


@pytest.mark.parametrize("name", ["MovieLens", "MovieLens' titles", "paths and ::", "ARFF"])
def test_a_table_has_these_separators_neither(name, tmp_path):
    """The task that reads any columns does not read a whole line as one."""
    file, header, line, words = REFUSED[name]
    assert re.search(words, refusal(tmp_path, file, header, line, task="tabular"))


# name, header and a line of a file whose numbers name splits or folds; the column
NUMBERED = [
    ("a.csv", "image_id,partition,label", "{i}.jpg,{d},cat", "partition"),  # CelebA
    ("a.csv", "filename,fold,label", "{i}.jpg,{d},cat", "fold"),
    ("a.csv", "text,label,split", "Good and cheap {i},praise,{d}", "split"),
    ("a.csv", "label,text,is_valid", "praise,Good and cheap {i},True", "is_valid"),  # fastai
    ("a.csv", "age,job,split", "{i},cook,{d}", "split"),
    ("a.csv", "age,job,k-fold", "{i},cook,{d}", ""),
    ("a.csv", "age,job,kfold", "{i},cook,{d}", "kfold"),
    ("a.csv", "filename,set,xmin,ymin,xmax,ymax,label", "{i}.jpg,{d},.1,.1,.2,.2,cat", "set"),
    ("a.csv", "filename,fold,label", "{i}.jpg,fold{d},cat", ""),
    ("a.csv", "filename,set,label", "{i}.jpg,train,cat", ""),
]


@pytest.mark.parametrize(("name", "header", "line", "column"), NUMBERED)
def test_numbers_of_splits_are_neither_labels_nor_features(name, header, line, column, tmp_path):
    """A split of the user's own is not lost without a word, nor does a model see it."""
    rows = [line.format(i=number, d=number % 3) for number in range(ROWS)]
    (tmp_path / name).write_text("\n".join([header, *rows]) + "\n")
    files = [ImportFile(str(tmp_path / name))]
    if not column:
        detect(files, ConvertOptions())
        return
    with pytest.raises(RecordgenError, match=f"column '{column}'"):
        detect(files, ConvertOptions())


def test_a_column_of_folds_may_be_ignored_or_group(tmp_path):
    """The options that name the columns, or the group, say what the numbers mean."""
    rows = [f"{number}.jpg,{number % 3},cat" for number in range(ROWS)]
    (tmp_path / "a.csv").write_text("\n".join(["filename,fold,label", *rows]) + "\n")
    files = [ImportFile(str(tmp_path / "a.csv"))]
    for options in ({"columns": "path=filename,label=label"}, {"group_by": "fold"}):
        assert detect(files, ConvertOptions(**options)).options.task == "image_classification"


def test_numbered_splits_of_a_frame_and_of_objects(tmp_path):
    """DataFrames and JSON Lines are checked as CSV files are."""
    frame = pd.DataFrame({"text": ["Good, and cheap."] * 3, "label": [*"abb"], "fold": [0, 1, 2]})
    with pytest.raises(RecordgenError, match="column 'fold'"):
        detect_frame(frame, ConvertOptions())
    line = '{{"f": "{i}.jpg", "y": "cat", "s": 1}}'
    message = refusal(tmp_path, "a.jsonl", "", line, columns="path=f,label=y,split=s")
    assert "column 's'" in message


@pytest.mark.parametrize(
    ("name", "header", "line", "columns", "words"),
    [
        ("a.csv", "f,cat,dog", "{i}.jpg,1,0", "path=f,label=cat,label=dog", "cat, dog"),
        ("a.jsonl", "", '{{"f": "{i}.jpg", "y": [1, 0]}}', "path=f,label=y", "label=y[cat|dog"),
        ("a.jsonl", "", '{{"t": "Anna", "label": [[0, 4, "A"]]}}', "text=t,label=label", "spans"),
        ("a.csv", "f,l", "{i}.jpg,cat|dog\nx{i}.jpg,dog|owl", "path=f,label=l", "'|'"),
    ],
)
def test_named_columns_are_checked_too(name, header, line, columns, words, tmp_path):
    """Naming the column of labels does not make flags and spans classes."""
    assert words in refusal(tmp_path, name, header, line, columns=columns)


# header, a line, the column of labels that the message suggests
LIKELY = [
    ("lesion_id,image_id,dx,age,sex", "H_{i},{i},n{d},{i},m", "label=dx"),
    ("gold_label,s1,s2,captionID", "e{d},A person ran {i}.,A man.,{i}#4", "label=gold_label"),
    ("Image Index,Finding Labels,Patient ID,Age", "{i}.jpg,f{d},{i},{i}", "label=Finding L"),
    ("file_name,text", "{i}.jpg,a drawing of a green animal {i}", "label=…"),
    ("id,url,observed_on,place,name", "{i},{i}.jpg,2020-01-{i},x{i},y{i}", "label=…"),
]


@pytest.mark.parametrize(("header", "line", "label"), LIKELY)
def test_a_suggested_column_is_likely_to_hold_labels(header, line, label, tmp_path):
    """Who follows the message does not train on numbers of patients or on dates."""
    rows = [line.format(i=number + 10, d=number % 2) for number in range(ROWS)]
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    with pytest.raises(RecordgenError, match=label):
        detect([ImportFile(str(tmp_path / "a.csv"))], ConvertOptions())


def test_one_hot_lists_of_a_frame_are_refused():
    """A list of 0 and 1 in a column of labels is not the labels 0 and 1."""
    frame = pd.DataFrame({"image_uri": ["a.jpg"] * 3, "label": [[1, 0], [0, 1], [1, 1]]})
    with pytest.raises(RecordgenError, match=r"label=label\[cat"):
        detect_frame(frame, ConvertOptions())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "1.jpg,0\n2.jpg,1\n3.jpg,1\n"),  # classes 0 and 1
        ("a.csv", "image,label\n1.jpg,0\n2.jpg,1\n3.jpg,1\n"),
        ("a.csv", "image,label,flag\n1.jpg,x,0\n2.jpg,y,1\n3.jpg,y,1\n"),  # one flag beside labels
        ("a.csv", "The std::vector of a program,x\nA map and a list of it,y\nNo::one,x\n"),
        ("a.csv", 'text,label\n"a | b, and so",x\n"c | d, and so",y\n'),
        ("a.csv", "My photo 1.jpg,cat\nMy photo 2.jpg,dog\nMy photo 3.jpg,dog\n"),
        ("a.csv", "TRAIN,Good,praise\nTEST,Bad,complaint\nTRAIN,So so,none\n"),
        ("a.csv", 'a.jpg,"cat, domestic"\nb.jpg,"dog, wild"\nc.jpg,owl\n'),  # nothing recurs
        ("a.csv", "a.jpg,salt/pepper\nb.jpg,salt/pepper\nc.jpg,sugar\n"),
        ("a.tsv", "Good, and cheap indeed.\tpraise\nBad, and expensive too.\tblame\n"),
        ("a.txt", "Good, and cheap indeed.\tpraise\nBad, and expensive too.\tblame\n"),
        ("a.tsv", "1.jpg\tcat\n2.jpg\tdog\n3.jpg\tdog\n"),
        ("a.csv", "1.jpg\t0\n2.jpg\t1\n3.jpg\t1\n"),
        ("a.tsv", "sl\tsw\tspecies\n5.1\t3.5\ta\n5.2\t3.4\tb\n5.3\t3.3\tb\n"),
        ("a.tsv", "id\tq1\tq2\n1\tHow so?\tWhy so?\n2\tHow is it?\tWhy is it?\n"),
        ("a.csv", "a.jpg (1).jpg,cat\nb.jpg (2).jpg,dog\n"),
        ("a.csv", "Oil price rises again | BBC,a\nGas price falls again | BBC,b\n"),
        ("a.csv", "photo.jpg was shared by Ann,pos\nimage.jpg was liked by Bob,neg\n"),
        ("a.csv", "1.jpg,cat\n2.jpg,(other)\n3.jpg,dog\n4.jpg,owl\n"),
    ],
)
def test_usual_rows_are_read(name, text, tmp_path):
    """Rows that resemble these forms are read."""
    (tmp_path / name).write_text(text)
    file = ImportFile(str(tmp_path / name))
    found = detect([file], ConvertOptions())
    rows = read_rows(found.options, found.files[0])
    assert len(rows) == text.count("\n") - bool(found.header)


def test_tabs_separate_a_file_of_that_name(tmp_path):
    """A comma in each text of a .tsv does not divide it."""
    (tmp_path / "a.tsv").write_text("Good, and cheap.\tpraise\nBad, and dear.\tblame\n")
    assert detect([ImportFile(str(tmp_path / "a.tsv"))], ConvertOptions()).delimiter == "\t"
