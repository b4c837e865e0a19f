"""findings.jsonl: boxes, tags and spans that were changed or dropped, with their lines."""

import json
from collections import Counter
from functools import partial

import pytest

import recordgen
from recordgen.cli import main
from recordgen.core.flow import runner
from recordgen.core.flow.steps import ReadRows
from recordgen.core.rows.row import Row
from recordgen.core.runs.staging import StagedPlan, Staging
from recordgen.rejects import Finding, Reject
from tests.conftest import peak_of, write_file
from tests.formats.sources import Reading, json_lines, write_files
from tests.settings import conversion


def findings_in(output):
    """Return the lines of an output's findings.jsonl, or none if there is no such file."""
    path = output / "findings.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def lines(make_images):
    """Rows of four images: one box clipped, one empty, one kept, and a reject."""
    a, b, c, d = (f"images/{path.name}" for path in make_images(4))
    return [
        f"TRAIN,{a},cat,.1,.2,,,1.5,.6,,",
        f"TRAIN,{a},dog,.3,.3,,,.3,.6,,",
        f"TRAIN,{b},cat,.1,.2,,,.5,.6,,",
        f"TRAIN,{c},cat,.1,.2,,,.1,.2,,",
        f"TRAIN,{d},cat,7,.2,,,.1,.2,,",
    ]


CLIPPED = "the box 0.1,0.2,1.5,0.6 of 'cat' is outside 0..1; it was stored as 0.1,0.2,1,0.6"
EMPTY = "the box 0.3,0.3,0.3,0.6 of 'dog' is empty; it was dropped"
POINT = "the box 0.1,0.2,0.1,0.2 of 'cat' is empty; it was dropped"


def expected(source, lines):
    """Return the findings about :func:`lines`."""
    found = (1, "boxes_clipped", CLIPPED), (2, "boxes_dropped", EMPTY), (4, "boxes_dropped", POINT)
    return [
        Finding(source, line, lines[line - 1].split(",")[1], code, message)._asdict()
        for line, code, message in found
    ]


def test_convert_says_which_boxes(lines, make_csv, tmp_path, capsys):
    """Findings have file, line, image, box and reason; all are listed; the summary has the path."""
    source, output = make_csv(lines), tmp_path / "out"
    assert main(["convert", source, str(output), "--max-reject-fraction=.5"]) == 0
    assert findings_in(output) == expected(source, lines)
    dataset = recordgen.read_dataset(str(output))
    assert dataset.rows.adjusted == {"boxes_clipped": 1, "boxes_dropped": 2}
    assert dataset.rows.rejected == {"bad_annotation": 1}
    assert f"{output}/findings.jsonl" in capsys.readouterr().out
    # An output without findings has no such file, even if it replaces one with findings.
    clean = make_csv(lines[2:3], "clean.csv")
    assert main(["convert", clean, str(output), "--overwrite"]) == 0
    assert not (output / "findings.jsonl").exists()
    assert "findings" not in capsys.readouterr().out


def test_order_does_not_depend_on_how_rows_are_read(lines, make_csv, tmp_path):
    """Several files and workers: the same lines, by file, line and box."""
    image = lines[0].split(",")[1]
    names = []
    for name in ("a.csv", "b.csv", "c.csv"):
        rows = [f",{image},cat,{n / 100},.5,,,{n / 100},.6,," for n in range(30)]
        names.append(make_csv([lines[2], *rows], name))
    recordgen.convert(names, tmp_path / "whole")
    whole = (tmp_path / "whole/findings.jsonl").read_bytes()
    expected = [(name, line) for name in names for line in range(2, 32)]
    assert [(it["source"], it["line"]) for it in findings_in(tmp_path / "whole")] == expected
    recordgen.convert(names[::-1], tmp_path / "parts", beam_args=["--direct_num_workers=2"])
    assert (tmp_path / "parts/findings.jsonl").read_bytes() == whole
    recordgen.convert(names[1], tmp_path / "parts", append=True)  # its findings are found again
    assert (tmp_path / "parts/findings.jsonl").read_bytes() == whole


def test_memory_does_not_grow_with_findings(tmp_path, monkeypatch):
    """Findings are kept in files while rows are read, of which memory holds few at once."""
    monkeypatch.setattr(runner, "_RUN_BYTES", 50_000)
    run = conversion(task="object_detection")

    def merged(many):
        staging = Staging(str(tmp_path / str(many)))
        step = ReadRows(run.task, run.splits, run.reader, run.store, 1, str(tmp_path), staging, 500)
        step.begin(lambda amounts: None)
        rows = (Finding("a.csv", n, f"{n}.jpg", "boxes_dropped", POINT) for n in range(many))
        files, adjusted = [], Counter()
        for _, part in step.process(rows):
            adjusted.update(part.adjusted)
            files += part.found
        assert (len(files), adjusted) == (many / 500, {"boxes_dropped": many})
        [changes] = runner.merge_found(staging, files).values()
        plan = StagedPlan({}, None, 0, 0, 0, {}, 0, 0, (), changes)
        assert all(item.line == n for n, item in enumerate(staging.read_findings(plan)))

    (_, few), (_, most) = (peak_of(partial(merged, many)) for many in (1_000, 5_000))
    assert most < 1.5 * few


SEGMENT = {"startOffset": 0, "endOffset": 4, "displayName": "city"}
TAGGED = json.dumps({"textContent": "Kölns Mitte", "textSegmentAnnotations": [SEGMENT]})
SENTENCES = {"sentences.txt": "in New York", "labels.txt": "O I-city I-city"}


@pytest.mark.parametrize(
    ("files", "code"), [({"a.jsonl": TAGGED}, "spans_within_words"), (SENTENCES, "tags_begun")]
)
def test_other_tasks(files, code, tmp_path):
    """Everything that is counted as adjusted is listed."""
    source = f"{write_files(tmp_path, files)}/{next(iter(files))}"
    result = recordgen.convert(source, tmp_path / "out", task="text_entities")
    assert result.dataset.rows.adjusted == {code: 1}
    [found] = findings_in(tmp_path / "out")
    assert [found[key] for key in ("source", "line", "code")] == [source, 1, code]
    assert found["uri"].startswith("sha256://")


def test_a_reject_has_no_findings(tmp_path):
    """Changes in a rejected row do not count for the next row."""
    box = {"displayName": "cat", "xMin": 0.5, "yMin": 0.5, "xMax": 0.5, "yMax": 0.6}
    rows = [[box, {**box, "xMin": "x"}], [{**box, "xMax": 0.7}]]
    records = ({"imageGcsUri": "1.jpg", "boundingBoxAnnotations": row} for row in rows)
    found = Reading(write_file(tmp_path / "a.jsonl", json_lines(*records))).items
    assert [type(item) for item in found] == [Reject, Row]
    assert not any(isinstance(item, Finding) for item in found)
