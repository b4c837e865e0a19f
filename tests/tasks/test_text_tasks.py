"""Labelled texts: the parsing of their lines, and datasets of them."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import read_table

import recordgen
from recordgen.core.dataset.vocabulary import Vocabulary, build_vocabulary
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import PlannedRow, content_uri
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import DataError, UsageError
from recordgen.formats.automl_jsonl import parse_line
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject, RejectCode
from recordgen.tasks import TextClassification, TextMultiLabel, TextSentiment, task_for
from recordgen.tasks.texts.task import TextContent, inline, stored
from tests.conftest import stored_examples, write_file
from tests.planned import record_of
from tests.settings import payload_settings

ONE, MANY, SENTIMENT = TextClassification(), TextMultiLabel(), TextSentiment()
SNIPPET = {"text_snippet": {"content": "x"}}


def older(*found):
    return {**SNIPPET, "annotations": list(found)}


# task, line of JSONL without its text, labels
LINES = [
    (ONE, {}, None),
    (ONE, {"classificationAnnotation": {"displayName": "a"}}, ["a"]),
    (ONE, older({"display_name": "a", "classification": {"score": 1}}), ["a"]),
    (MANY, {"classificationAnnotations": [{"displayName": "b"}, {"displayName": "a"}]}, ["a", "b"]),
    (MANY, {"classificationAnnotation": {"displayName": "a"}}, ["a"]),
    (MANY, older({"displayName": "b", "classification": {}}, {"display_name": "a"}), ["a", "b"]),
    (SENTIMENT, {"sentimentAnnotation": {"sentiment": 1, "sentimentMax": 2}}, ["1"]),
    (SENTIMENT, {"sentimentAnnotation": {"sentiment": "1"}}, ["1"]),
    (SENTIMENT, {"sentimentAnnotation": 10}, ["10"]),
    (SENTIMENT, {"sentimentAnnotation": 2.0}, ["2"]),
    (SENTIMENT, {"sentimentAnnotation": {"sentimentMax": 4}}, ["0"]),
    (SENTIMENT, older({"text_sentiment": {"sentiment": 3}}), ["3"]),
]


@pytest.mark.parametrize(("task", "line", "labels"), LINES)
def test_lines(task, line, labels):
    """Both shapes of a line of JSONL give text and labels."""
    line = line if "text_snippet" in line else {"textContent": "x", **line}
    [row] = parse_line(json.dumps(line).encode(), "a.jsonl", 1, task, Counter())
    assert not isinstance(row, Reject), row
    assert (row.uri, TextContent.decode(row.annotation)) == (content_uri("x"), ("x", labels))


def test_rows_of_one_text():
    """Labels of one file are merged, or contradict each other; a row with its text is whole."""
    bare, first, second = (inline("x", said).annotation for said in (None, ["a"], ["b"]))
    assert ONE.part("x.txt", first) == ONE.part("x.txt", second)
    assert ONE.part(content_uri("x"), first) != ONE.part(content_uri("x"), second)
    assert ONE.merge([bare, first, first]) == (first, 2)
    assert MANY.merge([bare, first, second, first]) == (inline("x", ["a", "b"]).annotation, 1)
    assert first is not None
    assert bare is not None
    for task in (ONE, MANY):
        assert task.contradicts(first, second)
        assert not task.contradicts(bare, second)
    assert not MANY.contradicts(first, MANY.merge([first, second]).annotation)
    with pytest.raises(AnnotationError, match="'a', 'b'"):
        ONE.merge([first, second])


LABELS = st.lists(st.sampled_from(["a", "b", "ä,b"]), max_size=3, unique=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@settings(max_examples=50)
@given(st.booleans(), TEXTS, LABELS)
def test_an_example_holds_what_its_row_says(is_inline, text, labels):
    """An example gives back what its shard's digest covers: the text, the labels and the uri."""
    vocabulary = build_vocabulary(["a", "b", "ä,b"])
    for task, some in ((MANY, labels), (ONE, labels[:1])):
        uri, annotation = (inline if is_inline else stored)(
            text if is_inline else "a.txt", sorted(some) or None
        )
        row = PlannedRow(0, "a.csv", 1, uri, annotation, 1, "", True)
        payloads = [] if is_inline else [b"\xef\xbb\xbf" + text.encode()]
        record, digested = record_of(task, row, payloads, vocabulary, payload_settings())
        values = parse_example(record)
        assert task.digested(record) == digested
        assert values["text"] == [text.encode()]
        numbers = values.get("class/label", [])
        assert [vocabulary.names[number] for number in numbers] == sorted(some)


def test_sentiments_are_their_own_numbers():
    """A label is its number, also if others do not occur."""
    row = PlannedRow(0, "a.csv", 1, *inline("x", ["3"]), 1, "", True)
    vocabulary = build_vocabulary(["3", "1"])
    assert vocabulary == Vocabulary("integer", ("0", "1", "2", "3"))
    record, _ = record_of(SENTIMENT, row, [], vocabulary, payload_settings())
    assert parse_example(record)["class/label"] == [3]
    with pytest.raises(UsageError, match=r"labels=text .*text_sentiment"):
        task_for(ConvertOptions(task="text_sentiment", labels="text"))


# task, name, line
TEXTS_OF_OTHERS = [
    ("text_classification", "a.jsonl", '{"textGcsUri": "URI"}'),
    ("text_entities", "a.jsonl", '{"textGcsUri": "URI"}'),
    ("text_classification", "a.csv", "TRAIN,URI.txt,a"),
    ("image_classification", "a.csv", "TRAIN,URI,a"),
    ("image_classification", "a.jsonl", '{"imageGcsUri": "URI"}'),
    ("video_classification", "a.csv", "TRAIN,URI,a,0,1"),
]


@pytest.mark.parametrize(("task", "name", "line"), TEXTS_OF_OTHERS)
def test_rows_cannot_name_a_text_of_others(task, name, line, tmp_path):
    """The address under which texts are known inside is none in a row."""
    (tmp_path / name).write_text(line.replace("URI", content_uri("x")) + "\n")
    [reject] = recordgen.check(str(tmp_path / name), task=task).rejects
    assert (reject.line, reject.code) == (1, "unknown_scheme")
    assert "sha256://" in reject.message


@pytest.mark.parametrize(
    ("payload", "code"), [(b"\xff\xfeT\0", RejectCode.BAD_ENCODING), (b" \n", "empty_text")]
)
def test_files_that_are_no_text(payload, code, tmp_path):
    """A file in another encoding, or of blanks, rejects its row."""
    (tmp_path / "1.txt").write_bytes(payload)
    (tmp_path / "2.txt").write_bytes(b"x" * 2_000_000)
    (tmp_path / "a.csv").write_text("1.txt,a\n2.txt,a\nTRAIN,x,a\n")
    found = recordgen.check(str(tmp_path / "a.csv"), task="text_classification", limit="mb=1")
    codes = {item.line: item.code for item in found.rejects}
    assert codes == {1: code, 2: "too_many_bytes"}
    assert " 1 MB (got 2.0 MB)" in " ".join(i.message for i in found.rejects)


# task, lines, options, the lines of the examples
EQUAL_TEXTS = [
    ("text_classification", ["hello,a", "hello,a", "bye,b", "so,a"], {}, [1, 2, 3, 4]),
    ("text_multi_label", ["hello,a,b", "hello,b,a"], {}, [1, 2]),
    ("text_classification", ["I love it,a", "I love it,a", "no,b"], {"duplicates": "drop"}, [1, 3]),
    ("text_classification", ["hello", "hello,a", "bye,b"], {}, [1, 2, 3]),
    ("text_classification", ["hello,a", "hello,b", "bye,b"], {}, [1, 2, 3]),
    # Several labels are added up.
    ("text_multi_label", ["hello,a", "hello,b", "bye,b"], {}, [1, 3]),
]


@pytest.mark.parametrize(("task", "lines", "options", "kept"), EQUAL_TEXTS)
def test_equal_texts_are_examples_of_their_own(task, lines, options, kept, tmp_path):
    """Equal rows with a text count as often as they occur, unless copies are dropped."""
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text("".join(f"{line}\n" for line in lines))
    options = {"task": task, "max_reject_fraction": 1.0, **options}
    dataset = recordgen.convert(path, out, **options).dataset
    assert sorted(read_table(out / "examples.parquet")["line"].to_pylist()) == kept
    rows = dataset.rows
    assert rows.read == rows.examples + rows.duplicates + rows.merged + rows.rejects
    assert len(list(stored_examples(out))) == len(kept)
    assert recordgen.convert(path, out, resume=True, **options).unchanged


def sizes(dataset):
    return {name: split.examples for name, split in dataset.splits.items()}


def test_a_copy_of_a_text_without_a_split_joins_one_that_names_it(tmp_path):
    """A copy of a text without a split joins the first split that others name; append agrees."""
    path, out, options = tmp_path / "a.csv", tmp_path / "out", {"task": "text_classification"}
    path.write_text("TRAIN,hello,a\nTEST,hello,a\nhello,b\nbye,b\n")
    for append in (False, True):
        found = recordgen.convert(path, out, split="100", append=append, **options).dataset
        assert sizes(found) == {"train": 3, "test": 1}
        assert not found.rows.rejects
    path.write_text("hello,a\nhello,a\n")
    with pytest.raises(DataError, match=r"a\.csv:2 .*a\.csv:1"):
        recordgen.plan(path, duplicates="fail", **options)


def test_equal_texts_stay_in_the_splits_that_rows_name(tmp_path):
    """Equal texts in two splits, of one file or several, are examples of both, and a leak."""
    train, dev, both = (tmp_path / name for name in ("train.csv", "dev.csv", "both.csv"))
    train.write_text("TRAIN,Yes.,a\nTRAIN,hello,b\n")
    dev.write_text("VALIDATION,Yes.,a\nVALIDATION,hello,a\nVALIDATION,bye,b\n")
    both.write_text(train.read_text() + dev.read_text())
    options = {"task": "text_classification"}
    for source in ([train, dev], both):
        dataset = recordgen.convert(source, tmp_path / "out", **options, overwrite=True).dataset
        assert sizes(dataset) == {"train": 2, "eval": 3}
        assert dataset.lint["LEAK"] == 2
        assert not dataset.rows.rejects
    recordgen.convert(train, tmp_path / "more", **options)
    for rest in (dev, both):
        more = recordgen.convert(rest, tmp_path / "more", append=True, **options).dataset
        assert sizes(more) == {"train": 2, "eval": 3}


def test_only_accepted_answers_of_prodigy_give_labels(tmp_path):
    """A rejected label is no label; a column of that name that is asked for is one."""
    answers = ["accept", "accept", "reject", "ignore"]
    rows = [{"text": f"t{n}", "label": "a", "answer": each} for n, each in enumerate(answers)]
    source = write_file(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    options = {"task": "text_classification", "max_reject_fraction": 1, "fail_on": "none"}
    for columns, count in {"text=text,label=label": 2, "text=text,label=answer": 4}.items():
        out = tmp_path / columns
        found = recordgen.convert(str(source), out, columns=columns, **options).dataset
        assert found.examples == count
