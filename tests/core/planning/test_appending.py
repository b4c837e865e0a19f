"""Appending: existing examples stay, new ones are added, and no example is there twice."""

import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.samples.digits import write_digits
from recordgen import convert, read_dataset
from recordgen.core.dataset.counts import dataset_digest
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.runs import lease
from recordgen.core.runs.staging import STAGING
from recordgen.errors import UsageError
from tests.conftest import encoded, exif_of, noise, stored_examples, write_file

OPTIONS = {"shard_mb": 0.01, "max_reject_fraction": 1.0}


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Return rows of 300 digits, with absolute paths; a third of them name their split."""
    folder = tmp_path_factory.mktemp("digits")
    source = Path(write_digits(str(folder), 300))
    found = [line.split(",") for line in source.read_text().splitlines()]
    return [
        ",".join([*fields[:-2], str(folder / fields[-2]), f"digit{fields[-1]}"]) for fields in found
    ]


def write(folder, name, lines):
    path = write_file(folder / name, "".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def forty(lines, tmp_path_factory):
    """Return a dataset of 40 rows, which no test changes."""
    folder = tmp_path_factory.mktemp("forty")
    convert(write(folder, "one.csv", lines[:40]), folder / "out", **OPTIONS)
    return folder / "out"


@pytest.fixture
def out(forty, tmp_path):
    """Return a dataset of 40 rows."""
    return Path(shutil.copytree(forty, tmp_path / "out"))


def records(output):
    """Return split, label and label number by uri, of all shards that dataset.json names."""
    found = {}
    for name, values in stored_examples(output):
        keys = ("source_id", "class/text", "class/label")
        [uri], [text], [number] = (values[f"image/{key}"] for key in keys)
        assert uri not in found
        found[uri] = (name, text, number)
    return found


def files(output):
    """Return the bytes of all shards in the output."""
    return {str(path.relative_to(output)): path.read_bytes() for path in output.glob("Split-*/*")}


def consistent(dataset, output):
    """Check that dataset.json, the files and labels.txt agree."""
    named = {shard.file: shard for shard in dataset.shards}
    counted = {file: len(list(RECORDS.read(str(output / file)))) for file in named}
    rows = dataset.rows
    went = rows.examples + rows.duplicates + rows.dropped + rows.existing + rows.rejects
    return (
        set(files(output)) == set(named)
        and all(counted[file] == shard.examples for file, shard in named.items())
        and sum(counted.values()) == dataset.examples == rows.examples
        and tuple((output / "labels.txt").read_text().splitlines()) == dataset.labels
        and rows.read == went
    )


def test_appended_rows_change_no_byte_of_old_shards(tmp_path, lines):
    """Two runs give the rows of one, and a third adds nothing."""
    some = [line for line in lines if not line.endswith(("digit0", "digit5"))][:150]
    out = tmp_path / "out"
    convert(write(tmp_path, "one.csv", some), out, **OPTIONS)
    before, old_files = records(out), files(out)
    result = convert(write(tmp_path, "two.csv", lines), out, append=True, **OPTIONS)
    after = records(out)
    assert {uri: after[uri] for uri in before} == before
    assert {file: files(out)[file] for file in old_files} == old_files
    assert len(after) == 300 == result.dataset.examples
    assert result.counts["examples_written"] == 150 == result.counts["rows_existing"]
    assert "Appended   to 150 existing examples" in str(result)
    assert result.dataset.labels[-2:] == ("digit0", "digit5")
    assert read_dataset(str(out)) == result.dataset
    assert consistent(result.dataset, out)
    assert not (out / ".recordgen-staging").exists()

    every = files(out)
    again = convert(str(tmp_path / "two.csv"), out, append=True, **OPTIONS).dataset
    assert (files(out), again.rows.existing) == (every, 450)
    assert (again.digest, again.splits) == (result.dataset.digest, result.dataset.splits)

    alone = tmp_path / "alone"
    convert(write(tmp_path, "all.csv", lines), alone, **OPTIONS)
    found = {uri: row[:2] for uri, row in records(alone).items()}
    assert found == {uri: row[:2] for uri, row in after.items()}


def test_new_shards_of_a_label_come_last(tmp_path, lines):
    """Old shards of a label keep their names."""
    out = tmp_path / "out"
    options = {**OPTIONS, "shard_by": "label"}
    convert(write(tmp_path, "one.csv", lines[:100]), out, **options)
    old = files(out)
    result = convert(write(tmp_path, "two.csv", lines), out, append=True, **options)
    assert old.items() <= files(out).items()
    assert consistent(result.dataset, out)
    for shard in result.dataset.shards:
        examples = map(parse_example, RECORDS.read(str(out / shard.file)))
        texts = {example["image/class/text"][0] for example in examples}
        assert texts == {(shard.label or "").encode()}


def test_the_next_run_removes_shards_of_a_dead_one_and_no_foreign_files(out, tmp_path, lines):
    """Only names of ours are removed."""
    stray, index = out / "Split-train/data_tfrecord-00099-of-00100", out / "Split-train/data.idx"
    shutil.copy(next(out.glob("Split-train/*")), stray)
    index.write_text("mine")
    second = write(tmp_path, "two.csv", lines[:90])
    convert(second, out, append=True, **OPTIONS)
    assert not stray.exists()
    result = convert(second, out, overwrite=True, **OPTIONS)
    assert index.read_text() == "mine"
    index.unlink()
    assert consistent(result.dataset, out)


def test_append_and_overwrite_exclude_each_other(tmp_path):
    """The error names both."""
    with pytest.raises(UsageError, match=r"overwrite.*append"):
        convert("rows.csv", tmp_path / "out", append=True, overwrite=True)


def test_a_dataset_in_two_parts_is_that_of_one(tmp_path):
    """Counts, warnings and statistics add up."""
    lines = []
    for number in range(24):
        exif = exif_of(6 if number % 4 == 1 else 1)
        image = noise(20 + number, 10, seed=number)
        (tmp_path / f"{number}.png").write_bytes(encoded(image, "PNG", exif=exif))
        use = ("TRAIN", "VALIDATION", "")[number % 3]
        box = ",.1,.1,,,.9,2,," if number % 4 == 2 else ",.1,.1,,,.9,.9,,"
        label = ("cat", "", "dog", "")[number // 3 % 4]
        # Each part has unlabelled, merged, duplicate and missing images, and boxes to clip.
        lines.append(f"{use},{number}.png,{label}{box}" if label else f"{use},{number}.png")
        if number % 6 == 0:
            lines += [f"{use},{number}.png,bird{box}"] * 2
        if number % 12 == 5:
            lines.append(f"{use},missing{number}.png")
    half = next(at for at, line in enumerate(lines) if ",12.png" in line)
    options = {**OPTIONS, "task": "object_detection", "encode": "jpeg"}
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    first = convert(write(tmp_path, "a.csv", lines[:half]), parts, **options).dataset
    added = convert(write(tmp_path, "b.csv", lines[half:]), parts, append=True, **options)
    found = added.dataset
    expected = convert(write(tmp_path, "all.csv", lines), whole, **options).dataset
    for one in (first.rows, found.rows):
        assert all((one.merged, one.duplicates, one.adjusted, one.rejected, one.assigned))
    assert (found.rows, found.reencoded) == (expected.rows, expected.reencoded)
    assert found.warnings == expected.warnings
    assert list(found.splits) == list(expected.splits) == ["train", "eval", "test"]
    for name, split in expected.splits.items():
        assert name == "test" or 0 < first.splits[name].unlabelled < split.unlabelled
        # The other shards differ, with the same number of bytes of examples.
        other = found.splits[name]
        assert replace(other, shards=split.shards, bytes=split.bytes) == split
        assert other.bytes == sum(shard.bytes for shard in other.shards)
    assert found.digest == dataset_digest(found.shards)


def test_another_run_finishes_in_between(out, tmp_path, lines, monkeypatch):
    """It is appended to; an unexpected dataset is refused."""
    two, three = write(tmp_path, "two.csv", lines[40:60]), write(tmp_path, "3.csv", lines[60:90])
    held = lease.held

    def finish_first(output):
        """Let another run finish before the next one takes its lease."""

        @contextmanager
        def held_late(path, **how):
            monkeypatch.setattr(lease, "held", held)
            convert(two, output, append=True, **OPTIONS)
            with held(path, **how):
                yield

        monkeypatch.setattr(lease, "held", held_late)

    finish_first(out)
    result = convert(three, out, append=True, **OPTIONS)
    assert result.dataset.examples == 90
    assert consistent(result.dataset, out)

    empty = tmp_path / "empty"
    finish_first(empty)
    with pytest.raises(UsageError, match=f"^{empty}: "):
        convert(three, empty, **OPTIONS)
    assert read_dataset(str(empty)).examples == 20


def test_an_overwriting_run_died_while_it_moved_shards(out, tmp_path, lines):
    """There is nothing to append to; the interrupted run must be finished first."""
    (out / STAGING / "dead/results").mkdir(parents=True)
    (out / "dataset.json").rename(out / STAGING / "dead/results/dataset.json")
    second = write(tmp_path, "two.csv", lines[:60])
    with pytest.raises(UsageError, match=f"^{out}: .*resume=True"):
        convert(second, out, append=True, **OPTIONS)
    assert list(out.glob("Split-*/*"))


def test_append_to_nothing_is_a_conversion(tmp_path, lines):
    """It gives the same shards."""
    source = write(tmp_path, "one.csv", lines[:30])
    result = convert(source, tmp_path / "one", append=True, **OPTIONS)
    convert(source, tmp_path / "other", **OPTIONS)
    assert files(tmp_path / "one") == files(tmp_path / "other")
    assert result.counts["rows_existing"] == 0
