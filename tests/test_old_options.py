"""Options of earlier versions: refused with their new spelling, and read from older datasets."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import recordgen
from recordgen.cli import main
from recordgen.errors import UsageError
from recordgen.old_options import GONE, OLD_NAMES, current, new_spelling, refusal
from recordgen.options import OPTIONS, ConvertOptions, make_options, recorded_there

MakeImages = Callable[[int], list[Path]]
MakeCsv = Callable[..., str]

# options of an earlier version, the new ones
RENAMED = [
    ({"input_format": "jsonl"}, {"format": "jsonl"}),
    ({"header": "no", "columns": "path=1"}, {"columns": "path=1,header=no"}),
    ({"split_column": "use", "weight_column": "w"}, {"columns": "split=use,weight=w"}),
    (
        {"target_column": "a,b", "prediction": "regression"},
        {"columns": '"target:number=a,b"'},
    ),
    ({"columns": {"target": "y"}, "prediction": "classification"}, {"columns": "target:class=y"}),
    ({"offsets": "utf16"}, {"columns": "offsets=utf16"}),
    ({"tfmd_schema": "s.pbtxt"}, {"schema": "s.pbtxt"}),
    ({"split_fractions": (90, 10), "split_from_name": "no"}, {"split": "90,10,names=no"}),
    ({"split_fractions": {"train": 3, "test": 1}}, {"split": "train:3,test:1"}),
    ({"split_by": "near"}, {"group_by": "near"}),
    ({"split_by": "uri", "group_by": "patient"}, {"group_by": "patient"}),
    (
        {"max_image_mb": 5, "max_image_pixels": 10**6, "image_seconds": 2, "decode_memory": 900},
        {"limit": "mb=5,pixels=1000000,seconds=2,memory=900"},
    ),
    ({"max_side": 512}, {"image_size": "512max"}),
    ({"short_side": 256}, {"image_size": "256short"}),
    ({"size": (224, 320)}, {"image_size": "224x320"}),
    ({"size": 224}, {"image_size": "224"}),
    ({"quality": 90}, {"encode": "jpeg:90"}),
    ({"quality": 90, "encode": "webp"}, {"encode": "webp:90"}),
    ({"quality": 90, "max_side": 512}, {"encode": "keep:90", "image_size": "512max"}),
    ({"pixels": "raw"}, {"encode": "raw"}),
    ({"pixels": "mixed", "encode": "jpeg", "quality": 80}, {"encode": "mixed:jpeg:80"}),
    (
        {"select": "LEAK", "ignore": ["DARK"], "threshold": ("TINY=9",)},
        {"lint": ["LEAK", "-DARK", "TINY=9"]},
    ),
    (
        {"allow_scheme": "https", "allow_root": ["images", "gs://b/c"]},
        {"allow": ["https", "./images", "gs://b/c"]},
    ),
]


@pytest.mark.parametrize(("old", "new"), RENAMED, ids=str)
def test_each_old_option_has_its_new_spelling(old, new):
    """The new spelling is in the error, and the doors accept it."""
    assert new_spelling(old) == new
    for name, value in new.items():
        text = ",".join(value) if isinstance(value, list) else value
        assert f"{name}={text!r}" in refusal(old)
    with pytest.raises(UsageError) as caught:
        make_options(old)
    assert str(caught.value) == refusal(old)
    assert isinstance(make_options(new), ConvertOptions)


def test_every_old_option_is_in_the_table():
    """No name is both old and current; each of the table's names is tested above or is gone."""
    assert not set(OLD_NAMES) & set(OPTIONS)
    assert {name for old, _ in RENAMED for name in old if name not in OPTIONS} | set(GONE) == set(
        OLD_NAMES
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        # arguments of `recordgen check a.csv`, the end of the error
        (["--quality", "90"], "use --encode jpeg:90"),
        (["--encode", "webp", "--quality=80"], "use --encode webp:80"),
        (
            ["--select", "LEAK", "--select", "DARK", "--ignore", "TINY"],
            "use --lint LEAK,DARK,-TINY",
        ),
        (["--ignore", "ALL"], "use --lint=-ALL"),
        (["--columns", "path=1", "--header", "no"], "use --columns path=1,header=no"),
        (["--split-from-name", "no", "--split", "90,10"], "use --split 90,10,names=no"),
        (["--limit", "mb=5", "--image-seconds", "9"], "use --limit mb=5,seconds=9"),
        (["--card"], "recordgen export card OUTPUT"),
    ],
)
def test_an_old_flag_shows_the_new_one(arguments, said, caplog):
    """Values that are given under the new name are kept."""
    assert main(["check", "a.csv", *arguments]) == UsageError.exit_code
    assert caplog.messages[-1].endswith(said)


# What an earlier version recorded for a conversion with the options of OLD_RUN.
OLD_RUN = {"split": "1,1", "image_size": "8max", "encode": "jpeg:80", "limit": "mb=5"}
OLD_RECORD = {
    "task": "image_classification",
    "input_format": "csv",
    "header": "auto",
    "columns": "",
    "schema": "",
    "seed": 0,
    "split_fractions": "train:1,eval:1",
    "eval_from": "",
    "split_by": "uri",
    "group_by": "",
    "duplicates": "keep",
    "stratify": "none",
    "missing_split": "assign",
    "labels": "auto",
    "shard_by": "hash",
    "shard_mb": 128,
    "compression": "none",
    "check": "decode",
    "max_side": 8,
    "encode": "jpeg",
    "quality": 80,
    "bad_boxes": "clip",
    "box_orientation": "stored",
    "split_column": "",
    "target_column": "",
    "weight_column": "",
    "prediction": "auto",
    "table": "",
    "max_image_mb": 5,
    "max_image_pixels": 100_000_000,
    "max_reject_fraction": 0.01,
    "allow_scheme": [],
    "allow_root": [],
}


@pytest.fixture
def older(make_images, make_csv, tmp_path):
    """An import file, and its output with the dataset.json of an earlier version."""
    source = make_csv([f"{path},cat" for path in make_images(6)])
    out = tmp_path / "out"
    recordgen.convert(source, out, **OLD_RUN)
    described = json.loads((out / "dataset.json").read_text())
    described["options"] = OLD_RECORD
    (out / "dataset.json").write_text(json.dumps(described))
    return source, out


def test_an_older_dataset_is_read(older):
    """Readers see the current options."""
    _, out = older
    dataset = recordgen.read_dataset(out)
    assert not set(dataset.options) & set(OLD_NAMES)
    assert (dataset.encoding.format, dataset.encoding.quality) == ("jpeg", 80)
    assert current(dataset.options) == dataset.options


def test_an_older_dataset_is_resumed_and_appended_to(older, make_images, make_csv):
    """The same options in their new spelling are the same; others are still refused."""
    source, out = older
    assert recordgen.convert(source, out, resume=True, **OLD_RUN).unchanged
    with pytest.raises(UsageError, match="image_size is '8max' there and '9max' here"):
        recordgen.convert(source, out, append=True, **{**OLD_RUN, "image_size": "9max"})
    more = make_csv([f"{path},cat" for path in make_images(8)])
    added = recordgen.convert(more, out, append=True, **OLD_RUN).dataset
    assert (added.examples, added.options) == (8, recorded_there(added.options))


def test_a_record_of_a_table_is_translated():
    """The columns of a table, and secrets that are kept no longer."""
    old = {
        **OLD_RECORD,
        "task": "tabular",
        "target_column": "y",
        "prediction": "regression",
        "header": "no",
        "url_secrets": "keep",
        "allow_scheme": ["https"],
        "pixels": "raw",
        "encode": "keep",
        "quality": None,
        "split_from_name": "no",
    }
    found = recorded_there(current(old))
    assert found.keys() == ConvertOptions().recorded().keys()
    assert found["columns"] == "target:number=y,header=no"
    assert (found["allow"], found["encode"]) == (["https"], "raw")
    assert (found["split"], found["group_by"]) == ("train:1,eval:1,names=no", "uri")
