"""Declared tables: types, rows, and examples with any number of images."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st

import recordgen
from recordgen import Schema, types
from recordgen.core.dataset.vocabulary import build_vocabulary
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import PlannedRow
from recordgen.errors import SourceError, TooManyRejectsError, UsageError
from recordgen.options import ConvertOptions
from recordgen.payloads.fetching import Fetcher, PayloadStore
from recordgen.tables.types import ColumnType
from recordgen.tasks import Declared
from tests.conftest import encoded, noise, stored_examples, write_file
from tests.pages import wrong_rows
from tests.planned import record_of
from tests.settings import payload_settings

PAGE = (Path(__file__).parents[2] / "docs/tasks/tables.md").read_text(encoding="utf-8")

PAIRS = {
    "split": types.SplitKey,
    "left": types.ImageUri,
    "right": "image",
    "age": int,
    "price": "FloatInput",
    "vector": "floats",
    "breed": "label",
    "note": "text",
    "rest": "ignored",
}


def records(output):
    """Return the features of all records, and their splits."""
    return [{"split": name, **values} for name, values in stored_examples(output)]


# type, value, value in the annotation
VALUES = [
    ("int", "3", 3),
    ("int", "-0042", -42),
    ("int", " +7 ", 7),
    ("int", "NA", None),
    ("int", " ? ", None),
    ("int", 3.0, 3),
    ("int", np.float32(3), 3),
    ("float", ".5", 0.5),
    ("float", "nan", None),
    ("float", "-", None),
    ("float", np.float64(0.1), 0.1),
    ("float", "0.30000000000000004", 0.3),
    ("bool", "Yes", 1),
    ("bool", False, 0),
    ("bool", np.bool_(True), 1),
    ("bool", 1.0, 1),  # pandas, in a column with gaps
    ("bool", "NA", None),
    ("floats", "[0.1, 0.2]", [0.1, 0.2]),
    ("floats", "(1 2\t3)", [1, 2, 3]),
    ("floats", "1,2", [1, 2]),
    ("floats", "[]", []),
    ("floats", np.array([1, 2]), [1, 2]),
    ("floats", ["1", 2], [1, 2]),
    ("floats[1]", 7, [7]),
    ("floats", "", None),
    ("int", " ", None),
    ("float", None, None),
    ("image", " ", None),
    ("text", " a ", " a "),
    ("label", " a ", "a"),
    ("text", 3.0, "3"),
    ("int_label", "007", "7"),
    ("label", "a b", "a b"),
]


@pytest.mark.parametrize(("kind", "value", "found"), VALUES)
def test_a_text_of_a_csv_and_its_value_in_pandas_are_equal(kind, value, found):
    """A text and the value that pandas has for it are one value."""
    assert ColumnType.of(kind).parse(value) == found


# kind, value
PYTHON_ALONE = [
    ("int", "1_000"),
    ("int", True),
    ("int", "٣"),
    ("int", "0x7"),
    ("int", "7.0"),
    ("int", "9223372036854775808"),
    ("bool", "2"),
    ("bool", "maybe"),
    ("float", "inf"),
    ("float", "1e99"),
    ("float", "1_0"),
    ("floats", [1, None]),
    ("floats", [[1], [2]]),
    ("int_label", "-1"),
    ("text", b"bytes"),
]


@pytest.mark.parametrize(("kind", "value"), PYTHON_ALONE)
def test_values_that_only_python_accepts_are_refused(kind, value):
    """Underscores, other digits and infinities are no numbers of a table."""
    with pytest.raises(ValueError, match=r"\(got "):
        ColumnType.of(kind).parse(value)


def test_names_of_types_declare_the_same_columns():
    """The short and the long name of a type are one type."""
    short = [name for name, *_ in re.findall(r"^\| `(\w+)`[^|]*\| `(\w+)` \|", PAGE, re.MULTILINE)]
    named = [name for _, name in re.findall(r"^\| `(\w+)`[^|]*\| `(\w+)` \|", PAGE, re.MULTILINE)]
    assert len(short) == 12
    for one, other in zip(short, named, strict=True):
        assert ColumnType.of(one) == ColumnType.of(other) == getattr(types, other)
    schema = Schema(PAIRS)
    assert Schema.from_json(json.dumps(schema.to_json())) == schema
    assert repr(Schema({"a": "floats[3]"})) == "Schema({'a': 'floats[3]'})"


@settings(max_examples=25)
@given(
    st.fixed_dictionaries(
        {
            "number": st.integers(-(1 << 63), (1 << 63) - 1),
            "share": st.floats(width=32, allow_nan=False, allow_infinity=False),
            "vector": st.lists(st.floats(-1, 1, width=32), max_size=3),
            "note": st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"])),
            "label": st.sampled_from(["", "cat", "dog"]),
        }
    )
)
def test_an_example_says_what_its_row_said(values):
    """Any values come back from the record."""
    kinds = {"number": "int", "share": "float", "vector": "floats", "note": "text"}
    task = Declared(Schema({"photo": "image", **kinds, "label": "label"}))
    given = {**values, "photo": "a.png"}
    as_text = {name: str(value) for name, value in given.items()}
    [said] = task.from_record(given, Counter())
    assert task.from_record(as_text, Counter()) == [said]
    row = PlannedRow(0, "a.csv", 1, said.uri, said.annotation, 0, "v", False)
    image = encoded(noise(), "PNG")
    vocabulary = build_vocabulary(["cat", "dog"])
    record, _ = record_of(task, row, [image], vocabulary, payload_settings())
    stored = parse_example(record)
    for name in ("number", "share", "vector"):
        has = values[name] if isinstance(values[name], list) else [values[name]]
        assert stored.get(name, []) == pytest.approx([v for v in has if v != ""])
    for name, feature in (("note", "note"), ("label", "image/class/text")):
        assert stored.get(feature, []) == ([values[name].encode()] if values[name] else [])


@pytest.fixture
def pairs(make_images):
    """Return a header and twelve rows with two images each."""
    images = make_images(12)
    lines = ["note,split,left,right,age,price,vector,breed,other,rest"]
    for number, left in enumerate(images):
        use = ("TRAIN", "TEST", "VALIDATION", "")[number % 4]
        lines.append(
            f'"hi, {number}",{use},{left},images/{images[-1 - number].name},{number},{number}.5,'
            f'"[{number}, 2]",{"cat" if number % 2 else ""},x,y'
        )
    return lines


def test_two_images_per_row(pairs, make_csv, tmp_path, out):
    """Each image has its own features, and a second run changes nothing."""
    source = make_csv(pairs)
    dataset = recordgen.convert(source, out, schema=Schema(PAIRS), shard_mb=0.002).dataset
    assert (dataset.task, dataset.labels, dataset.examples) == ("declared", ("cat",), 12)
    assert len(dataset.splits["train"].shards) > 1
    found = {item["age"][0]: item for item in records(out)}
    assert sorted(found) == list(range(12))
    third = found[3]
    assert set(third) == {"split", *dataset.features}
    for side, number in (("left", 3), ("right", 8)):
        data = (tmp_path / f"images/{number:04d}.jpg").read_bytes()
        assert third[f"{side}/encoded"] == [data]
        assert (third[f"{side}/format"], third[f"{side}/height"]) == ([b"jpeg"], [12])
    assert third["right/source_id"] == [b"images/0008.jpg"]
    assert (third["price"], third["vector"], third["note"]) == ([3.5], [3, 2], [b"hi, 3"])
    assert (third["breed/text"], third["breed/label"]) == ([b"cat"], [0])
    assert "breed/text" not in found[2]
    assert sum(split.unlabelled for split in dataset.splits.values()) == 6
    assert recordgen.convert(source, out, schema=PAIRS, shard_mb=0.002, resume=True).unchanged
    with pytest.raises(UsageError, match="overwrite=True"):
        recordgen.convert(source, out, schema=PAIRS, shard_mb=0.002, append=True)


def test_images_of_several_columns_are_fetched_ahead(make_images, tmp_path, monkeypatch):
    """A row names them in its columns alone."""
    far = MemoryFileSystem()
    for image in make_images(2):
        far.pipe(f"/two/{image.name}", image.read_bytes())
    fetchers = []

    def fetcher(store, paths):
        fetchers.append(Fetcher(paths, store.limit, store.access))
        return fetchers[-1]

    monkeypatch.setattr(PayloadStore, "fetcher", fetcher)
    names = sorted(f"memory:/{path}" for path in far.ls("/two", detail=False))
    frame = pd.DataFrame({"left": names, "right": names[::-1], "kind": ["x", "y"]})
    schema = {"left": "image", "right": "image", "kind": "label"}
    recordgen.convert(frame, tmp_path / "out", schema=schema, allow="memory")
    assert [each.is_far for each in fetchers] == [True] * len(fetchers) != []


def test_two_images_of_which_one_is_called_image(make_images, tmp_path):
    """A column may be called ``image`` beside another image."""
    [one, two] = make_images(2)
    frame = pd.DataFrame({"image": [str(one)], "depth": [str(two)], "kind": ["x"]})
    schema = {"image": "image", "depth": "image", "kind": "label"}
    dataset = recordgen.convert(frame, tmp_path / "out", schema=schema).dataset
    assert {"image/encoded", "depth/encoded", "kind/label"} < set(dataset.features)
    [split] = dataset.splits
    columns, _ = next(iter(recordgen.eval_dataset(tmp_path / "out", split=split)))
    assert list(columns) == ["image", "depth"]


def test_a_bad_image_among_several(pairs, make_csv, tmp_path):
    """It rejects its row with the name of its column."""
    (tmp_path / "images/bad.jpg").write_bytes(b"\xff\xd8\xff no image")
    (tmp_path / "images/empty.jpg").touch()
    wrong = [pairs[1].replace("images/0011.jpg", name) for name in ("images/bad.jpg", "gone.jpg")]
    wrong.append(pairs[1].replace("images/0011.jpg", "images/empty.jpg"))
    result = recordgen.check(make_csv([*pairs, *wrong]), schema=PAIRS)
    codes = [(item.line, item.code) for item in result.rejects]
    assert codes == [(14, "truncated"), (15, "missing_file"), (16, "empty_file")]
    bad, gone, empty = (item.message for item in result.rejects)
    assert bad.startswith("column 'right', images/bad.jpg: ")
    assert "gone.jpg" in gone
    assert empty == "images/empty.jpg: the file is empty (0 bytes)"
    assert result.dataset.examples == 12


def test_rows_without_images_are_examples(make_csv, tmp_path):
    """Rows of numbers alone are converted and read."""
    lines = [f"{number % 3},{number % 3}.5,a,TRAIN" for number in range(30)]
    schema = {"x": "int", "y": "float", "z": "ignored", "use": "split"}
    dataset = recordgen.convert(make_csv(lines), tmp_path / "out", schema=schema).dataset
    assert (dataset.examples, dataset.label_kind, set(dataset.splits)) == (30, "text", {"train"})
    [batch] = recordgen.load(tmp_path / "out", batch_size=30)["train"]
    assert sorted(batch["x"].numpy()) == sorted([0, 1, 2] * 10)
    assert next(iter(recordgen.input_fn(tmp_path / "out", batch_size=4)))["y"].shape == (4,)
    with pytest.raises(UsageError, match="shard_by=label"):
        recordgen.plan(make_csv(lines), schema=schema, shard_by="label")


GAPS = """split,a,b,e,y,pair,many,w
TRAIN,1,0.5," x ","cat ",[1 2],[1],2
TRAIN,,, ,dog,,,
TRAIN,3,1.5,z,,[3 4],[],0.5
"""
INFERRED = {"task": "tabular", "columns": "target=y,weight=w"}
GIVEN = {
    "schema": {
        "split": "split", "a": "int", "b": "float", "e": "text", "y": "label",
        "pair": "floats[2]", "many": "floats", "w": "weight",
    }
}  # fmt: skip


@pytest.mark.parametrize("options", [INFERRED, GIVEN])
def test_a_missing_value_is_a_feature_left_out(options, make_csv, out):
    """It is NaN or empty when it is read."""
    dataset = recordgen.convert(make_csv(GAPS.splitlines()), out, **options).dataset
    assert (dataset.examples, dataset.labels) == (3, ("cat", "dog"))
    assert sum(split.unlabelled for split in dataset.splits.values()) == 1
    found = records(out)
    by_a = {item.get("a", [0])[0]: item for item in found}
    assert {name: by_a[1][name] for name in "abe"} == {"a": [1], "b": [0.5], "e": [b" x "]}
    assert not {"a", "b", "e", "pair", "many"} & set(by_a[0])
    assert not {"y", "y/text", "y/label"} & set(by_a[3])
    [every] = recordgen.eval_dataset(out, split="train", batch_size=3, label_mode=None)
    order = np.argsort(every["a"])  # NaN comes last
    np.testing.assert_equal(every["a"].numpy()[order], np.float32([1, 3, np.nan]))
    assert every["e"].numpy()[order].tolist() == [b" x ", b"z", b""]
    assert np.isnan(every["b"].numpy()[order[-1]])
    if options is GIVEN:
        np.testing.assert_equal(every["pair"].numpy()[order], [[1, 2], [3, 4], [np.nan] * 2])
        assert every["many"].numpy()[order].tolist() == [[1], [0], [0]]
    [(labelled, *rest)] = recordgen.eval_dataset(out, split="train", batch_size=3)
    rows = zip(labelled["a"].numpy(), *(part.numpy() for part in rest), strict=True)
    np.testing.assert_equal(sorted(rows, key=lambda row: row[1]), [(1, 0, 2), (np.nan, 1, 1)])
    assert "w" not in labelled


def test_rows_with_gaps_are_known_again(make_images, make_csv, tmp_path):
    """Append recognises rows by all values, also missing ones."""
    [image, other] = make_images(2)
    schema = {"photo": "image", "a": "int", "b": "floats", "c": "floats[2]", "e": "text"}
    lines = ["photo,a,b,c,e", f"{image},,,,", f"{image},1,[],,x"]
    first = recordgen.convert(make_csv(lines), tmp_path / "out", schema=schema).dataset
    more = make_csv([*lines, f"{other},,,,"], "more.csv")
    both = recordgen.convert(more, tmp_path / "out", schema=schema, append=True).dataset
    assert (first.examples, both.examples, both.rows.existing) == (2, 3, 2)


def test_one_image_and_a_label_are_read_as_image_classification(make_images, make_csv, out):
    """One image identifies its row: duplicates, conflicts and append go by it."""
    images = make_images(20)
    schema = Schema({"photo": "image", "age": "int", "breed": "int_label", "split": "split"})
    lines = ["age,photo,breed,split"]
    lines += [f"{number % 3},{images[number // 2]},{number % 4}," for number in range(40)]
    lines += [lines[1], f"9,{images[0]},2,TEST", f"8,{images[0]},2,TRAIN"]
    result = recordgen.convert(
        make_csv(lines), out, schema=schema, max_reject_fraction=0.5, shard_mb=0.01
    )
    assert [(item.line, item.code) for item in result.rejects] == [(44, "conflicting_splits")]
    assert (result.dataset.rows.duplicates, result.dataset.label_kind) == (1, "integer")
    splits = {}
    for item in records(out):
        splits.setdefault(item["image/source_id"][0], set()).add(item["split"])
    assert {len(names) for names in splits.values()} == {1}
    assert splits[b"images/0000.jpg"] == {"test"}
    pictures, labels = next(
        iter(recordgen.input_fn(out, batch_size=5, image_size=(12, 16), label_mode="categorical"))
    )
    assert (pictures.shape, labels.shape) == ((5, 12, 16, 3), (5, 4))
    more = [*lines[:2], f"5,{images[0]},1,", f"6,{images[0]},1,TRAIN"]
    appended = recordgen.convert(
        make_csv(more, "more.csv"), out, append=True, shard_mb=0.01, max_reject_fraction=0.5
    )
    assert appended.dataset.rows.existing == 1
    assert appended.dataset.examples == result.dataset.examples + 1
    assert sorted(item.source[-8:] for item in appended.rejects) == ["bels.csv", "more.csv"]
    assert appended.dataset.options["schema"] == json.dumps(schema.to_json())


SPELLINGS = [
    {"task": "image_classification"},
    {"schema": {"split": "split", "photo": "image", "breed": "label"}},
]


@pytest.mark.parametrize("options", SPELLINGS)
def test_spellings_of_a_path_are_one_image(options, make_images, make_csv):
    """Dots and double slashes in a path name the same image."""
    make_images(1)
    names = ["images/0000.jpg", "./images//0000.jpg", "././images/./0000.jpg"]
    found = recordgen.check(make_csv([f",{name},x" for name in names]), **options).dataset
    assert (found.examples, found.rows.duplicates) == (1, 2)
    lines = [f"TRAIN,{names[0]},x", f"TEST,{names[1]},x"]
    [item] = recordgen.check(make_csv(lines), **options, max_reject_fraction=0.5).rejects
    assert (item.line, item.code) == (2, "conflicting_splits")


def test_a_schema_implies_its_task():
    """A schema sets the task, and excludes any other."""
    assert ConvertOptions(schema='{"a":"int"}').task == "declared"
    with pytest.raises(UsageError, match="object_detection"):
        ConvertOptions(schema='{"a": "int"}', task="object_detection")
    with pytest.raises(UsageError, match=r"declared .*schema"):
        recordgen.plan(__file__, task="declared", format="csv")


HEADER = "split,photo,age,embedding,breed,note"
RIGHT = "TRAIN,1.png,3,[1 2],cat,"
ALL = dict(
    zip(HEADER.split(","), ["split", "image", "int", "floats[2]", "label", "text"], strict=True)
)


@pytest.mark.parametrize(
    ("schema", "message"),
    re.findall(r"^\| `(.+?)` \| (.+) \|$", wrong_rows("Wrong declarations"), re.MULTILINE),
)
def test_a_wrong_declaration_writes_nothing(schema, message, tmp_path, monkeypatch):
    """Each wrong declaration of the page has its message."""
    monkeypatch.chdir(tmp_path)
    Path("pets.csv").write_text(f"{HEADER}\n{RIGHT}\n")
    with pytest.raises((UsageError, SourceError), match=f"^{re.escape(message)}"):
        recordgen.convert("pets.csv", "out", schema=schema)
    assert not (tmp_path / "out/dataset.json").exists()


def test_wrong_lines_have_their_codes_and_messages(tmp_path):
    """Each wrong line of the page has its code and message."""
    (tmp_path / "1.png").write_bytes(encoded(noise(), "PNG"))
    wrong = re.findall(r"^\| `(.+)` \| (\w+) \| (.+) \|$", wrong_rows("Wrong values"), re.MULTILINE)
    wrong.sort(key=lambda row: row[0].count('"') % 2)  # an open quote takes the rest of the file
    source = tmp_path / "pets.csv"
    source.write_text("\n".join([HEADER, RIGHT, *(line for line, *_ in wrong), ""]))
    planned = recordgen.plan(str(source), schema=ALL, max_reject_fraction=1)
    rejects = sorted(planned.rejects, key=lambda item: item.line)
    found = [
        (item.line - 3, item.code, item.message[: len(text)])
        for item, (*_, text) in zip(rejects, wrong, strict=True)
    ]
    assert found == [(number, *rest) for number, (_, *rest) in enumerate(wrong)]
    assert planned.rows == 1


def test_a_declaration_that_fits_nothing(tmp_path):
    """If no row fits, the error names the first and its column."""
    (tmp_path / "1.png").write_bytes(encoded(noise(), "PNG"))
    source = write_file(tmp_path / "pets.csv", f"{HEADER}\n{RIGHT}\n{RIGHT}\n")
    with pytest.raises(TooManyRejectsError, match=re.escape(f"{source}:2: column 'breed' ")):
        recordgen.convert(str(source), tmp_path / "out", schema={**ALL, "breed": "float_label"})
