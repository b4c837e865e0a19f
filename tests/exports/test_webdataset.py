"""`export webdataset`: tars whose members with one key are an example, with equal bytes."""

import json
import tarfile
from itertools import groupby

from tests.conftest import convert_lines, stored_examples, write_noise
from tests.exports.copies import boxes, converted, export, labelled


def samples(folder, pattern):
    """Return the samples of tars as the library groups them: by the name up to the first dot."""
    found = []
    for path in sorted(folder.glob(pattern)):
        with tarfile.open(path) as tar:
            members = tar.getmembers()
            for member in members:
                assert (member.mtime, member.uid, member.gid) == (0, 0, 0)
                assert (member.uname, member.gname, member.mode) == ("", "", 0o644)
            for key, group in groupby(members, lambda member: member.name.partition(".")[0]):
                parts = {it.name.partition(".")[2]: tar.extractfile(it).read() for it in group}
                found.append({"__key__": key, **parts})
    return found


def test_labels(tmp_path):
    """The image as it is stored, the number of its label, and everything else as JSON."""
    out = labelled(tmp_path)
    export("webdataset", out, tmp_path / "to")
    assert (tmp_path / "to/labels.txt").read_text() == "cat\ndog\nyes\n"
    for split, word in (("train", "train"), ("eval", "val"), ("test", "test")):
        records = [values for name, values in stored_examples(out) if name == split]
        found = samples(tmp_path / "to", f"{word}-??????.tar")
        assert [it["__key__"] for it in found] == [f"{at:08d}" for at in range(len(records))]
        for sample, values in zip(found, records, strict=True):
            [kind] = values["image/format"]
            suffix = kind.decode().replace("jpeg", "jpg")
            assert sample.keys() == {"__key__", suffix, "cls", "json"}
            assert [sample[suffix]] == values["image/encoded"]
            assert [int(sample["cls"])] == values["image/class/label"]
            [uri] = values["image/source_id"]
            expected = {"source_id": uri.decode(), "label": int(sample["cls"])}
            assert json.loads(sample["json"]) == expected


def test_boxes_and_several_images(sample, tmp_path):
    """Boxes are objects in the JSON; each column of images has its name in front of the suffix."""
    export("webdataset", sample("declared"), tmp_path / "declared")
    for each in samples(tmp_path / "declared", "train-*.tar"):
        assert set(each) == {"__key__", "day.png", "night.png", "cls", "json"}
    export("webdataset", boxes(tmp_path), tmp_path / "to", split="train")
    assert not list((tmp_path / "to").glob("val*"))
    found = [json.loads(sample["json"]) for sample in samples(tmp_path / "to", "train-*.tar")]
    assert {len(each["objects"]) for each in found} >= {0, 1, 2}
    assert all(set(it) == {"bbox", "category"} for each in found for it in each["objects"])


def test_no_number_that_json_lacks(tmp_path):
    """A segment to the end of a video ends at infinity: null."""
    lines = ["TRAIN,a.mp4,cat,0,inf", "TRAIN,b.mp4,cat,1.5,2"]
    out = convert_lines(tmp_path, lines, task="video_classification")
    export("webdataset", out, tmp_path / "to")
    found = [json.loads(sample["json"]) for sample in samples(tmp_path / "to", "train-*.tar")]
    assert {(each["start"], each["end"]) for each in found} == {(0.0, None), (1.5, 2.0)}


def test_types_come_first(tmp_path):
    """Hugging Face takes types from the first samples, so the first one with a box comes first."""
    write_noise(tmp_path, range(12))
    lines = [f"TRAIN,{number}.png{',' * 9}" for number in range(11)]
    out = converted(tmp_path, [*lines, "TRAIN,11.png,cat,.1,.1,,,.5,.5,,"], task="object_detection")
    export("webdataset", out, tmp_path / "to")
    for path in (tmp_path / "to").glob("*.tar"):
        found = samples(tmp_path / "to", path.name)
        assert sorted(it["__key__"] for it in found[1:]) == [it["__key__"] for it in found[1:]]
        boxed = [bool(json.loads(it["json"])["objects"]) for it in found]
        assert boxed == sorted(boxed, reverse=True)
    assert (
        sum(len(samples(path.parent, path.name)) for path in (tmp_path / "to").glob("*.tar")) == 12
    )
