"""Other tools' files: counting, checks of the first record, and errors of bad files."""

import os
import shutil
from functools import partial

import pytest

import recordgen
from recordgen import errors, eval_dataset, load, steps_per_epoch, train_dataset, write
from recordgen.features import TFRECORDER
from recordgen.reading import Tuning, named_errors
from tests.conftest import convert_lines, encoded, error_of, noise
from tests.opened import opened
from tests.reading.conftest import example, ids, pet, write_records

SIZE = dict(batch_size=4, image_size=(4, 6))
WITH_IDS = dict(**SIZE, columns=["image/source_id"])
IMAGE = encoded(noise(), "JPEG")
NAMES = [f"pet {n}" for n in range(20)]


@pytest.fixture(params=["a.rec", "a.rec.gz"], ids=["plain", "gzip"])
def path(request, tmp_path):
    """Twenty records in one file."""
    return write_records(tmp_path / request.param, map(pet, range(20)))


def test_a_file_that_matches_several_patterns_is_read_once(tmp_path):
    """Each file is read once, and folders are not."""
    for number in (1, 0, 2):
        write_records(tmp_path / f"{number}.rec", [pet(number)])
    (tmp_path / "folder.rec").mkdir()
    expected = ["pet 0", "pet 1", "pet 2"]
    assert ids(eval_dataset(f"{tmp_path}/*.rec", **WITH_IDS)) == expected
    assert ids(eval_dataset([f"{tmp_path}/*.rec", f"{tmp_path}/1.rec"], **WITH_IDS)) == expected
    assert ids(eval_dataset(tmp_path / "1.rec", **WITH_IDS)) == ["pet 1"]


def test_empty_shards_are_skipped(tmp_path):
    """Empty files are skipped; nothing but empty files is an error."""
    for suffix in ("", ".gz"):
        files = [
            write_records(tmp_path / f"0.rec{suffix}", []),
            write_records(tmp_path / f"1.rec{suffix}", map(pet, range(20))),
        ]
        assert ids(eval_dataset(files, **WITH_IDS)) == NAMES
        with pytest.raises(errors.DataError, match=r"0\.rec"):
            eval_dataset(files[:1], **WITH_IDS)


def test_files_are_counted_again_only_if_they_change(path, counts_cache):
    """A count is kept until the size or version of a file changes."""
    assert steps_per_epoch(path, 3) == 7
    assert steps_per_epoch(path, 3, tuning=Tuning(drop_remainder=True)) == 6
    kept = sorted((counts_cache / "recordgen" / "counts").iterdir())
    assert {file.read_text() for file in kept} == {"20"}
    with opened() as known:
        assert steps_per_epoch(path, 5) == 4
    kept[0].unlink()
    with opened() as unknown:
        assert steps_per_epoch(path, 5) == 4
    assert known.count(path) < unknown.count(path)
    write_records(path, map(pet, range(8)))
    assert steps_per_epoch(path, 3) == 3
    write_records(path, map(pet, range(8, 20)))
    os.utime(path, ns=(1, 1))
    assert steps_per_epoch(path, 3) == 4


def test_counting_works_without_a_cache_folder(path, tmp_path, monkeypatch):
    """Without a folder for counts, files are counted each time."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert steps_per_epoch(path, 3) == steps_per_epoch(path, 3) == 7


# options, number of batches of two
COUNTED = [
    ({}, 8),
    (dict(label_mode=None), 10),
    (dict(only=["cat"]), 2),
    (dict(only=["cat", "owl"], vocabulary=["owl", "cat"]), 4),
    (dict(shard=(1, 3)), 3),
    (dict(label_mode=None, shard=(1, 3)), 4),
]


@pytest.mark.parametrize(("options", "expected"), COUNTED, ids=str)
def test_only_what_is_read_is_counted(tmp_path, counts_cache, options, expected):
    """Steps count the records that options select."""
    unlabelled = {"image/class/label": [], "image/class/text": []}
    records = [pet(n, **({} if n < 15 else unlabelled)) for n in range(20)]
    source = write_records(tmp_path / "a.rec", records)
    for _ in range(2):  # counted, then remembered
        assert steps_per_epoch(source, 2, **options) == expected
    batches = list(eval_dataset(source, batch_size=2, image_size=(4, 6), **options))
    assert len(batches) == expected


def test_unchecked_bad_images_of_ours_are_named(tmp_path):
    """An unchecked output may hold bad images."""
    for name in "abcdef":
        (tmp_path / f"{name}.jpg").write_bytes(b"no image" if name == "c" else IMAGE)
    out = convert_lines(tmp_path, [f"TRAIN,{name}.jpg,x" for name in "abcdef"], check="none")
    dataset = eval_dataset(out, split="train", **WITH_IDS)
    with pytest.raises(errors.RecordError, match=r"c\.jpg"), named_errors(dataset):
        list(dataset)


@pytest.mark.parametrize("name", ["a.rec", "a.rec.gz"])
def test_damage_is_named_by_counting_and_by_reading(tmp_path, name):
    """Before training if the file is counted; a compressed file is not, but ends the reading.

    The file is so large that the check of the first record does not reach the damage.
    """
    path = write_records(tmp_path / name, [pet(n) for n in range(20)] * 40)
    os.truncate(path, os.path.getsize(path) - 70)
    with pytest.raises(errors.RecordError, match=path):
        steps_per_epoch(path, 4)
    for reading in (eval_dataset, train_dataset):
        if name == "a.rec":
            with pytest.raises(errors.RecordError, match=path):
                reading(path, **SIZE)
        else:
            dataset = reading(path, **SIZE)
            with pytest.raises(errors.RecordError, match=path), named_errors(dataset):
                list(dataset)


LABELLED = {"image/encoded": b"", "image/class/label": 1}


# the first record, options, error, message
FIRST_RECORDS = [
    (b"\xff\xff\xff", {}, errors.RecordError, r"a\.rec.*record 0"),
    ({"x": 1, "y": 2}, {}, errors.NotUnderstoodError, r"a\.rec"),
    ({"image": b"", "label": 1}, dict(columns="image=x"), errors.UsageError, "'x'"),
    (
        {"image": b"", "x": 1, "y": 2},
        dict(columns="image=image,label=x,label=y"),
        errors.UsageError,
        "label=x,label=y",
    ),
    ({"image": b"", "label": 1}, dict(columns="picture=image"), errors.NotUnderstoodError, "image"),
    ({"image": b"", "label": 1}, dict(columns="image=image,xmin=x"), errors.UsageError, "xmin"),
    ({"image/encoded": b""}, {}, errors.DataError, r"a\.rec.*image/class/label"),
    (LABELLED, dict(vocabulary=["a"]), errors.DataError, r"a\.rec.*image/class/text"),
    (LABELLED, dict(columns=["nothing"]), errors.UsageError, r"columns.*a\.rec.*'nothing'"),
]


@pytest.mark.parametrize(("record", "options", "error", "message"), FIRST_RECORDS)
def test_a_missing_feature_is_found_before_training(tmp_path, record, options, error, message):
    """A feature that the first records lack is an error before training; so is no example."""
    first = record if isinstance(record, bytes) else example(record)
    path = write_records(tmp_path / "a.rec", [first])
    with pytest.raises(error, match=message):
        eval_dataset(path, **SIZE, **options)


NUMBERED = [{"image": IMAGE, "label": n % 3} for n in range(6)]
NAMED = [{"jpg": IMAGE, "kind": b"abc"[n % 3 : n % 3 + 1]} for n in range(6)]
TEXTS = [{"body": b"a text", "kind": n % 3} for n in range(6)]
SIZED = [{**dict.fromkeys(TFRECORDER, 3), **it} for it in NUMBERED]
OF_TEXTS = dict(task="text_classification")


# features of records, options, the columns that name them; "": known names
ROLES = [
    (NUMBERED, SIZE, ""),
    (SIZED, SIZE, ""),
    ([{"image": IMAGE}, *NUMBERED], SIZE, ""),
    ([{"image": IMAGE, "label": []}, *NUMBERED], SIZE, ""),
    (NUMBERED, dict(SIZE, only=lambda it: it["label"] >= 0), ""),
    (NAMED, dict(SIZE, vocabulary=["a", "b", "c"]), "image=jpg,label=kind"),
    (NAMED, dict(SIZE, vocabulary=["a", "b", "c"], cache="memory"), "image=jpg,label=kind"),
    (TEXTS, OF_TEXTS, "text=body,label=kind"),
]


@pytest.mark.parametrize(("records", "options", "columns"), ROLES)
def test_features_of_any_name_are_read_by_their_roles(tmp_path, records, options, columns):
    """Other tools' records are read by known names or ``columns``; a refusal names the columns.

    The first record may lack its label.
    """
    path = write_records(tmp_path / "a.rec", map(example, records))
    if columns:
        error = error_of(errors.NotUnderstoodError, eval_dataset, path, **options)
        assert error.options == {"columns": columns}
        options = dict(options, columns=columns)
    found = [int(label) for _, labels in eval_dataset(path, **options) for label in labels]
    assert found == [0, 1, 2] * 2
    assert steps_per_epoch(path, 4, **{k: v for k, v in options.items() if k not in SIZE}) == 2
    for place in (path, [path], f"{tmp_path}/*.rec"):
        [(split, batches)] = load(place, **options).items()
        assert (split, sum(len(labels) for _, labels in batches)) == ("train", 6)
    (tmp_path / "Split-eval").mkdir()
    shutil.copy(path, tmp_path / "Split-eval/a")
    loaded = load(tmp_path, **options)["validation"]
    assert [int(label) for _, labels in loaded for label in labels] == found
    pairs = partial(recordgen.source(path).pairs, columns=columns, task=options.get("task", "auto"))
    if "vocabulary" in options:  # nothing numbers the texts
        with pytest.raises(errors.UsageError, match="kind"):
            pairs()
    else:
        assert [int(label) for _, label in pairs() if label >= 0] == found


# source, error, message
PATTERNS = [
    ("nothing/*.rec", errors.SourceError, "shard"),
    ("nothing", errors.SourceError, r"dataset\.json"),
    ([], errors.SourceError, "shard"),
    (["nothing", "nowhere"], errors.SourceError, "shard"),
    ("zz://bucket/data", errors.StorageError, "zz://"),
    (["zz://bucket/*"], errors.StorageError, "zz://"),
]


@pytest.mark.parametrize(("source", "error", "message"), PATTERNS)
def test_a_pattern_without_a_match_is_named(source, error, message):
    """A source without files is an error."""
    with pytest.raises(error, match=message):
        eval_dataset(source, **SIZE)


def test_written_images_are_read(tmp_path):
    """Examples written from Python are read as other tools' records are."""
    shared = {"image/encoded": IMAGE, "image/class/label": 1}
    examples = [{**shared, "image/source_id": f"pet {n}"} for n in range(6)]
    write(examples, str(tmp_path / "out"))
    assert sorted(ids(eval_dataset(tmp_path / "out", split="train", **WITH_IDS))) == NAMES[:6]
    write([{"x": 1}], str(tmp_path / "other"))
    with pytest.raises(errors.NotUnderstoodError):
        eval_dataset(tmp_path / "other", split="train", **SIZE)


def test_read_without_a_specification_lists_the_features(path):
    """The error without feature_spec lists the features."""
    with pytest.raises(errors.UsageError, match=r"feature_spec.*/class"):
        recordgen.read(path)


def unnamed(path, records):
    """Write compressed records to a file whose name does not say so."""
    os.rename(write_records(f"{path}.gz", records), path)
    return str(path)


def test_compressed_records_need_no_suffix(tmp_path, counts_cache):
    """Compressed files are known by their bytes, and may be mixed with plain ones."""
    mixed = [
        unnamed(tmp_path / "0.rec", map(pet, range(7))),
        write_records(tmp_path / "1.rec", map(pet, range(7, 12))),
        write_records(tmp_path / "2.rec.gz", map(pet, range(12, 20))),
    ]
    assert ids(eval_dataset(mixed, **WITH_IDS)) == NAMES
    assert ids(train_dataset(mixed, **WITH_IDS, shuffle=False)) == NAMES
    assert sorted(ids(train_dataset(mixed, **WITH_IDS))) == sorted(NAMES)
    assert steps_per_epoch(mixed, 4) == 5
    assert ids(eval_dataset(mixed, **WITH_IDS, shard=(0, 2))) != NAMES
