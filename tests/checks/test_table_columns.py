"""Checks of columns of tables: what they report, and what they do not."""

import random
import re
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordgen
from recordgen.checks.labels import distance_of_samples
from recordgen.checks.tables import codes_of, scoring
from recordgen.core.facts.columns import SAMPLE_ROWS, FactsBuilder
from recordgen.errors import UsageError
from recordgen.tables.examples import contents_of
from tests.checks.facts import findings as lint_findings
from tests.conftest import write_file

ROWS = 400
DRAW = random.Random(0)


def text_of(columns):
    lines = zip(*columns.values(), strict=True)
    return "\n".join(",".join(map(str, line)) for line in [tuple(columns), *lines])


# Codes of the checks of columns.
findings = partial(lint_findings, lint="ODD_COLUMN,GIVE_AWAY,OUTLIER,SKEW")


# All columns of a table; each except the first four has one fault.
TARGET = [DRAW.choice("ab") for _ in range(ROWS)]
SPLIT = [("TRAIN", "TEST")[number % 4 == 0] for number in range(ROWS)]
TABLE = {
    "use": SPLIT,
    "kind": TARGET,
    "name": [f"n{number}" for number in range(ROWS)],
    "size": [round(DRAW.gauss(50, 10), 2) for _ in range(ROWS)],
    "unit": ["cm"] * ROWS,
    "nothing": [""] * ROWS,
    "age": ["old" if number in (7, 9) else DRAW.randrange(18, 90) for number in range(ROWS)],
    "day": [
        "soon" if number == 5 else f"2026-01-{DRAW.randrange(1, 29)}" for number in range(ROWS)
    ],
    "word": ["paid" if kind == "a" else "open" for kind in TARGET],
    "weight": [99999 if number == 20 else DRAW.randrange(40, 110) for number in range(ROWS)],
    "shop": [DRAW.choice("xyz") if use == "TRAIN" else DRAW.choice("zw") for use in SPLIT],
}

# code, line, column
EXPECTED = [
    *[("ODD_COLUMN", 0, "unit"), ("ODD_COLUMN", 0, "nothing"), ("ODD_COLUMN", 9, "age")],
    *[("ODD_COLUMN", 7, "day"), ("GIVE_AWAY", 0, "word"), ("OUTLIER", 22, "weight")],
    ("SKEW", 0, "shop"),
]


@pytest.mark.parametrize("declared", [False, True])
def test_what_is_found(declared, tmp_path):
    """Each fault is found once, with its line if it has one, and nothing else is found."""
    source = write_file(tmp_path / "rows.csv", text_of(TABLE))
    options = {"task": "tabular", "columns": "split=use,target=kind"}
    if declared:
        kinds = {"use": "split", "kind": "label", "size": "float", "weight": "int"}
        options = {"schema": {name: kinds.get(name, "text") for name in TABLE}}
    found = findings(source, **options)
    columns = [re.findall(r"column '(\w+)'", item.message)[0] for item in found]
    told = [(item.code, item.line, name) for item, name in zip(found, columns, strict=True)]
    assert told == EXPECTED
    assert {item.level for item in found} == {"warning"}
    assert all(item.source == (str(source) if item.line else "") for item in found)
    assert found[-1].message.endswith(f"'w': 0.0% of train, {share_of_w():.1%} of test")


def share_of_w():
    mine = [shop for shop, use in zip(TABLE["shop"], SPLIT, strict=True) if use == "TEST"]
    return mine.count("w") / len(mine)


def test_rare_values_are_found_outside_the_sample(tmp_path):
    """One other value, one word and one far number are found among more rows than are kept."""
    rows = 3 * SAMPLE_ROWS
    columns = {
        "seldom": ["no"] * rows,
        "zero": [0] * rows,
        "one": [1] * rows,
        "length": [number % 97 for number in range(rows)],
        "size": [f"{number % 89}.5" for number in range(rows)],
    }
    columns["seldom"][17_000] = "yes"
    columns["zero"][18_000] = 1
    columns["length"][19_000] = "tall"
    columns["size"][20_000] = "1e9"
    source = write_file(tmp_path / "rows.csv", text_of(columns))
    found = findings(source, task="tabular", split="100")
    codes = [(item.code, item.line) for item in found]
    assert codes == [("ODD_COLUMN", 0), ("ODD_COLUMN", 19_002), ("OUTLIER", 20_002)]
    assert "'one'" in found[0].message
    assert " 99.9 % " in found[1].message


def test_few_rows_say_nothing(tmp_path):
    """Below ten rows, a constant column is no finding."""
    source = write_file(tmp_path / "rows.csv", "a,b\n" + "1,x\n" * 9)
    assert findings(source, task="tabular") == []
    source.write_text("a,b\n" + "1,x\n" * 10)
    assert [item.code for item in findings(source, task="tabular")] == ["ODD_COLUMN", "ODD_COLUMN"]


def column(tmp_path, values):
    """Write a table whose column ``a`` has these values, besides words."""
    source = tmp_path / "column.csv"
    lines = [f'"{value}",n{at}' for at, value in enumerate(values)]
    source.write_text("\n".join(["a,name", *lines]))
    return str(source)


def test_markers_are_said_once_per_column(tmp_path):
    """Words for missing numbers are one finding with their counts; among words they are words."""
    source = column(tmp_path, [1, 2, "NA", 3, "?", "na", 4, "NA", 5, 6, 7, 8])
    [found] = findings(source, task="tabular")
    assert (found.code, found.line) == ("ODD_COLUMN", 0)
    assert " 4 of " in found.message
    assert "'NA' (2), '?' (1), 'na' (1)" in found.message
    # Among words, markers are words.
    source = column(tmp_path, ["x", "NA", "y", "?", "z", "v", "w", "u", "t", "s"])
    assert findings(source, task="tabular") == []
    source = column(tmp_path, [1, 2, "NA", 3, "?", "na", 4, "NA", 5, 6, 7, 8])
    assert findings(source, schema={"a": "text", "name": "text"})[0].code == "ODD_COLUMN"


# values in turn; whether the column is probably meant to hold numbers
WRITTEN = [
    (["0,5", "1", "2"], True),
    (["1,234", "12", "NA"], True),
    (["1 234", "12.5"], True),
    (["5%", "12.5 %", "7"], True),
    (["$5", "7", "8", "$1,200.50"], True),
    (["5 €", "€ 7"], True),
    (["5", "inf", "7"], True),
    (["<5", "7", "9"], True),
    (["+5", "-6", "0"], True),
    (["5", "-0", "7"], True),
    (["5.5", "1.79e308", "7"], True),
    (["+491701234567", "+4930123456"], False),
    (["5", "6", "unknown"], True),
    (["5", "unknown", "other", "6", "7"], False),
    (["5", "unknown", "unknown"], False),
    (["x", "b", "5%"], False),
    (["2026-01-01", "soon", "later"], False),
    (["00501", "10115"], False),
    (["3,4,5", "1,2"], False),
]


def test_numbers_as_people_write_them(tmp_path):
    """One kind of fault among numbers is found at any share; nothing is converted by a guess."""
    columns = {f"c{at}": (values * 60)[:60] for at, (values, _) in enumerate(WRITTEN)}
    lines = ('","'.join(row) for row in zip(*columns.values(), strict=True))
    (tmp_path / "a.csv").write_text(",".join(columns) + "".join(f'\n"{line}"' for line in lines))
    result = recordgen.check(tmp_path / "a.csv", task="tabular", lint="ODD_COLUMN")
    found = {re.findall(r"'(\w+)'", item.message)[0]: item for item in result.lint.findings()}
    wanted = [name for name, (_, is_found) in zip(columns, WRITTEN, strict=True) if is_found]
    assert list(found) == wanted
    assert all(item.source == str(tmp_path / "a.csv") for item in found.values())
    assert all(item.line >= 2 for item in found.values())
    assert {result.dataset.features[name].dtype for name in columns} == {"bytes"}


@pytest.mark.parametrize("values", [["{}%", "{}"], ['"{},5"'], ["{}", "{}", "{}.5", "{} or so"]])
def test_a_target_of_numbers_that_are_text_is_no_class_each(values, tmp_path):
    """Hundreds of classes of numbers stop the run; an option confirms them. Markers are gaps."""
    shown = [values[at % len(values)].format(at).strip('"') for at in range(60)]
    source = column(tmp_path, shown)
    options = {"task": "tabular", "columns": "target=a"}
    with pytest.raises(UsageError, match="target:class="):
        recordgen.check(source, **options)
    result = recordgen.check(source, **{**options, "columns": "target:class=a"})
    assert len(result.dataset.labels) == 60
    frame = pd.DataFrame({"a": shown, "name": [f"n{at}" for at in range(60)]})
    result = recordgen.check(frame, **options)  # its types are given
    assert ("ODD_COLUMN", 0) in [(found.code, found.line) for found in result.lint.findings()]
    few = column(tmp_path, ["1", "2", "3", "many"] * 15)
    assert recordgen.check(few, **options).dataset.labels == ("1", "2", "3", "many")
    source = column(tmp_path, [f"{at}.5" if at % 30 else "NA" for at in range(300)])
    result = recordgen.check(source, **options, max_reject_fraction=0.1)
    assert (result.dataset.labels, len(result.rejects)) == ((), 10)


def test_a_kind_of_target_near_the_border_is_said(tmp_path):
    """dataset.json has the doubt, too; an option that settles it silences the finding."""
    source = tmp_path / "rows.csv"
    source.write_text("a,y\n" + "".join(f"x{number},{number}\n" for number in range(25)))
    [found] = findings(source, task="tabular", columns="target=y")
    assert (found.code, found.line) == ("ODD_COLUMN", 0)
    assert found.message.startswith("target 'y' holds 25 different whole numbers, more than 20")
    options = {"task": "tabular", "columns": "target:number=y"}
    assert findings(source, **options) == []


def spread(draw):
    """Return numbers without faults, of kinds that have far values by nature."""
    return {
        "normal": [draw.gauss(0, 1) for _ in range(ROWS)],
        "exponential": [draw.expovariate(1) for _ in range(ROWS)],
        "counts": [0 if draw.random() < 0.9 else draw.randrange(9) for _ in range(ROWS)],
        "tail": [draw.paretovariate(2) for _ in range(ROWS)],
    }


def test_far_values_of_a_heavy_tail_are_no_outliers(tmp_path):
    """Only a value that is far for its column's spread is a finding, at a threshold of its own."""
    source = tmp_path / "rows.csv"
    columns = spread(random.Random(1))
    source.write_text(text_of(columns))
    assert findings(source, task="tabular") == []
    columns["normal"][3] = 30.0
    source.write_text(text_of(columns))
    assert findings(source, task="tabular", lint="OUTLIER=30") == []
    found = findings(source, task="tabular")
    assert [(item.code, item.line) for item in found] == [("OUTLIER", 5)]


# target and column, given rows; whether the column gives the target away
GIVE_AWAYS = [
    (lambda draw: (number := draw.random(), "a" if number > 0.5 else "b"), True),
    (lambda draw: ((c := draw.choice("ab")) and (None if c == "a" else draw.random()), c), True),
    (lambda draw: (draw.random(), draw.choice("ab")), False),
    # A unique name determines everything, and predicts nothing.
    (lambda draw: (f"{draw.random()}", draw.choice("ab")), False),
    # Nearly all rows have one class, so any column is right for nearly all.
    (lambda draw: (draw.choice("xyz"), "a" if draw.random() < 0.99 else "b"), False),
    (lambda draw: (n := draw.random(), 3 * n + 2), True),
    (lambda draw: (n := draw.random(), np.exp(5 * n)), True),
    (lambda draw: (n := draw.random(), n + draw.gauss(0, 0.1)), False),
    (lambda draw: ((c := draw.choice("abcdefghijkl")), 1.5 * (ord(c) % 5 + ord(c))), True),
    (lambda draw: (f"{draw.random()}", draw.random()), False),
]


@pytest.mark.parametrize(("draw", "is_found"), GIVE_AWAYS, ids=range(len(GIVE_AWAYS)))
def test_scores_of_columns(draw, is_found):
    """A column scores what it explains beyond a constant answer; chance scores about 0."""
    drawing = random.Random(0)
    values, target = (
        pa.array(each) for each in zip(*(draw(drawing) for _ in range(2000)), strict=True)
    )
    score = scoring(target, has_labels=pa.types.is_string(target.type))
    assert score is not None
    found = score(values, codes_of(values))
    assert (found >= 0.99) if is_found else (found < 0.95)


def test_targets_that_hardly_differ_are_not_judged():
    """A column is scored only if ten rows have another target than most."""
    assert scoring(pa.array(["a"] * 100 + ["b"] * 9), has_labels=True) is None
    assert scoring(pa.array(["a"] * 100 + ["b"] * 10), has_labels=True) is not None


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 20))
def test_contents_decide_the_sample(contents, count):
    """Rows in another order give the same sample; it has all rows, or as many as requested."""

    def sampled(order):
        rows, is_sampled = FactsBuilder.of(np.array(order, np.uint64), []).kept(count)
        assert is_sampled.all()
        return sorted(np.array(order)[rows].tolist())

    assert sampled(contents) == sampled(contents[::-1])
    assert len(sampled(contents)) == min(count, len(contents))


def test_equal_rows_are_drawn_apart():
    """If few distinct rows repeat many times, the sample has the same shares as the table."""
    contents = np.repeat(np.arange(10, dtype=np.uint64), 1000)
    rows, _ = FactsBuilder.of(contents, []).kept(1000)
    counts = Counter(contents[rows].tolist())
    assert len(counts) == 10
    assert max(counts.values()) < 2 * min(counts.values())


VALUE = st.sampled_from([None, "", "a", "b", "ab", "ba", "a\0", "aa", "ä"])


@settings(max_examples=50)
@given(st.lists(st.tuples(VALUE, VALUE, st.sampled_from([None, 0, 1, -1])), max_size=30))
def test_equal_rows_and_no_others_have_equal_contents(rows):
    """Contents are equal exactly where all values are, missing and empty ones included."""
    texts, others, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "text": ("bytes", pa.array(texts, pa.string())),
        "other": ("bytes", pa.array(others, pa.string())),
        "whole": ("int64", pa.array(numbers, pa.int64())),
        "float": ("float32", pa.array(numbers, pa.float64())),
    }
    found = contents_of(columns, len(rows)).tolist()
    assert len(set(found)) == len(set(rows))
    assert len(set(zip(found, rows, strict=True))) == len(set(rows))


def test_chance_explains_distances():
    """Samples of one population have about the predicted distance; small ones differ more."""
    draw = random.Random(0)
    for few in (50, 500):
        found = [
            distance_of_samples(
                Counter(draw.choices("abcde", k=500)), Counter(draw.choices("abcde", k=few))
            )
            for _ in range(40)
        ]
        apart, by_chance = (sum(each) / len(found) for each in zip(*found, strict=True))
        assert apart == pytest.approx(by_chance, rel=0.15)
    assert distance_of_samples({"a": 1}, {"b": 1}) == (1.0, 0.0)
