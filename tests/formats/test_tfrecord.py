"""TFRecords of images: the same bytes with other splits, and what other writers call features."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

import recordgen
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from recordgen.errors import SourceError, UsageError
from tests.conftest import noise
from tests.exports.copies import boxes, labelled
from tests.formats.boxes import boxes_of
from tests.formats.containers import contents, converted, converted_each, image
from tests.formats.sources import write_files
from tests.formats.written import tfds_features


def framed(*records):
    return b"".join(
        b"".join(RECORDS.frame([r] if isinstance(r, bytes) else serialize_example(r)))
        for r in records
    )


def write(folder, name, *records):
    (folder / "in" / name).write_bytes(framed(*records))


@pytest.mark.parametrize("make", [labelled, boxes])
def test_own_dataset_gets_other_splits(make, folder):
    """The folder of a dataset keeps splits, order and bytes; names=no assigns splits anew.

    Without one of its shards, it is an error, whose command converts the others.
    """
    out = make(folder)
    first = recordgen.read_dataset(out)
    (folder / "new").mkdir()
    dataset, rejects, _ = converted(folder / "new", source=out.as_uri())
    assert (dataset.task, rejects) == (first.task, {})
    assert list(dataset.labels) == list(first.labels)
    assert sorted(contents(folder / "new/out")) == sorted(contents(out))
    again, _, _ = converted(folder / "new", source=out, split={"names": "no"}, seed=5)
    images = sorted(item[1:] for item in contents(folder / "new/out"))
    assert images == sorted(item[1:] for item in contents(out))
    assert again.digest != dataset.digest
    gone = out / first.splits["train"].shards[0].file
    gone.unlink()
    with pytest.raises(SourceError, match=gone.name) as error:
        converted(folder / "new", source=out)
    [source] = re.findall("recordgen convert (.*) NEW_FOLDER", str(error.value))
    rest, _, _ = converted(folder / "new", source=source.strip("'"))
    assert rest.labels == first.labels
    assert rest.examples == first.examples - first.splits["train"].shards[0].examples


BOX = {
    "image/object/bbox/xmin": [0.1],
    "image/object/bbox/xmax": [0.2],
    "image/object/bbox/ymin": [0.25],
    "image/object/bbox/ymax": [0.5],
}
CORNERS = [0.1, 0.25, 0.2, 0.5]


@pytest.mark.parametrize("text", [None, b"dog", b""])
def test_object_detection_api(text, folder):
    """Texts, or numbers from 1 with a label map; other features are ignored."""
    said = {} if text is None else {"image/object/class/text": [text]}
    said |= {"image/object/class/label": [2], "image/filename": b"x/rex.jpg", "other": 1}
    write(folder, "train.record-00000-of-00001", {"image/encoded": image(1), **BOX, **said})
    write(folder, "eval.record-00000-of-00001", {"image/encoded": image(2)})
    items = 'item {\n id: 2\n name: \'dog\'\n}\nitem { name: "c" id: 1 display_name: "cat" }'
    (folder / "in/label_map.pbtxt").write_text(items)
    dataset, rejects, examples = converted(folder)
    assert (rejects, list(dataset.labels)) == ({}, ["cat", "dog"])
    uri = "train.record-00000-of-00001/0/rex.jpg"
    assert boxes_of(folder / "out") == {
        uri: ("train", [("dog", 1, CORNERS)]),
        "eval.record-00000-of-00001/0": ("eval", []),
    }
    assert examples[uri][1]["image/encoded"] == [image(1)]


PIXELS = {name: [100 * corner] for name, [corner] in BOX.items()}
NO_CLASS = {"image/object/class/text": [b""], "image/object/class/label": [0]}


@pytest.mark.parametrize("bad", [PIXELS, NO_CLASS], ids=["pixels", "empty class"])
def test_a_bad_box_rejects_its_image(bad, folder):
    """Corners are judged as they were written: clipped, they would be boxes of the whole image."""
    good = {"image/encoded": image(1), **BOX, "image/object/class/text": [b"dog"]}
    write(folder, "a.tfrecord", good, {**good, "image/encoded": image(2), **bad})
    _, rejects, examples = converted(folder)
    assert (list(rejects), list(examples)) == (["a.tfrecord/1"], ["a.tfrecord/0"])


def tfds(folder, **features):
    """Write features.json as TensorFlow Datasets does."""
    (folder / "in/features.json").write_text(json.dumps(tfds_features(features)))


def test_tfds_boxes(folder):
    """Boxes are ymin, xmin, ymax, xmax; names are those of objects-label.labels.txt."""
    tfds(
        folder,
        **{"image": "Image", "image/filename": "Text"},
        objects=[{"bbox": "BBoxFeature", "label": "ClassLabel", "is_difficult": "Scalar"}],
    )
    (folder / "in/objects-label.labels.txt").write_text("cat\ndog\n")
    said = {
        "objects/bbox": [0.25, 0.1, 0.5, 0.2],
        "objects/label": [1],
        "objects/is_difficult": [1],
    }
    for split in ("train", "test"):
        record = {"image": image(), "image/filename": b"a.jpg", **said}
        write(folder, f"voc-{split}.tfrecord-00000-of-00001", record)
    dataset, rejects, examples = converted(folder)
    assert (rejects, list(dataset.labels)) == ({}, ["cat", "dog"])
    assert {tuple(each["image/object/difficult"]) for _, each in examples.values()} == {(1,)}
    found = boxes_of(folder / "out")
    assert found["voc-train.tfrecord-00000-of-00001/0/a.jpg"] == ("train", [("dog", 1, CORNERS)])
    assert found["voc-test.tfrecord-00000-of-00001/0/a.jpg"][0] == "test"


def test_labels_without_features(folder):
    """The file of TFDS names the numbers of classes also where features.json is not there."""
    (folder / "in/label.labels.txt").write_text("cat\ndog\n")
    write(folder, "a-train.tfrecord", *({"image": image(at), "label": at} for at in range(2)))
    assert list(converted(folder)[0].labels) == ["cat", "dog"]


def test_tfds_labels(folder):
    """Labels of a TFDS dataset get their names, and masks are skipped with a remark."""
    tfds(folder, image="Image", mask="Image", label="ClassLabel", id="Text")
    (folder / "in/label.labels.txt").write_text("cat\ndog\n")
    records = [{"image": image(at), "mask": image(at), "label": at % 2} for at in range(4)]
    write(folder, "pets-train.tfrecord-00000-of-00001", *records)
    dataset, _, examples = converted(folder, lint="SKIPPED")
    assert (dataset.task, list(dataset.labels)) == ("image_classification", ["cat", "dog"])
    texts = {uri: values["image/class/text"] for uri, (_, values) in examples.items()}
    assert texts["pets-train.tfrecord-00000-of-00001/3"] == [b"dog"]
    assert "skipped: mask" in (folder / "out/lint.jsonl").read_text()


GOOD = {"image/encoded": image(), "image/class/label": 0}

# name: the bytes after a good record, the code of the reject
TRAPS = {
    "no example": (framed(b"\xff" * 40), "bad_annotation"),
    "no image": (framed({"image/class/label": 0}), "bad_annotation"),
    "two images": (framed({**GOOD, "image/encoded": [image(), b"x"]}), "bad_annotation"),
    "the image is a number": (framed({**GOOD, "image/encoded": 7}), "bad_annotation"),
    "raw pixels": (framed({**GOOD, "image/format": b"raw"}), "bad_annotation"),
    "no such class": (framed({**GOOD, "image/class/label": 7}), "bad_annotation"),
    "empty image": (framed({**GOOD, "image/encoded": b""}), "empty_file"),
    "labels are flags": (framed({**GOOD, "image/class/label": [1, 0, 1]}), "bad_annotation"),
    "label is a share": (framed({**GOOD, "image/class/label": 0.5}), "bad_annotation"),
    "cut in a record": (framed(GOOD)[:-9], "truncated"),
    "cut in a length": (framed(GOOD)[:5], "truncated"),
    "a damaged record": (framed(GOOD)[:-9] + b"x" + framed(GOOD)[-8:], "corrupt"),
    "a damaged length": (b"\xff" * 12, "corrupt"),
}


def test_a_bad_record_is_a_reject_with_its_place(folder):
    """A bad record is a reject that names its file; the good one before it stays."""
    bad = (framed(GOOD) + more for more, _ in TRAPS.values())
    files = {f"{at:02}.tfrecord": data for at, data in enumerate(bad)}
    write_files(folder / "in", {**files, "classes.txt": "cat\ndog\n"})
    for name, (file, [reject], examples) in converted_each(folder, TRAPS).items():
        assert (reject["uri"], reject["code"]) == (f"{file}/1", TRAPS[name][1]), name
        assert examples == [f"{file}/0"]


def test_a_record_after_a_damaged_one_is_found(folder):
    """A damaged record costs no other."""
    whole = framed(GOOD)
    (folder / "in/a.tfrecord").write_bytes(whole[:100] + b"x" + whole[101:] + whole)
    _, rejects, examples = converted(folder)
    assert (list(rejects), list(examples)) == (["a.tfrecord/0"], ["a.tfrecord/1"])


# name: the bytes of a file, what the message names
REFUSED = {
    "no image": (framed({"x": b"1"}), "x"),
    "no label": (framed({"image/encoded": image(), "kind": 1}), "kind"),
    "packed under a plain name": (gzip.compress(framed(GOOD)), "packed"),
}


@pytest.mark.parametrize(("data", "named"), REFUSED.values(), ids=REFUSED)
def test_files_of_no_task_are_refused(data, named, folder):
    """Features that make no task are named, and so is a file whose places mean nothing."""
    (folder / "in/a.tfrecord").write_bytes(data)
    with pytest.raises(SourceError, match=named):
        converted(folder, source=folder / "in/a.tfrecord")


# --- what google/tensorflow-recorder wrote --------------------------------------------------------

# The images of each split: modes, of which TFRecorder knows the palette no more.
MODES = {"train": ("RGB", "L", "RGBA", "P"), "validation": ("RGB",), "test": ("CMYK",)}


def recorded(image, number, split):
    """Return the record of an image, as TFRecorder's ``beam_image`` makes it."""
    values = {
        "image": base64.b64encode(image.tobytes(), altchars=b"-_"),
        "image_name": f"{number}.{'jpg' if image.mode == 'CMYK' else 'png'}".encode(),
        **{"image_width": image.width, "image_height": image.height},
        **{"image_channels": 1 if "L" in image.mode else 3, "label": number % 2},
        "split": split.upper().encode(),
    }
    return b"".join(RECORDS.frame(serialize_example(values)))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_pixels_labels_and_splits_come_back(suffix, tmp_path):
    """Pixels are the same, labels have their names, and palettes are lost.

    Readers name the command that converts them.
    """
    (tmp_path / "transform_fn/assets").mkdir(parents=True)
    (tmp_path / "transform_fn/assets/vocab_compute_and_apply_vocabulary").write_text("dog\ncat\n")
    expected = {}
    for split, modes in MODES.items():
        pictures = [noise(40, 30, seed=ord(split[0]) + at) for at in range(len(modes))]
        pictures = [each.convert(mode) for each, mode in zip(pictures, modes, strict=True)]
        data = b"".join(recorded(each, at, split) for at, each in enumerate(pictures))
        path = tmp_path / f"{split}-00000-of-00001.tfrecord{suffix}"
        path.write_bytes(gzip.compress(data) if suffix else data)
        expected |= {
            (split, str(at)): (pictures[at], ("dog", "cat")[at % 2]) for at in range(len(modes))
        }
    files = f"{tmp_path}/*.tfrecord{suffix}"
    for read in (recordgen.load, lambda files: recordgen.source(files).images(8)):
        with pytest.raises(UsageError, match=f"recordgen convert {tmp_path}"):
            read(files)
    found = recordgen.convert(tmp_path, tmp_path / "out", lint="-ALL", max_reject_fraction=0.5)
    assert found.dataset.labels == ("cat", "dog")
    del expected["train", "3"]
    assert sum(found.dataset.rows.rejected.values()) == 1
    read = 0
    for split in found.dataset.splits:
        source = recordgen.source(tmp_path / "out", split)
        for example, (pixels, number) in zip(source, source.images(), strict=True):
            name = example["image/source_id"].rpartition("/")[2][0]
            picture, label = expected[{"eval": "validation"}.get(split, split), name]
            np.testing.assert_array_equal(pixels, np.asarray(picture.convert("RGB")))
            assert found.dataset.labels[number] == label
            read += 1
    assert read == len(expected)
