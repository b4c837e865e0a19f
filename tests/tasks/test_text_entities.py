"""Entities in texts: spans, tokens and tags agree, from the import file to the record."""

import json
import shutil
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordgen
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.rows.row import Row, content_uri
from recordgen.errors import DataError, SourceError, UsageError
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from recordgen.rejects import Finding
from recordgen.tasks.texts.tags import Span, are_whole, cut_spans, spans_of, tags_of, tokenize
from tests.conftest import stored_examples
from tests.formats.sources import write_files
from tests.rows import read_rows

TASK = {"task": "text_entities"}

# text, its tokens
TOKENS = [
    ("Anna flew to New York.", ["Anna", "flew", "to", "New", "York", "."]),
    ("  U.S.\t5€ a_b\n", ["U", ".", "S", ".", "5", "€", "a_b"]),
    ("don't\x1cstop_1-2 \x00", ["don", "'", "t", "stop_1", "-", "2", "\x00"]),
    ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),  # vowel signs are marks
    ("e\u0301te\u0301 東京", ["e\u0301te\u0301", "東", "京"]),
    ("在iPhone 15上。", ["在", "iPhone", "15", "上", "。"]),
    ("ラーメンとか\u3099", ["ラ", "ー", "メ", "ン", "と", "か\u3099"]),
    ("ที่นี่ ๒๕ บาท", ["ที่", "นี่", "๒๕", "บ", "า", "ท"]),
    ("ລາວ ខ្មែរ မြန်", ["ລ", "າ", "ວ", "ខ្", "មែ", "រ", "မြ", "န်"]),
    ("서울 시", ["서울", "시"]),  # Korean has blanks
    ("❤\ufe0f\u00a0ok", ["❤\ufe0f", "ok"]),
    (" \u2003 ", []),
]


@pytest.mark.parametrize(("text", "tokens"), TOKENS)
def test_tokens(text, tokens):
    """Tokens are words, and other characters except blanks; marks stay with their character."""
    assert [text[start:end] for start, end in tokenize(text)] == tokens


def test_a_span_begins_and_ends_anywhere_in_a_sentence_without_blanks():
    """In Chinese, Japanese and Thai, tags do not extend an entity beyond its span."""
    for text, name in (
        ("我住在北京市中心", "北京市"),
        ("東京タワーに行く", "東京タワー"),
        ("ไปเที่ยวลาวกัน", "ลาว"),
    ):
        tokens, start = tokenize(text), text.index(name)
        span = Span(start, start + len(name), "place")
        assert spans_of(tokens, tags_of(tokens, [span]))[0] == [span]


@given(st.text(max_size=40))
@settings(max_examples=50)
def test_no_character_is_lost(text):
    """Tokens are in order, do not overlap, and include every character that is not blank."""
    tokens = tokenize(text)
    assert all(start < end for start, end in tokens)
    assert all(one.end <= other.start for one, other in pairwise(tokens))
    inside = {place for start, end in tokens for place in range(start, end)}
    assert inside == {place for place, character in enumerate(text) if not character.isspace()}


@st.composite
def tagged(draw):
    """Generate a text and spans of whole tokens that do not overlap."""
    words = draw(st.lists(st.sampled_from(["Zoë", "in", "東京", "U.S.", "-", "9"]), min_size=1))
    text = draw(st.sampled_from(["", " ", "\t"])) + " ".join(words)
    tokens, spans, at = tokenize(text), [], 0
    while at < len(tokens):
        last = min(at + draw(st.integers(1, 3)), len(tokens)) - 1
        if draw(st.booleans()):
            label = draw(st.sampled_from(["city", "person"]))
            spans.append(Span(tokens[at].start, tokens[last].end, label))
        at = last + 1
    return text, spans


@given(tagged())
@settings(max_examples=50)
def test_tags_and_spans_say_the_same(case):
    """Spans that become tags come back."""
    text, spans = case
    tokens = tokenize(text)
    assert spans_of(tokens, tags_of(tokens, spans)) == (spans, [])


@given(st.text("a_\u0301- 在ทิ", min_size=1, max_size=4), st.data())
@settings(max_examples=300)
def test_a_span_that_is_clearly_whole_needs_no_tokens(text, data):
    """A span whose ends need no tokens to be judged cuts no token and contains at least one."""
    start = data.draw(st.integers(0, len(text) - 1))
    spans = [Span(start, data.draw(st.integers(start + 1, len(text))), "x")]
    if are_whole(text, spans):
        tokens = tokenize(text)
        assert not cut_spans(tokens, spans)
        assert any(tag != "O" for tag in tags_of(tokens, spans))


def test_a_span_within_a_word_takes_the_whole_word():
    """The whole token is tagged; blanks at a span's ends change nothing."""
    tokens = tokenize("in Kölns Mitte")
    assert tags_of(tokens, [Span(3, 7, "city")]) == ["O", "B-city", "O"]
    assert tags_of(tokens, [Span(2, 10, "city")]) == ["O", "B-city", "I-city"]


def vertex(text, *spans, key="textContent", **more):
    names = ("startOffset", "endOffset", "displayName")
    segments = [dict(zip(names, span, strict=True)) for span in spans]
    return json.dumps({key: text, "textSegmentAnnotations": segments, **more})


def read(path, *lines):
    """Return rows, and the changes made to them."""
    path.write_text("".join(f"{line}\n" for line in lines))
    options = ConvertOptions(task="text_entities", format="jsonl")
    found = read_rows(options, ImportFile(str(path)))
    findings = [item.code for item in found if isinstance(item, Finding)]
    return [item for item in found if not isinstance(item, Finding)], findings


def said(row):
    assert isinstance(row, Row), row
    assert row.annotation is not None
    return json.loads(row.annotation)


def test_shapes_of_json(tmp_path):
    """Vertex AI's line and the older one are equivalent; numbers may be texts, 0 may be missing."""
    text = "Zoë in Köln"
    parts = {"person": {"end_offset": 3}, "city": {"start_offset": "7", "end_offset": "11"}}
    annotations = [
        {"text_extraction": {"text_segment": part}, "display_name": label}
        for label, part in parts.items()
    ]
    old = {"text_snippet": {"content": text}, "annotations": annotations}
    lines = [vertex(text, (7, 11, "city"), (0, "3", "person")), json.dumps(old)]
    rows, adjusted = read(tmp_path / "a.jsonl", *lines)
    expected = {"text": text, "said": {"spans": [[0, 3, "person"], [7, 11, "city"]]}}
    assert [said(row) for row in rows] == [expected, expected]
    assert {row.uri for row in rows} == {content_uri(text)}
    assert not adjusted
    use = {"dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "test"}}
    [row], adjusted = read(tmp_path / "b.jsonl", vertex("Kölns Mitte", (0, 4, "city"), **use))
    assert isinstance(row, Row)
    assert (row.split, adjusted) == ("test", ["spans_within_words"])


def written(out):
    return {
        values["text"][0]: {**values, "split": f"Split-{name}"}
        for name, values in stored_examples(out)
    }


def test_records(tmp_path):
    """Tokens, tags and spans agree; rows with their text are examples, whatever others say."""
    (tmp_path / "file.txt").write_text("Zoë met Mr. York", encoding="utf-8-sig")
    (tmp_path / "two.txt").write_text("Ben left")
    lines = [
        vertex("Anna flew to New York.", (13, 21, "city"), (0, 4, "person")),
        vertex("Paris", (0, 5, "city")),
        vertex("Paris", (0, 5, "person")),
        vertex("Nothing here"),
        vertex("file.txt", (8, 16, "person"), key="textGcsUri"),
        vertex("two.txt", (0, 3, "person"), key="textGcsUri"),
        vertex("two.txt", (0, 3, "city"), key="textGcsUri"),
        vertex(str(tmp_path / "file.txt"), (8, 17, "person"), key="textGcsUri"),
    ]
    (tmp_path / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    source, out = str(tmp_path / "a.jsonl"), tmp_path / "out"
    dataset = recordgen.convert(source, out, **TASK, max_reject_fraction=0.5).dataset
    rows = dataset.rows
    assert dataset.labels == ("city", "person")
    assert (out / "tags.txt").read_text() == "O\nB-city\nI-city\nB-person\nI-person\n"
    assert (rows.examples, rows.merged, rows.duplicates) == (5, 0, 0)
    assert rows.rejected == {"bad_annotation": 1, "conflicting_labels": 2}
    assert dataset.lint["CONFLICT"] == 1
    found = written(out)
    anna = found[b"Anna flew to New York."]
    assert anna["tokens"] == [b"Anna", b"flew", b"to", b"New", b"York", b"."]
    assert anna["tags/text"] == [b"B-person", b"O", b"O", b"B-city", b"I-city", b"O"]
    assert anna["tags/label"] == [3, 0, 0, 1, 2, 0]
    assert (anna["entity/start"], anna["entity/end"]) == ([0, 13], [4, 21])
    assert anna["entity/class/text"] == [b"person", b"city"]
    assert anna["entity/class/label"] == [1, 0]
    assert found[b"Nothing here"]["tags/label"] == [0, 0]
    assert "entity/start" not in found[b"Nothing here"]
    stored = found["Zoë met Mr. York".encode()]
    assert stored["source_id"] == [b"file.txt"]
    assert stored["tags/text"] == [b"O", b"O", b"B-person", b"I-person", b"I-person"]


@pytest.fixture
def iob(tmp_path):
    """A folder of sentences and tags, in two splits and one file without."""
    files = {
        "train/sentences.txt": "Anna is in the U.S. now\r\n\r\nKöln\tis  old\n",
        "train/labels.txt": "B-person O O O I-city O\r\n\r\nB-city\tO O\n\n",
        "val_sentences.txt": "\ufeffBen left\n",
        "val_labels.txt": "B-person O",
        "sentences.txt": "One\n",
        "labels.txt": "O\n",
    }
    return write_files(tmp_path / "data", files)


def test_sentences_and_tags(iob, tmp_path):
    """A folder, or a glob of its sentences: tokens stay as given, names give the splits."""
    result = recordgen.convert(str(iob), tmp_path / "out", **TASK, split="0,0,1")
    found = written(tmp_path / "out")
    assert {text.decode(): values["split"] for text, values in found.items()} == {
        "Anna is in the U.S. now": "Split-train",
        "Köln is old": "Split-train",
        "Ben left": "Split-eval",
        "One": "Split-test",
    }
    anna = found[b"Anna is in the U.S. now"]
    assert anna["tokens"] == [b"Anna", b"is", b"in", b"the", b"U.S.", b"now"]
    assert anna["tags/text"] == [b"B-person", b"O", b"O", b"O", b"B-city", b"O"]
    assert (anna["entity/start"], anna["entity/end"]) == ([0, 15], [4, 19])
    assert result.dataset.rows.adjusted == {"tags_begun": 1}
    other = recordgen.convert(
        [str(iob / "*sentences.txt"), str(iob / "train/sentences.txt")],
        tmp_path / "other",
        **TASK,
        split="0,0,1",
    )
    assert other.dataset.digest == result.dataset.digest
    shutil.make_archive(str(tmp_path / "data"), "zip", iob)
    packed = recordgen.convert(str(tmp_path / "data.zip"), tmp_path / "zip", **TASK, split="0,0,1")
    assert {*written(tmp_path / "zip")} == {*found}
    assert packed.dataset.rows.adjusted == result.dataset.rows.adjusted


# file, its text, error, what the message names
BROKEN = [
    ("train/labels.txt", "O O\n", SourceError, "sentences.txt:3: .*labels.txt ends"),
    ("train/sentences.txt", "a\n", SourceError, "labels.txt:3: .*sentences.txt ends"),
    ("labels.txt", "O O\n", DataError, "bad_annotation 1"),
    ("labels.txt", "X-x\n", DataError, "bad_annotation 1"),
]


@pytest.mark.parametrize(("name", "text", "error", "message"), BROKEN)
def test_files_that_do_not_go_together(iob, tmp_path, name, text, error, message):
    """A different number of lines is an error; a different number of tags rejects the line."""
    (iob / name).write_text(text)
    with pytest.raises(error, match=message):
        recordgen.convert(str(iob), tmp_path / "out", **TASK)


def test_what_is_no_source_of_entities(iob, tmp_path):
    """A file of tags, a list of files, a file without tags and columns fail."""
    with pytest.raises(SourceError, match=r"labels\.txt: .*iob"):
        recordgen.convert(str(iob / "labels.txt"), tmp_path / "out", **TASK, format="iob")
    (tmp_path / "a.csv").write_text("TRAIN,gs://bucket/a.jsonl\n")
    with pytest.raises(UsageError):
        recordgen.convert(str(tmp_path / "a.csv"), tmp_path / "out", **TASK)
    frame = pd.DataFrame({"text": ["Anna"], "label": ["person"]})
    with pytest.raises(UsageError, match="JSONL"):
        recordgen.convert(frame, tmp_path / "out", **TASK)
    (iob / "labels.txt").unlink()
    with pytest.raises(SourceError, match=r"labels\.txt: "):
        recordgen.convert(str(iob), tmp_path / "out", **TASK)


def test_append_and_resume(iob, tmp_path, out):
    """Known rows are skipped, also as JSON; other readings are added; tags keep their numbers."""
    recordgen.convert(str(iob), out, **TASK)
    assert recordgen.convert(str(iob), out, **TASK, resume=True).unchanged
    lines = [
        vertex("Anna is in the U.S. now", (0, 4, "person"), (15, 19, "city")),
        vertex("Ben left", (0, 3, "person"), (4, 8, "verb")),
        vertex("Asia, too", (0, 4, "area")),
    ]
    (tmp_path / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    dataset = recordgen.convert(str(tmp_path / "a.jsonl"), out, **TASK, append=True).dataset
    rows = dataset.rows
    assert (rows.existing, rows.examples) == (1, 6)
    assert dataset.labels == ("city", "person", "area", "verb")
    assert (out / "tags.txt").read_text().split()[-2:] == ["B-verb", "I-verb"]
    assert read_dataset(str(out)).examples == 6
