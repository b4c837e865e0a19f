"""The existing dataset of an append, without any run."""

import json
import re
from dataclasses import replace
from math import nan

import pyarrow as pa
import pytest

from recordgen.conversion import appending
from recordgen.conversion.api import conversion_of
from recordgen.conversion.appending import task_there
from recordgen.core.dataset.counts import RowCounts, Shard, Split, dataset_digest
from recordgen.core.dataset.manifest import EXAMPLES_FILE, write_dataset
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts.columns import LINTED, to_parquet
from recordgen.core.planning.appending import (
    Existing,
    ExistingGroup,
    known_rows,
    merge,
    merge_findings,
)
from recordgen.core.planning.plan import Base
from recordgen.core.rows.row import KnownRow, placing
from recordgen.errors import RecordError, SourceError, UsageError
from recordgen.features import FeatureSpec
from recordgen.options import OPTIONS as DECLARED
from recordgen.options import ConvertOptions, recorded_defaults
from recordgen.rejects import Finding, Reject
from recordgen.tasks import ImageClassification, VideoClassification
from tests.datasets import dataset_of
from tests.steps import OTHER_VALUES

OPTIONS = ConvertOptions(task="image_classification")
IMAGE = ImageClassification()
SHARDS = [
    Shard(f"Split-{split}/data_tfrecord-0000{n}-of-00002", 5, 50, f"{split}{n}")
    for split in ("train", "test")
    for n in (0, 1)
]
DATASET = dataset_of(
    source=("/d/a.csv", "/e/b.csv"),
    options=json.loads(json.dumps(OPTIONS.recorded())),
    labels=("cat", "dog"),
    splits={
        "train": Split(10, 100, {"cat": 4, "dog": 5}, tuple(SHARDS[:2]), None, 1, 2),
        "test": Split(10, 100, {"cat": 10}, tuple(SHARDS[2:]), None, 0, 0),
    },
    rows=RowCounts(read=20, examples=20),
    digest=dataset_digest(SHARDS),
)


def find_existing(output, options):
    """Find the dataset that a run with the options appends to."""
    return appending.find_existing(output, conversion_of(replace(options, format="csv")))


def listed(folder, rows, **given):
    """Write an ``examples.parquet`` of rows (shard, split, source, uri, annotation)."""
    names = ("shard", "split", "source", "uri", "annotation")
    known = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns = [pa.array(known.get(field.name, [None] * len(rows)), field.type) for field in LINTED]
    parts = to_parquet([pa.Table.from_arrays(columns, schema=LINTED)], **given)
    (folder / EXAMPLES_FILE).write_bytes(b"".join(parts))


def written(folder, dataset=DATASET):
    """Write a dataset whose shards have their size, and return its path."""
    write_dataset(str(folder), dataset)
    rows = []
    for name, split in dataset.splits.items():
        for shard in split.shards:
            path = folder / shard.file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"." * shard.bytes)
            sources = [dataset.source[at % 2] for at in range(shard.examples)]
            rows += [(shard.file, name, source, "x.jpg", "cat") for source in sources]
    listed(folder, rows)
    return str(folder)


# Options that affect examples, with a value that is not the default; then options that do not.
AFFECT = (
    *("seed", "group_by", "eval_from", "missing_split", "labels", "vocabulary"),
    *("shard_by", "shard_mb", "compression", "check", "encode", "limit"),
)
MUST_AGREE = {name: OTHER_VALUES[name] for name in AFFECT}
MUST_AGREE |= {"task": "image_multi_label", "split": "1,1", "image_size": "100max"}
# Options that need all rows together, so that they cannot be applied to new rows only.
OF_WHOLE = {"duplicates": "drop", "stratify": "label"}
MAY_DIFFER = {name: OTHER_VALUES[name] for name in ("image_root", "label_separator", "encoding")}
MAY_DIFFER |= {"format": "jsonl", "columns": "header=yes,offsets=utf16"}
MAY_DIFFER |= {"max_reject_fraction": 0.5, "allow": ("https", "/")}


def test_options_of_the_second_run(tmp_path):
    """Options that affect examples must equal the dataset's options; other options may differ.

    A new option must be added to one of the tables above.
    """
    out = written(tmp_path)
    decided = {"schema", "table"}  # they are set with their task
    decided |= {"resize"}  # it is set with image_size
    decided |= {"box_orientation", "bad_boxes"}  # they are for object detection
    decided |= {"layout"}  # it is for folders
    defaults = {**recorded_defaults(), "task": OPTIONS.task}
    recorded = {name for name, each in DECLARED.items() if each.affects_bytes}
    assert {*MUST_AGREE, *MAY_DIFFER, *OF_WHOLE} | decided == recorded | {"table"}
    for name, value in MUST_AGREE.items():
        other = replace(OPTIONS, **{name: value})
        values = [re.escape(repr(it)) for it in (defaults[name], other.recorded()[name])]
        with pytest.raises(UsageError, match=f"^{out}: .*: {name} .*{'.*'.join(values)}"):
            find_existing(out, other)
    with pytest.raises(UsageError, match=rf"^{out}: .*seed .*0.*1.*, shard_mb .*2"):
        find_existing(out, replace(OPTIONS, seed=1, shard_mb=2))
    assert find_existing(out, replace(OPTIONS, **MAY_DIFFER)) == find_existing(out, OPTIONS)


def test_options_of_boxes_in_the_second_run(tmp_path):
    """What moves boxes must agree."""
    detection = ConvertOptions(task="object_detection")
    recorded = json.loads(json.dumps(detection.recorded()))
    out = written(tmp_path, replace(DATASET, task="object_detection", options=recorded))
    assert find_existing(out, replace(detection, bad_boxes="drop")) is not None
    with pytest.raises(UsageError, match=r"box_orientation .*'stored'.*'upright'"):
        find_existing(out, replace(detection, box_orientation="upright"))


def test_options_that_need_all_rows(tmp_path):
    """They are refused beside a dataset."""
    assert find_existing(str(tmp_path / "new"), replace(OPTIONS, **OF_WHOLE)) is None
    out = written(tmp_path, replace(DATASET, options={**DATASET.options, **OF_WHOLE}))
    assert find_existing(out, OPTIONS) is not None
    for name, value in OF_WHOLE.items():
        with pytest.raises(UsageError, match=f"{name}={value}"):
            find_existing(out, replace(OPTIONS, **{name: value}))


def test_missing_options_had_their_defaults(tmp_path):
    """A dataset of another version is compared by them."""
    older = {name: value for name, value in DATASET.options.items() if name != "check"}
    out = written(tmp_path, replace(DATASET, options={**older, "gone": 1}))
    assert find_existing(out, OPTIONS) is not None
    with pytest.raises(UsageError, match=r"check .*'decode'.*'none'"):
        find_existing(out, replace(OPTIONS, check="none"))


def test_what_is_there(tmp_path):
    """Its shards by split, its rejects, its folder, and its base for a plan."""
    assert find_existing(str(tmp_path), OPTIONS) is None
    out = written(tmp_path)
    existing = find_existing(out, OPTIONS)
    groups = (ExistingGroup(f"{out}/examples.parquet", 0),)
    assert existing == Existing(DATASET, groups, (), out)
    assert existing.folder == "/d"
    assert replace(existing, dataset=replace(DATASET, folder="/f")).folder == "/f"
    assert existing.files == {shard.file for shard in SHARDS}
    assert existing.base == Base({"train": 2, "test": 2}, Vocabulary("text", ("cat", "dog")))
    unlabelled = replace(existing, dataset=replace(DATASET, labels=()))
    assert unlabelled.base == Base({"train": 2, "test": 2}, None)
    rejects = [Reject("a", 1, "x.jpg", "corrupt", "no\u2028end"), Reject("b", 2, "", "no_path", "")]
    text = "".join(f"{json.dumps(one._asdict(), ensure_ascii=False)}\n" for one in rejects)
    (tmp_path / "rejects.jsonl").write_text(text, encoding="utf-8")
    assert find_existing(out, OPTIONS) == Existing(DATASET, groups, tuple(rejects), out)
    (tmp_path / "rejects.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(SourceError, match=f"remove {out}/rejects.jsonl"):
        find_existing(out, OPTIONS)


def test_rows_without_names_cannot_be_appended_to(tmp_path):
    """Nothing tells whether a row is there."""
    with pytest.raises(UsageError, match=r"declared .*--overwrite"):
        find_existing(str(tmp_path), ConvertOptions(schema='{"n": "int"}'))
    out = written(tmp_path, replace(DATASET, task="examples"))
    with pytest.raises(UsageError, match=f"^{out}: "):
        find_existing(out, OPTIONS)


def test_the_task_of_what_is_there(tmp_path):
    """The dataset decides unless an option does."""
    auto, out = ConvertOptions(seed=3), str(tmp_path)
    assert task_there(out, auto) is auto
    written(tmp_path)
    assert task_there(out, OPTIONS) is OPTIONS
    assert task_there(out, auto) == replace(auto, task="image_classification")
    schema = '{"x": "int"}'
    written(tmp_path, replace(DATASET, task="declared", options={"schema": schema}))
    assert task_there(out, auto) == replace(auto, task="declared", schema=schema)
    written(tmp_path, replace(DATASET, task="declared", options={}))
    assert task_there(out, auto).schema == ""
    written(tmp_path, replace(DATASET, task="examples"))
    assert task_there(out, auto) is auto


def known(folder, task, seed, *rows):
    """Return what is known of rows (shard, split, uri, annotation) in the shard ``s``."""
    listed(folder, [(file, split, "a.csv", *rest) for file, split, *rest in rows])
    group = ExistingGroup(f"{folder}/examples.parquet", 0, "/w")
    return list(known_rows(group, {"s"}, task, seed, "/d"))


def test_an_example_gives_sort_key_uri_and_label_of_its_row(tmp_path):
    """An interrupted run may have listed the examples of a shard that does not stay."""
    place = placing(7)
    rows = [("s", "train", "/d/x.jpg", "cat"), ("t", "eval", "z.jpg", "cat")]
    assert known(tmp_path, IMAGE, 7, *rows, ("s", "train", "y.jpg", None)) == [
        KnownRow(place("/d/x.jpg").sort_key, "s", "train", "/w/a.csv", "/d/x.jpg", "cat"),
        KnownRow(place("y.jpg").sort_key, "s", "train", "/w/a.csv", "y.jpg", None),
    ]


def test_a_row_group_has_its_own_rows(tmp_path):
    """A damaged file is named."""
    listed(tmp_path, [("s", "train", "a.csv", uri, None) for uri in "xyz"], group_rows=2)
    groups = [ExistingGroup(f"{tmp_path}/examples.parquet", number) for number in (0, 1)]
    read = [group.read(["uri"]).to_pydict() for group in groups]
    assert read == [{"uri": ["x", "y"]}, {"uri": ["z"]}]
    (tmp_path / "examples.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match=rf"^{groups[0].path}: "):
        groups[0].read()


def test_rows_of_videos(tmp_path):
    """Addresses below the folder become relative to it, as in new rows; other addresses stay."""
    place, segment = placing(0), "[null, 1.0, 2.5]"
    given = ("/d/v/1.mp4", "v/1.mp4", "/e/1.mp4")
    rows = [("s", "train", uri, segment) for uri in given]
    assert known(tmp_path, VideoClassification(), 0, *rows) == [
        KnownRow(place(name).sort_key, "s", "train", "/w/a.csv", uri, segment)
        for name, uri in (("v/1.mp4", "v/1.mp4"), ("v/1.mp4", "v/1.mp4"), ("e/1.mp4", "/e/1.mp4"))
    ]


def test_a_missing_or_cut_shard_is_named(tmp_path):
    """Before anything is read."""
    out = written(tmp_path)
    path = tmp_path / SHARDS[0].file
    path.write_bytes(b"...")
    with pytest.raises(RecordError, match=rf"^{path}: .* 3 bytes"):
        find_existing(out, OPTIONS)
    path.unlink()
    with pytest.raises(RecordError, match=rf"^{path}: "):
        find_existing(out, OPTIONS)


def test_examples_that_are_not_listed_are_named(tmp_path):
    """The list and the shards must agree."""
    out = written(tmp_path)
    file = tmp_path / EXAMPLES_FILE
    for spoil, fact in (
        (lambda: listed(tmp_path, [(SHARDS[0].file, "train", "a.csv", "x.jpg", None)] * 4), "4 ex"),
        (lambda: file.write_bytes(b"PAR1"), ""),
        (file.unlink, ""),
    ):
        spoil()
        with pytest.raises(SourceError, match=rf"^{file}: .*{fact}"):
            find_existing(out, OPTIONS)


def test_findings_of_both_runs_are_sorted(tmp_path):
    """By file and line; those of files that are read again are replaced."""

    def findings(*places):
        return [Finding(source, line, "x", "code", "why") for source, line in places]

    old, new = findings(("a", 2), ("b", 1), ("d", 1)), findings(("a", 1), ("b", 2), ("c", 1))
    out = str(tmp_path)

    assert list(merge_findings(out, ["b"], new)) == new
    file = tmp_path / "findings.jsonl"
    file.write_text("".join(f"{json.dumps(one._asdict())}\n" for one in old))
    assert list(merge_findings(out, ["b"], new)) == [new[0], old[0], new[1], new[2], old[2]]
    for broken in ("{}\n", "no JSON\n"):
        file.write_text(broken)
        with pytest.raises(SourceError, match=rf"^{file}: "):
            list(merge_findings(out, ["b"], new))


def test_merged_datasets_keep_what_either_knows():
    """Sources, features and fields of boxes are those of both; the vocabulary is the old one's.

    What is counted, and the order of splits and shards, are shown by datasets that are appended to.
    """
    old = replace(
        DATASET,
        options={**DATASET.options, "vocabulary": "old.txt", "threads": 1},
        features={"n": FeatureSpec("int64"), "old": FeatureSpec("bytes", b"")},
        inexact=("n",),
        objects=("area",),
    )
    new = replace(
        DATASET,
        recordgen_version="2",
        source=("/f/c.csv", "/d/a.csv"),
        labels=("cat", "dog", "ant"),
        options={**DATASET.options, "vocabulary": "new.txt", "threads": 2},
        features={"n": FeatureSpec("int64", nan), "new": FeatureSpec("bytes", b"")},
        inexact=("m",),
        objects=("area", "is_crowd"),
        keypoints={"names": ["nose"], "flip_idx": [0]},
    )
    found = merge(old, new)
    assert found == replace(
        new,
        options={**new.options, "vocabulary": "old.txt"},
        features={**old.features, **new.features},
        inexact=("n", "m"),
        source=("/d/a.csv", "/e/b.csv", "/f/c.csv"),
        **{name: getattr(found, name) for name in ("splits", "rows", "digest")},
    )
    other, plain = merge(new, old), replace(old, features={"new": FeatureSpec("bytes")})
    assert (other.keypoints, other.features) == (new.keypoints, found.features)
    assert merge(plain, new).features == new.features
