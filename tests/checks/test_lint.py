# ruff: noqa: E501 - tables with a case on each line
"""Checks of accepted data: findings, their reports, and failed runs."""

import json
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordgen
from recordgen.checks.copies import Conflict, Duplicate, Leak
from recordgen.cli import main
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.vocabulary import build_vocabulary
from recordgen.errors import LintError, TooManyRejectsError, UsageError
from recordgen.options import ConvertOptions, make_options
from recordgen.registry import CHECKS, OWN_CHECKS
from tests.checks.facts import examined_of, facts_of, findings, label_findings
from tests.conftest import encoded, error_of, noise, tree_bytes

ROWS = """TRAIN,a.png,cat
TEST,copy_of_a.png,cat
TRAIN,b.png,dog
TRAIN,other_b.png,cat
TRAIN,c.png,dog
TRAIN,copy_of_c.png,dog
VALIDATION,d.png,dog
VALIDATION,copy_of_d.png,
,e.png,cat
TRAIN,broken.png,cat
"""

FOUND = [
    ("LEAK", 2, "the same image as {source}:1 (a.png, split train)"),
    ("CONFLICT", 4, "'cat' here, but 'dog' for the same image in {source}:3 (b.png, split train)"),
    ("DUPLICATE", 4, "the same image as {source}:3 (b.png, split train)"),
    ("DUPLICATE", 6, "the same image as {source}:5 (c.png, split train)"),
    ("DUPLICATE", 8, "the same image as {source}:7 (d.png, split eval)"),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """An import file with a leak, contradicting labels, duplicates and a broken image."""
    folder = tmp_path_factory.mktemp("pictures")
    for seed, name in enumerate("abcde"):
        data = encoded(noise(20, 30, seed), "PNG")
        for copy in (name, f"copy_of_{name}", f"other_{name}"):
            (folder / f"{copy}.png").write_bytes(data)
    (folder / "broken.png").write_bytes(data[:-20])
    (folder / "rows.csv").write_text(ROWS)
    return str(folder / "rows.csv")


@pytest.fixture(scope="module")
def output(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("output") / "out"
    recordgen.convert(source, folder, max_reject_fraction=0.2)
    return folder


def lint_of(output):
    """Return the lines of an output's lint.jsonl, or none if there is no such file."""
    path = output / "lint.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def about_rows(output):
    """Return code, line and message of findings about examples."""
    found = [item for item in lint_of(output) if item["source"]]
    return [(item["code"], item["line"], item["message"]) for item in found]


def test_what_is_found(source, output):
    """lint.jsonl names each example and another with its payload; dataset.json has counts."""
    assert about_rows(output) == [
        (code, line, message.format(source=source)) for code, line, message in FOUND
    ]
    leak = lint_of(output)[0]
    assert leak == {
        **{"code": "LEAK", "level": "error", "source": source, "line": 2},
        **{"uri": "copy_of_a.png", "split": "test", "message": leak["message"]},
        **{"other_source": source, "other_line": 1},
    }
    dataset = recordgen.read_dataset(str(output))
    assert dataset.lint == Counter(item["code"] for item in lint_of(output))
    assert list(dataset.lint)[:3] == ["LEAK", "CONFLICT", "DUPLICATE"]
    about_all = [item["message"] for item in lint_of(output) if not item["source"]]
    assert list(dataset.warnings) == about_all
    assert about_all[0] == "2 labels with fewer than 10 images: 'cat', 'dog'"


def test_command(source, stdout_of, json_of, capsys):
    """``check`` prints each finding, and fails on errors unless they are ignored."""
    command = ["check", source, "--max-reject-fraction=0.2"]
    said = stdout_of(*command, code=1).splitlines()
    assert [line for line in said if ": LEAK " in line] == [
        f"error {source}:2: LEAK the same image as {source}:1 (a.png, split train)"
    ]
    [counts] = [line for line in said if line.startswith("Findings")]
    assert re.findall(r"\w+ \d", counts) == [
        *("LEAK 1", "CONFLICT 1", "DUPLICATE 3", "FEW_EXAMPLES 1", "UNLABELLED 1")
    ]
    remedies = [line.split()[1] for line in said if line.startswith("Remedy")]
    assert remedies == ["LEAK:", "CONFLICT:"]
    assert "LEAK" not in stdout_of(*command, "--lint=-leak,-CONFLICT")
    assert main([*command, "--lint=-error", "--fail-on=duplicate"]) == 1
    capsys.readouterr()
    result = json_of(*command, "--lint=LEAK", code=1)
    assert result["lint"] == {"LEAK": 1}
    assert [item["line"] for item in result["lint_findings"]] == [2]


def test_a_finding_that_fails_a_run(source, output, tmp_path):
    """With fail_on nothing is committed; shards stay for --resume, and findings are written."""
    target = tmp_path / "out"
    with pytest.raises(LintError, match=r"LEAK 1, .*rows\.csv:2: LEAK"):
        recordgen.convert(source, target, max_reject_fraction=0.2, fail_on="leak")
    assert not (target / "dataset.json").exists()
    assert lint_of(target) == lint_of(output)
    result = recordgen.convert(source, target, max_reject_fraction=0.2, resume=True)
    assert result.kept_shards == 3
    assert tree_bytes(target) == tree_bytes(output)


def test_a_missing_eval_fails_a_run_before_it_reads_payloads(tmp_path):
    """None of the images can be decoded, but the message is about the splits."""
    source = tmp_path / "rows.csv"
    for number in (1, 2, 3):
        (tmp_path / f"{number}.png").write_bytes(b"no image")
    source.write_text("TRAIN,1.png,cat\nTRAIN,2.png,dog\nTEST,3.png,dog\n")
    with pytest.raises(TooManyRejectsError):
        recordgen.convert(source, tmp_path / "out")
    with pytest.raises(LintError, match=r"eval_from=train:10 .*; fail_on=none"):
        recordgen.convert(source, tmp_path / "out", fail_on="NO_EVAL")
    with pytest.raises(TooManyRejectsError):
        recordgen.convert(source, tmp_path / "out", fail_on="NO_EVAL", lint="-NO_EVAL")
    assert recordgen.check(source, fail_on="NO_EVAL").dataset.rows.rejects == 3


def test_an_older_dataset_stays_where_a_run_fails(source, tmp_path):
    """A failed run next to a dataset writes its findings to a file with another name."""
    target = tmp_path / "out"
    options = {"max_reject_fraction": 0.2, "overwrite": True}
    recordgen.convert(source, target, lint="-ALL", **options)
    assert recordgen.read_dataset(str(target)).lint == {}
    assert not (target / "lint.jsonl").exists()
    before = recordgen.read_dataset(str(target))
    with pytest.raises(LintError, match=r"failed-lint\.jsonl"):
        recordgen.convert(source, target, fail_on="error", **options)
    assert recordgen.read_dataset(str(target)) == before
    assert (target / "failed-lint.jsonl").exists()
    recordgen.convert(source, target, **options)
    assert not (target / "failed-lint.jsonl").exists()
    assert (target / "lint.jsonl").exists()


def test_what_is_appended_is_compared_with_what_is_there(source, tmp_path):
    """A new row leaks into a split that is there; splits and labels are those of both."""
    lines = ROWS.splitlines()
    folder = Path(source).parent
    (folder / "first.csv").write_text("\n".join([lines[0], lines[2]]))
    (folder / "second.csv").write_text(lines[1])
    target = tmp_path / "out"
    recordgen.convert(folder / "first.csv", target)
    assert about_rows(target) == []
    recordgen.convert(folder / "second.csv", target, append=True)
    where = f"the same image as {folder}/first.csv:1 (a.png, split train)"
    assert about_rows(target) == [("LEAK", 1, where)]
    assert pq.read_table(target / "examples.parquet").num_rows == 3
    assert recordgen.read_dataset(str(target)).lint["NO_EVAL"] == 1


TARGET = {"columns": "target=kind,split=use"}
SCHEMA = {"schema": {"use": "split", "age": "int", "kind": "label"}}

# task, options, rows, findings: code and line
TASKS = [
    ("text_classification", {}, "TRAIN,one text,a\nTRAIN,another,b\nTEST,third,a\n", []),
    ("tabular", {}, "age,kind\n1,a\n2,b\n3,a\n", []),
    ("tabular", TARGET, "use,age,kind\ntrain,1,a\ntest,1,a\ntrain,2,b\ntrain,2,b\ntrain,2,a\n", [("LEAK", 3), ("CONFLICT", 6), ("DUPLICATE", 5), ("DUPLICATE", 6)]),
    ("declared", SCHEMA, "use,age,kind\ntrain,1,a\ntest,1,b\ntrain,2,b\n", [("LEAK", 3), ("CONFLICT", 3)]),
    # A text in a row has the same payload as a file with this text.
    ("text_classification", {}, "TRAIN,a.txt,x\nTEST,one text,y\n", [("LEAK", 2), ("CONFLICT", 2)]),
    ("video_classification", {}, "TRAIN,a.mp4,run,0,5\nTRAIN,a.mp4,walk,5,9\nTEST,b.mp4,run,0,5\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("task", "options", "rows", "found"), TASKS, ids=range(len(TASKS)))
def test_all_tasks(task, options, rows, found, tmp_path):
    """Texts, table rows and videos leak like images; parts of a video may have other labels."""
    (tmp_path / "a.txt").write_text("one text")
    (tmp_path / "rows.csv").write_text(rows)
    items = findings(tmp_path / "rows.csv", task=task, **options)
    assert [(item.code, item.line) for item in items if item.source] == found


def test_the_page_describes_each_check():
    """docs/lint.md has a section for each code, in order, that begins with its level."""
    page = (Path(__file__).parents[2] / "docs/lint.md").read_text(encoding="utf-8")
    sections = re.findall(r"^### (\w+)\n\n\*\*(\w+)\.\*\*", page, re.MULTILINE)
    assert sections == [(code, CHECKS[code].level.capitalize()) for code in OWN_CHECKS]
    for code in OWN_CHECKS:
        check = CHECKS[code]
        section = page.split(f"### {code}\n")[1].split("\n#")[0]
        assert (f"--lint {code}=" in section) == bool(check.threshold or check.is_similarity), code
        assert ("**Warning.** *On request.*" not in section) == check.is_default, code


# options, words
UNKNOWN = [
    ({"lint": "LEEK"}, "'LEAK'"),
    ({"lint": ["-x"]}, "lint: no check is named 'x'"),
    ({"fail_on": "errors"}, "'ERROR'"),
    ({"lint": "LEAK=3"}, "'LEAK=3' must be CODE=NUMBER"),
    ({"lint": "FEW_EXAMPLES=none"}, "(got 'none')"),
    ({"lint": "NEAR_LEAK=90"}, "NEAR_LEAK"),
]


@pytest.mark.parametrize(("options", "words"), UNKNOWN)
def test_an_unknown_code_or_threshold_is_an_error(options, words):
    """An unknown code is an error, and so is a threshold that is not a number."""
    assert words in str(error_of(UsageError, make_options, options))


DEFAULT = {code for code in OWN_CHECKS if CHECKS[code].is_default}

# lint, fail_on, codes that run
SELECTIONS = [
    ((), (), DEFAULT),
    (("ALL",), (), {*OWN_CHECKS}),
    (("-ALL",), (), set()),
    (("Error", "few_examples", "-leak"), (), {"CONFLICT", "FEW_EXAMPLES"}),
    (("tiny=20",), (), DEFAULT | {"TINY"}),
    ((), ("tiny", "LEAK"), DEFAULT | {"TINY"}),
    (("-TINY",), ("TINY", "ALL"), DEFAULT),
    (("LEAK",), ("TINY", "warning"), {"LEAK", "TINY"}),
]


@pytest.mark.parametrize(("lint", "fail_on", "codes"), SELECTIONS)
def test_which_checks_run(lint, fail_on, codes):
    """Levels and ALL select codes, in any case; thresholds and what fails add to 20."""
    assert len(DEFAULT) == 20
    assert ConvertOptions(lint=lint, fail_on=fail_on).selection.codes == codes


def test_a_level_fails_on_all_its_codes():
    """A level in fail_on stands for each of its codes."""
    assert "TINY_BOX" in ConvertOptions(fail_on=("warning",)).selection.fatal


AB = {"a": 500, "b": 500}

# examples by label of each split, codes of the findings
LABELS = [
    ({"train": AB, "eval": {"a": 50, "b": 50}}, []),
    ({"train": AB, "eval": {"a": 90, "b": 10}}, ["LABEL_DRIFT"]),
    # Three of four examples may have one label by chance.
    ({"train": AB, "eval": {"a": 3, "b": 1}}, []),
    ({"train": {"a": 2000, "b": 15}, "eval": {"a": 200, "b": 2}}, ["IMBALANCE"]),
    ({"train": {"a": 500}, "eval": {"a": 50}}, []),
    ({"train": {"a": 30, "b": 20}, "eval": {"a": 9}}, ["MISSING_CLASS", "LABEL_DRIFT"]),
    ({"train": {"a": 30}, "eval": {"a": 9, "b": 20}}, ["MISSING_CLASS"]),
    ({"train": {"a": 30}, "eval": {"a": 9}, "test": {"b": 20}}, ["MISSING_CLASS", "MISSING_CLASS"]),
    # Few examples have another finding, and by chance none may be in eval.
    ({"train": {"a": 30, "b": 3}, "eval": {"a": 9}}, ["FEW_EXAMPLES"]),
    # Numbers between the labels of the rows are outputs of a model.
    ({"train": {"0": 30, "2": 20}, "eval": {"0": 9, "2": 5}}, ["MISSING_CLASS"]),
    ({"train": {"a": 30}, "test": {"a": 10}}, ["NO_EVAL"]),
    # Data for prediction or evaluation only.
    ({"test": {"a": 10}}, []),
]


@pytest.mark.parametrize(("counts", "codes"), LABELS)
def test_shares_of_classes(counts, codes):
    """Labels and splits that are missing, shares beyond chance and unequal classes are found."""
    splits = {name: Split(sum(labels.values()), 0, labels, ()) for name, labels in counts.items()}
    known = build_vocabulary(label for labels in counts.values() for label in labels)
    examined = examined_of(facts_of([]), vocabulary=known, splits=splits)
    assert [code for code, _ in label_findings(examined)] == codes


@given(
    st.lists(
        st.tuples(st.sampled_from(["train", "eval", "test"]), st.integers(0, 9), st.booleans()),
        max_size=40,
    )
)
def test_repeated_payloads_against_pairs(rows):
    """Sorting finds the same as a comparison of all pairs."""
    said = [(split, content, "x" if has_label else None) for split, content, has_label in rows]
    examined = examined_of(facts_of(said))
    found = {
        check.code: {row for found in check().findings(examined) for row in found.rows.tolist()}
        for check in (Leak, Conflict, Duplicate)
    }
    order = ("train", "eval", "test")
    leaks, duplicates = set(), set()
    for number, (split, content, _) in enumerate(said):
        others = [other for other in said if other[1] == content]
        if split != min((other[0] for other in others), key=order.index):
            leaks.add(number)
        if any(other[:2] == (split, content) for other in said[:number]):
            duplicates.add(number)
    assert found == {"LEAK": leaks, "CONFLICT": set(), "DUPLICATE": duplicates}
