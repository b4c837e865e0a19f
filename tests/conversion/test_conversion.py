"""Conversion end to end: real Beam pipelines, real files."""

import hashlib
import json
import os
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
import tensorflow as tf

import recordgen
import recordgen.pandas
from recordgen import errors
from recordgen.core.dataset.counts import ImageStats
from recordgen.exports.export import CONVERTED
from recordgen.registry import EXPORTS
from tests.conftest import encoded, noise, tree_bytes, while_writing


def read_split(output, split):
    """Return a split's records, parsed by TensorFlow."""
    texts = ("encoded", "format", "source_id", "key/sha256")
    spec = {
        **{f"image/{name}": tf.io.FixedLenFeature([], tf.string) for name in texts},
        **{f"image/{name}": tf.io.FixedLenFeature([], tf.int64) for name in ("height", "width")},
        "image/class/text": tf.io.FixedLenFeature([], tf.string, b"(none)"),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64, -1),
    }
    shards = sorted(map(str, (output / f"Split-{split}").iterdir()))
    records = tf.data.TFRecordDataset(shards)
    return list(records.map(lambda it: tf.io.parse_single_example(it, spec)).as_numpy_iterator())


def named(path):
    """Return the name of an image of ``make_images`` in the rows of ``make_csv``."""
    return f"images/{path.name}"


def test_records_hold_what_the_rows_say(make_images, make_csv, out):
    """Each row becomes one record of its split, with its own bytes, label and name."""
    splits, images = ("TRAIN", "VALIDATION", "TEST"), make_images(9)
    rows = [(splits[n % 3], path, ("cat", "dog")[n % 2]) for n, path in enumerate(images)]
    source = make_csv(f"{ml_use},{path},{label}" for ml_use, path, label in rows)
    result = recordgen.convert(source, str(out))

    assert result.dataset.labels == ("cat", "dog")
    assert (out / "labels.txt").read_text() == "cat\ndog\n"
    assert (out / "rejects.jsonl").read_text() == ""
    for ml_use, split in (("TRAIN", "train"), ("VALIDATION", "eval"), ("TEST", "test")):
        expected = {
            named(path): (path.read_bytes(), label) for use, path, label in rows if use == ml_use
        }
        records = read_split(out, split)
        assert len(records) == len(expected) == result.dataset.splits[split].examples
        for record in records:
            data, label = expected[record["image/source_id"].decode()]
            assert record == {
                "image/encoded": data,
                "image/format": b"jpeg",
                "image/height": 12,
                "image/width": 16,
                "image/source_id": record["image/source_id"],
                "image/key/sha256": hashlib.sha256(data).hexdigest().encode(),
                "image/class/text": label.encode(),
                "image/class/label": ("cat", "dog").index(label),
            }
    assert recordgen.read_dataset(str(out)) == result.dataset
    splits = {"Split-eval", "Split-test", "Split-train"}
    beside = {"dataset.json", "examples.parquet", "labels.txt", "lint.jsonl", "records.npy"}
    exported = {"rejects.jsonl", "croissant.json", "report.html", "schema.pbtxt"}
    assert set(os.listdir(out)) == splits | beside | exported


def test_dataset_json_tells_the_truth(make_images, make_csv, out):
    """Shard sizes, digests and counts in dataset.json match the files."""
    source = make_csv(f"{path},{n % 3}" for n, path in enumerate(make_images(60)))
    dataset = recordgen.convert(source, str(out), shard_mb=0.01).dataset
    assert len(dataset.splits["train"].shards) > 2
    assert (dataset.label_kind, dataset.labels) == ("integer", ("0", "1", "2"))
    lines = []
    for name, split in dataset.splits.items():
        for shard in split.shards:
            assert len((out / shard.file).read_bytes()) == shard.bytes
            lines.append(f"{shard.digest}  {shard.file}\n")
            read = tf.data.TFRecordDataset(str(out / shard.file)).as_numpy_iterator()
            records = [tf.train.Example.FromString(item).features.feature for item in read]
            assert len(records) == shard.examples
            names = ("image/key/sha256", "image/class/text", "image/source_id")
            text = "".join(
                "\t".join(record[name].bytes_list.value[0].decode() for name in names) + "\n"
                for record in records
            )
            assert hashlib.sha256(text.encode()).hexdigest() == shard.digest
        found = Counter(r["image/class/text"].decode() for r in read_split(out, name))
        assert found == split.labels
        assert split.examples == sum(shard.examples for shard in split.shards)
    text = "".join(sorted(lines, key=lambda line: line.split()[1]))
    assert dataset.digest == hashlib.sha256(text.encode()).hexdigest()
    assert dataset.rows.assigned == dataset.examples == dataset.rows.read == 60


def without_lines(files):
    """Return the files of an output, except those that name lines of the import file."""
    with_lines = ("examples.parquet", "lint.jsonl")
    kept = {name: data for name, data in files.items() if name not in with_lines}
    page = re.sub(rb"<h2>Findings</h2>.*?</section>", b"", files["report.html"], flags=re.DOTALL)
    return {**kept, "report.html": page}


@pytest.mark.parametrize("args", [{"shard_mb": 0.008}, {"shard_by": "label", "shard_mb": 0.004}])
def test_same_input_same_bytes_on_any_number_of_workers(args, make_images, make_csv, tmp_path):
    """One worker, two worker threads, shuffled rows and other threads give the same bytes."""
    lines = [f"{path},{('cat', 'dog', '')[n % 3]}" for n, path in enumerate(make_images(40))]
    source = make_csv(lines)

    def converted(name, seed=3, **more):
        recordgen.convert(source, tmp_path / name, seed=seed, **args, **more)
        return tree_bytes(tmp_path / name)

    expected = converted("one")
    assert len(expected) > 6
    assert converted("two", threads=7, beam_args=["--direct_num_workers=2"]) == expected
    make_csv(reversed(lines))
    assert without_lines(converted("reversed")) == without_lines(expected)
    assert converted("seed", seed=4) != expected


def test_a_new_class_leaves_the_shards_of_the_others(make_images, make_csv, tmp_path):
    """With shard_by=label, a new class renumbers shards; a later one changes no byte of others."""
    images = make_images(36)
    lines = [f"{path},{('cat', 'dog', '')[n % 3]}" for n, path in enumerate(images[:24])]
    later = [f"{path},zebra" for path in images[24:30]]
    earlier = [f"TRAIN,{path},ant" for path in images[30:]]

    def shards(lines, name):
        """Convert; return (split, digest, bytes) of each label's shards, in order."""
        args = {"shard_by": "label", "shard_mb": 0.004}
        dataset = recordgen.convert(make_csv(lines), tmp_path / name, **args).dataset
        found = {}
        for split, content in dataset.splits.items():
            for shard in content.shards:
                data = (tmp_path / name / shard.file).read_bytes()
                found.setdefault(shard.label, []).append((split, shard.digest, data))
        return found

    before = shards(lines, "before")
    assert sorted(before) == ["", "cat", "dog"]
    after = shards(lines + later, "later")
    assert after.pop("zebra")
    assert after == before
    # cat was number 0 and is 1 now, in its records, too; a digest covers the label's text.
    after = shards(lines + later + earlier, "earlier")
    for label, ours in before.items():
        assert [item[:2] for item in after[label]] == [item[:2] for item in ours]


def test_shard_of_a_label_whose_images_are_all_rejected(make_csv, tmp_path, out):
    """Its shard exists without records, and keeps its label."""
    (tmp_path / "good.jpg").write_bytes(encoded(noise(), "JPEG"))
    for name in ("bad.jpg", "worse.jpg"):
        (tmp_path / name).write_bytes(b"no image")
    source = make_csv(["TRAIN,good.jpg,dog", "TRAIN,bad.jpg,cat", "TEST,worse.jpg,cat"])
    dataset = recordgen.convert(source, out, shard_by="label", max_reject_fraction=1).dataset
    assert list(dataset.splits) == ["train"]
    found = [(shard.label, shard.examples) for shard in dataset.splits["train"].shards]
    assert found == [("cat", 0), ("dog", 1)]
    assert len(read_split(out, "train")) == 1


def test_rejects_are_written_and_counted(make_images, make_csv, tmp_path, out):
    """Each bad row is in rejects.jsonl with line and reason; the good ones are converted."""
    good = make_images(5)
    empty, text, cut = (tmp_path / name for name in ("empty.jpg", "text.jpg", "cut.jpg"))
    empty.write_bytes(b"")
    text.write_text("no image")
    cut.write_bytes(good[0].read_bytes()[:-200])
    loop = tmp_path / "loop.jpg"
    loop.symlink_to(loop)
    rows = [
        (f"TRAIN,{good[0]},cat", ""),
        (f"TRIAN,{good[1]},cat", "unknown_ml_use"),
        ("TRAIN,/no/such.jpg,cat", "missing_file"),
        (f"TRAIN,{empty},cat", "empty_file"),
        (f"TRAIN,{text},cat", "not_an_image"),
        (f"TRAIN,{cut},cat", "truncated"),
        (f"TRAIN,{good[2]},cat", "conflicting_labels"),
        (f"TRAIN,{good[2]},dog", "conflicting_labels"),
        (f"TRAIN,{good[0]},cat", ""),  # a duplicate
        (f"TEST,{good[0]},cat", "conflicting_splits"),
        (f"TRAIN,{tmp_path},cat", "not_a_file"),
        ("TRAIN,g://bucket/1.jpg,cat", "unknown_scheme"),
        ("TRAIN,,cat", "no_path"),
        (f"TRAIN,{loop},cat", "missing_file"),  # not an outage
        (f"TRAIN,/{'x' * 300}.jpg,cat", "missing_file"),
    ]
    source = make_csv(line for line, _ in rows)
    result = recordgen.convert(source, str(out), max_reject_fraction=1)
    rejects = [json.loads(line) for line in (out / "rejects.jsonl").read_text().splitlines()]
    expected = [(number, code) for number, (_, code) in enumerate(rows, start=1) if code]
    assert [(item["line"], item["code"]) for item in rejects] == expected
    assert all(item["source"] == source and item["message"] for item in rejects)
    counts = result.dataset.rows
    assert (counts.read, counts.examples, counts.duplicates, counts.rejects) == (15, 1, 1, 13)
    assert [r["image/source_id"].decode() for r in read_split(out, "train")] == [named(good[0])]


def test_a_missing_shard_is_noticed(slow_source, out):
    """If a result vanishes during the run, the counts fail before the commit."""

    def remove_results():
        for path in out.rglob("results/*.result"):
            path.unlink()

    options = {"shard_mb": 1, "check": "none", "progress": while_writing(remove_results)}
    with pytest.raises(errors.RunnerError, match=r" \d+ of \d+ shards"):
        recordgen.convert(slow_source, out, **options)
    assert not (out / "dataset.json").exists()


def test_an_empty_import_file_is_an_error(make_csv, tmp_path):
    """Nothing to convert is an error, and so is a file in place of the folder."""
    with pytest.raises(errors.NothingToConvertError, match=r"\b0 rows"):
        recordgen.convert(make_csv([""]), str(tmp_path / "out"))
    assert os.listdir(tmp_path / "out") == []
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    file = make_csv([""])
    for place in (file, f"{file}/below/out", os.devnull, str(tmp_path / "link")):
        with pytest.raises(errors.UsageError, match=f"^{place}: .*folder or URL"):
            recordgen.convert(file, place)


def test_empty_paths_do_not_name_the_working_folder(make_images, make_csv, tmp_path, monkeypatch):
    """Paths that are empty or missing, or lost a slash, are refused before anything is written."""
    source = make_csv(f"TRAIN,{path},cat" for path in make_images(1))
    work = tmp_path / "work"
    work.mkdir()
    (work / "1.jpg").write_bytes(b"")
    monkeypatch.chdir(work)
    for call, given in ((recordgen.convert, source), (recordgen.write, [{"x": 1}])):
        with pytest.raises(errors.UsageError, match="output"):
            call(given, "")
    for url in (Path("gs://bucket/out"), "S3:/bucket/out", "file:/out"):
        with pytest.raises(errors.UsageError, match="://"):
            recordgen.convert(source, url)
    with pytest.raises(errors.SourceError, match=r"none\*\.csv: "):
        recordgen.convert("none*.csv", "out")
    for empty in ("", [source, ""]):
        with pytest.raises(errors.UsageError, match="source"):
            recordgen.convert(empty, "out")
    assert os.listdir(work) == ["1.jpg"]
    recordgen.convert(source, "s3")  # a folder of this name
    assert sorted(os.listdir(work)) == ["1.jpg", "s3"]


def test_output_is_not_overwritten_by_accident(make_images, make_csv, out):
    """An output with a dataset is refused without overwrite, and replaced as a whole with it."""
    images = make_images(12)
    source = make_csv(f"TRAIN,{path},cat" for path in images)
    recordgen.convert(source, str(out), shard_mb=0.004)
    (out / "notes.txt").write_text("mine")
    before = tree_bytes(out)
    with pytest.raises(errors.OutputExistsError, match=r"out: .*dataset\.json.* overwrite=True"):
        recordgen.convert(source, str(out))
    assert tree_bytes(out) == before
    make_csv(f"TEST,{path},cat" for path in images)
    recordgen.convert(source, str(out), overwrite=True)
    assert sorted(os.listdir(out / "Split-test")) == ["data_tfrecord-00000-of-00001"]
    assert not (out / "Split-train").exists()
    assert (out / "notes.txt").read_text() == "mine"


def test_missing_splits_are_drawn_or_dropped(make_images, make_csv, tmp_path):
    """drop skips rows without a split only if another row names one."""
    images = make_images(6)
    mixed = make_csv([f"TRAIN,{images[0]},a", *(f"{path},a" for path in images[1:])])
    assigned = recordgen.convert(mixed, str(tmp_path / "assigned")).dataset.rows
    assert (assigned.examples, assigned.assigned, assigned.dropped) == (6, 5, 0)
    dropped = recordgen.convert(mixed, str(tmp_path / "dropped"), missing_split="drop").dataset
    assert (dropped.rows.examples, dropped.rows.assigned, dropped.rows.dropped) == (1, 0, 5)
    bare = make_csv([f"{path},a" for path in images], name="bare.csv")
    kept = recordgen.convert(bare, str(tmp_path / "bare"), missing_split="drop").dataset.rows
    assert (kept.examples, kept.dropped) == (6, 0)


@pytest.mark.parametrize("option", ["overwrite", "append"])
def test_a_failed_run_keeps_the_old_dataset(option, make_images, make_csv, out):
    """The old dataset stays until the new one is complete; the new rejects are next to it."""
    source = make_csv(f"TRAIN,{path},cat" for path in make_images(3))
    recordgen.convert(source, out)
    before = tree_bytes(out)
    bad = make_csv(["TRAIN,nowhere.jpg,cat"], name="bad.csv")
    with pytest.raises(errors.TooManyRejectsError, match=r"failed-rejects\.jsonl"):
        recordgen.convert(bad, out, **{option: True})
    after = tree_bytes(out)
    assert json.loads(after.pop("failed-rejects.jsonl"))["code"] == "missing_file"
    assert after == before
    recordgen.convert(source, out, overwrite=True)
    assert tree_bytes(out) == before


@pytest.mark.parametrize(
    "name", ["labels.txt", "Split-train", *(EXPORTS[each].file for each in CONVERTED)]
)
def test_files_of_the_user_are_not_taken(name, make_images, make_csv, tmp_path):
    """Without our dataset.json, files with our names belong to somebody else."""
    source = make_csv(f"TRAIN,{path},cat" for path in make_images(1))
    there = tmp_path / "out" / name
    there.mkdir(parents=True)
    with pytest.raises(errors.OutputExistsError, match=f"out: .*{name}"):
        recordgen.convert(source, tmp_path / "out")
    assert there.exists()


def test_every_shard_of_the_count_is_there(make_csv, tmp_path):
    """A payload larger than a shard leaves other shards empty, but every shard file exists."""
    (tmp_path / "large.png").write_bytes(encoded(noise(100, 100), "PNG"))
    for name in ("small.png", "tiny.png"):
        (tmp_path / name).write_bytes(encoded(noise(2, 2), "PNG"))
    source = make_csv(["TRAIN,large.png,a", "TRAIN,small.png,a", "TRAIN,tiny.png,a"])
    output = tmp_path / "out[1]*"  # characters of globs are allowed in names
    shards = recordgen.convert(source, output, shard_mb=0.001).dataset.splits["train"].shards
    names = [f"data_tfrecord-{index:05d}-of-00003" for index in range(3)]
    assert sorted(os.listdir(output / "Split-train")) == names
    assert [shard.file for shard in shards] == [f"Split-train/{name}" for name in names]
    assert len(read_split(output, "train")) == 3


def test_a_dataframe_gives_the_shards_of_its_csv(make_images, tmp_path):
    """A DataFrame gives the same shards as the CSV; both accessor methods work."""
    images = make_images(6)
    splits = ("TRAIN", "VALIDATION", "TEST")
    lines = [f"{splits[n % 3]},{path},{n % 2}\n" for n, path in enumerate(images)]
    (tmp_path / "frame.csv").write_text("".join(["split,image_uri,label\n", *lines]))
    frame = pd.read_csv(tmp_path / "frame.csv")
    expected = recordgen.convert(str(tmp_path / "frame.csv"), str(tmp_path / "csv")).dataset
    for name in ("to_tfr", "to_tfrecord"):
        call = getattr(frame.tensorflow, name)
        result = call(output_dir=str(tmp_path / name), runner="directRUNNER")
        assert result.dataset.digest == expected.digest
    with pytest.raises(errors.UsageError, match="needs project= and region="):
        frame.tensorflow.to_tfr(output_dir=str(tmp_path / "x"), runner="DataFlowRunner")
    with pytest.raises(errors.UsageError, match="DataFrame"):
        recordgen.convert(pd.DataFrame({"a": [1]}), str(tmp_path / "y"))
    rows = [("TRAIN", images[0], 0), (pd.NA, images[1], pd.NA), ("TRAIN", "a\rb.jpg", 1)]
    typed = pd.DataFrame(rows, columns=frame.columns).astype({"image_uri": str}).convert_dtypes()
    result = recordgen.convert(typed, tmp_path / "typed", max_reject_fraction=1)
    assert result.dataset.rows.examples == 2
    assert [(reject.line, reject.code) for reject in result.rejects] == [(3, "bad_line")]
    gaps = pd.DataFrame({"image_uri": [str(images[0]), None], "label": [3.0, None]})
    result = recordgen.convert(gaps, str(tmp_path / "gaps"), max_reject_fraction=1)
    assert result.dataset.labels[-1] == "3"
    assert [(reject.line, reject.code) for reject in result.rejects] == [(2, "no_path")]


def test_check_and_plan_write_nothing(make_images, make_csv, tmp_path):
    """check finds the rejects of convert, plan its shards, and neither writes a file."""
    images = make_images(5)
    images[4].write_bytes(b"no image")
    source = make_csv(f"TRAIN,{path},cat" for path in images)
    before = tree_bytes(tmp_path)
    checked = recordgen.check(source)
    assert [(item.line, item.code) for item in checked.rejects] == [(5, "not_an_image")]
    assert checked.dataset.splits["train"].examples == 4
    planned = recordgen.plan(source, shard_mb=0.001)
    assert (planned.rows, planned.read) == (5, 5)
    assert planned.splits["train"]["shards"] > 1
    assert tree_bytes(tmp_path) == before


def test_unknown_options_and_runners(tmp_path, make_csv, make_images):
    """The error of a misspelt option suggests the right one; a check takes no runner."""
    source = make_csv(["a.jpg"])
    with pytest.raises(errors.UsageError, match=r"'sed'.*'seed'"):
        recordgen.convert(source, str(tmp_path / "out"), sed=1)
    wrong = {"columns": 1, "group_by": 1, "lint": None, "allow": [1], "task": []}
    for name, value in {**wrong, "max_reject_fraction": "0.5"}.items():
        with pytest.raises(errors.UsageError, match=f"^{name} "):
            recordgen.check(source, **{name: value})
    images = make_csv([f"{path},cat" for path in make_images(2)])
    nothing = dict.fromkeys(("columns", "group_by", "vocabulary"))
    given = {"allow": tmp_path, "max_reject_fraction": Fraction(1), **nothing}
    assert recordgen.check([Path(images)], **given).dataset.examples == 2
    with pytest.raises(errors.UsageError, match=r"^source .*\[1\]"):
        recordgen.check([1])
    with pytest.raises(errors.UsageError, match="--runner"):
        recordgen.check(source, beam_args=["--runner", "DataflowRunner"])


def test_what_images_have_in_common(tmp_path, make_csv):
    """dataset.json has the formats and sizes of each split, or nothing if a size is unknown."""
    for name, (width, height) in {"a.jpg": (16, 12), "b.png": (8, 20), "c.jpg": (30, 10)}.items():
        kind = "PNG" if name.endswith("png") else "JPEG"
        (tmp_path / name).write_bytes(encoded(noise(width, height), kind))
    rows = ["TRAIN,a.jpg,x", "TRAIN,b.png,x", "VALIDATION,c.jpg,x"]
    result = recordgen.convert(make_csv(rows), tmp_path / "out")
    again = recordgen.read_dataset(str(tmp_path / "out"))
    for dataset in (result.dataset, again):
        sides = {"height": (12, 20), "width": (8, 16)}
        assert dataset.splits["train"].images == ImageStats({"jpeg": 1, "png": 1}, **sides)
        assert dataset.splits["eval"].images == ImageStats({"jpeg": 1}, (10, 10), (30, 30))
    (tmp_path / "d.jpg").write_bytes(b"no image")
    rows.append("TRAIN,d.jpg,x")
    unchecked = recordgen.convert(make_csv(rows), tmp_path / "out2", check="none").dataset
    assert unchecked.splits["train"].images is None
