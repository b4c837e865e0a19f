"""Offsets of entities in characters, UTF-16 code units and bytes."""

import json

import pandas as pd
import pytest

import recordgen
from recordgen.core.rows.row import Adjustments
from recordgen.errors import UsageError
from recordgen.tasks import TextEntities
from recordgen.tasks.texts.tags import Span, TagError, in_codepoints
from recordgen.tasks.texts.task import TextContent
from tests.conftest import stored_examples
from tests.formats.sources import Reading, write_files

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
    task = TextEntities(unit)
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
