"""Examples without a ``dataset.json``: what a user says about them, and what the records say."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from recordgen import convert, input_fn, load
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from recordgen.errors import DataError, UsageError
from recordgen.reading import describe
from recordgen.training.config import TrainingConfig

ROWS = [(size, colour, "big" if size > 4 else "small") for size in range(8) for colour in "rb"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A converted table."""
    root = tmp_path_factory.mktemp("table")
    lines = [
        f"{('TRAIN', 'VALIDATION')[at % 2]},{size},{colour},{kind}\n"
        for at, (size, colour, kind) in enumerate(ROWS)
    ]
    (root / "a.csv").write_text("split,size,colour,kind\n" + "".join(lines))
    convert(
        str(root / "a.csv"),
        str(root / "out"),
        columns="target=kind",
        compression="gzip",
        lint="-ALL",
    )
    return root / "out"


@pytest.fixture
def bare(table, tmp_path):
    """Its shards alone; their names do not say that they are compressed."""
    for split in ("train", "eval"):
        (tmp_path / f"Split-{split}").mkdir()
        for number, shard in enumerate(sorted((table / f"Split-{split}").iterdir())):
            shutil.copy(shard, tmp_path / f"Split-{split}/{number}")
    return str(tmp_path)


def rows_of(batches):
    return sorted(
        (int(size), colour.decode(), int(label))
        for columns, labels in batches
        for size, colour, label in zip(
            columns["size"].numpy(), columns["colour"].numpy(), labels.numpy(), strict=True
        )
    )


@pytest.mark.parametrize("given", ["columns", "dataset_json"])
def test_rows_are_those_of_the_dataset(table, bare, given):
    said = {
        "columns": {"task": "tabular", "columns": "target=kind"},
        "dataset_json": {"dataset_json": str(table)},
    }
    found = describe(bare, **said[given])
    expected, described = read_dataset(table), found.dataset
    assert described.labels == expected.labels
    for name, split in expected.splits.items():
        assert described.splits[name].labels == split.labels
    mine, theirs = load(found), load(table)
    for split in theirs:
        assert rows_of(mine[split]) == rows_of(theirs[split])


def test_a_target_of_whole_numbers_needs_a_kind(bare):
    with pytest.raises(UsageError, match="target:number=size"):
        describe(bare, task="tabular", columns="target=size")
    found = describe(bare, task="tabular", columns="target:number=size")
    targets = np.concatenate([targets for _, targets in input_fn(found, split="eval")])
    assert sorted(targets) == sorted(size for size, *_ in ROWS[1::2])
    classes = describe(bare, task="tabular", columns="target:class=size").dataset.labels
    assert classes == tuple(map(str, range(8)))


def test_files_that_replace_others_are_read(table, bare):
    """What a process found in the records is kept only as long as they are the same files."""
    given = {"task": "tabular", "columns": "target=kind"}
    before = describe(bare, **given).dataset.splits["eval"]
    shards = sorted(Path(bare, "Split-eval").iterdir())
    assert describe(bare, **given).dataset.splits["eval"] == before
    shutil.copy(next(Path(table, "Split-train").iterdir()), shards[0])
    assert describe(bare, **given).dataset.splits["eval"].shards != before.shards


@pytest.mark.parametrize(
    ("given", "error", "named"),
    [
        ({}, UsageError, "task"),
        ({"task": "tables"}, UsageError, "tables"),
        ({"task": "tabular"}, UsageError, "columns"),
        ({"task": "tabular", "columns": "target=nix"}, DataError, "nix"),
        ({"task": "tabular", "columns": "target=kind,weight=nix"}, DataError, "nix"),
        ({"task": "tabular", "columns": "target:number=kind"}, DataError, "kind"),
        ({"task": "image_classification"}, DataError, "image/encoded"),
        ({"task": "text_classification"}, DataError, "text"),
        ({"task": "text_classification", "columns": "target=kind"}, UsageError, "columns"),
    ],
)
def test_an_error_names_what_is_missing(bare, given, error, named):
    with pytest.raises(error, match=named):
        describe(bare, **given)


def test_labels_are_numbered_by_their_texts(tmp_path):
    """Numbers in records of other tools are not those of ``labels``, and may be missing."""
    for split in ("train", "eval"):
        (tmp_path / f"Split-{split}").mkdir()
        with (tmp_path / f"Split-{split}/a").open("wb") as file:
            for at, label in enumerate("cab"):
                values = {"text": f"it is {label}".encode(), "class/text": label.encode()}
                values |= {"class/label": 7} if at else {}
                file.write(b"".join(RECORDS.frame(serialize_example(values))))
    found = load(describe(str(tmp_path), task="text_classification"))
    assert found.class_names == ["a", "b", "c"]
    assert np.concatenate([labels for _, labels in found["eval"]]).tolist() == [2, 0, 1]


def test_settings_of_a_training_do_not_describe_examples():
    assert TrainingConfig.from_custom_config({"task": "tabular", "epochs": 3}).epochs == 3
