"""Copies of images are read again by Recordgen's own formats, and by other tools' libraries."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from pycocotools.coco import COCO

import recordgen
from recordgen.cli import main
from recordgen.errors import UsageError
from recordgen.exports import Output
from recordgen.exports.losses import PARTS, lost_objects
from recordgen.registry import EXPORTS
from tests.conftest import ROOT, encoded, noise, stored_examples, tree_bytes
from tests.exports.copies import LABELS, boxes, converted, export, labelled, pictures
from tests.formats.boxes import CORNERS

#: Half of the last decimal of COCO's pixels, and the error of shares as float32.
PIXELS = 1e-4

# export: (where its images are, and what is converted again)
BOXES = {
    "coco": ("{split}/{name}", ""),
    "yolo": ("images/{split}/{name}", ""),
    "automl": ("images/{split}/{name}", "import.csv"),
}
CLASSES = {
    "folder": ("{split}/{label}/{name}", ""),
    "automl": ("images/{split}/{name}", "import.csv"),
}


def again(tmp_path, out, name, source, **options):
    """Export a dataset, convert the copy, and return the new dataset."""
    export(name, out, tmp_path / "to")
    place = f"{tmp_path}/to/{source}"
    recordgen.convert(place, tmp_path / "again", lint="-ALL", **options)
    return tmp_path / "again"


def corners_of(out):
    """Return for each image its split and its boxes: label, and corners in pixels."""
    found = {}
    for split, example in stored_examples(out):
        uri = example["image/source_id"][0].decode()
        sides = [example["image/width"][0], example["image/height"][0]] * 2
        shares = zip(*(example.get(f"image/object/bbox/{it}", ()) for it in CORNERS), strict=True)
        texts = [text.decode() for text in example.get("image/object/class/text", ())]
        pixels = [[share * side for share, side in zip(box, sides, strict=True)] for box in shares]
        found[uri] = split, list(zip(texts, pixels, strict=True))
    return found


@pytest.mark.parametrize("name", BOXES)
def test_boxes_come_back(name, tmp_path):
    """Images, splits, labels and numbers of labels are equal, and boxes within a ten-thousandth."""
    place, source = BOXES[name]
    old = boxes(tmp_path, place)
    new = again(tmp_path, old, name, source)
    found = recordgen.diff(str(old), str(new))
    assert (len(found.added), len(found.removed)) == (0, 0)
    assert {kind for row in found.changed for kind in row.kinds} <= {"annotation"}
    assert recordgen.read_dataset(str(new)).labels == recordgen.read_dataset(str(old)).labels
    expected, corners = corners_of(old), corners_of(new)
    assert corners.keys() == expected.keys()
    assert ("train", []) in corners.values()
    for uri, (split, objects) in expected.items():
        assert corners[uri][0] == split
        for (label, pixels), (other, others) in zip(objects, corners[uri][1], strict=True):
            assert other == label
            assert others == pytest.approx(pixels, abs=PIXELS)


@pytest.mark.parametrize("name", CLASSES)
def test_labels_come_back(name, tmp_path):
    """With the same splits: diff finds no difference."""
    place, source = CLASSES[name]
    old = labelled(tmp_path, place)
    new = again(tmp_path, old, name, source)
    assert main(["diff", str(old), str(new)]) == 0
    found = recordgen.diff(str(old), str(new))
    assert found.is_same
    assert recordgen.read_dataset(str(new)).splits.keys() == {"train", "eval", "test"}


def test_several_labels_come_back(tmp_path):
    """In any order in the row."""
    place, source = CLASSES["automl"]
    lines = pictures(tmp_path, place, lambda number, size: LABELS[: 1 + number % 3])
    old = converted(tmp_path, lines, task="image_multi_label")
    new = again(tmp_path, old, "automl", source, task="image_multi_label")
    assert recordgen.diff(str(old), str(new)).is_same


def test_coco_as_its_own_library_reads_it(tmp_path):
    """Ids begin at 1, and boxes that were whole pixels are whole pixels."""
    out = boxes(tmp_path)
    export("coco", out, tmp_path / "to")
    expected = corners_of(out)
    seen = 0
    for word, split in (("train", "train"), ("val", "eval"), ("test", "test")):
        coco = COCO(tmp_path / f"to/annotations/instances_{word}.json")
        assert [coco.cats[at]["name"] for at in (1, 2, 3)] == list(LABELS)
        for image in coco.loadImgs(coco.getImgIds()):
            assert (tmp_path / "to" / word / image["file_name"]).is_file()
            objects = expected[f"{word}/{image['file_name']}"]
            found = coco.loadAnns(coco.getAnnIds(image["id"]))
            assert objects[0] == split
            for (label, pixels), each in zip(objects[1], found, strict=True):
                x, y, width, height = each["bbox"]
                assert coco.cats[each["category_id"]]["name"] == label
                assert [x, y, x + width, y + height] == pytest.approx(pixels, abs=PIXELS)
                assert (x, y) == (round(x), round(y))
                assert each["area"] == pytest.approx(width * height, abs=1e-3)
                seen += 1
    assert seen == sum(len(objects) for _, objects in expected.values()) > 20


def test_yolo_as_ultralytics_defines_it(tmp_path):
    """The class yes is a text, and a label file lies beside each image's folder."""
    export("yolo", boxes(tmp_path), tmp_path / "to")
    config = yaml.safe_load((tmp_path / "to/data.yaml").read_text())
    assert config["names"] == dict(enumerate(LABELS))
    for word in ("train", "val", "test"):
        images = sorted((tmp_path / "to" / config[word]).iterdir())
        assert images
        for image in images:
            labels = tmp_path / "to" / "labels" / word / f"{image.stem}.txt"
            for line in labels.read_text().splitlines():
                number, *shares = line.split(" ")
                assert int(number) in config["names"]
                x, y, width, height = map(float, shares)
                assert 0 <= x - width / 2 < x + width / 2 <= 1 + 1e-8
                assert 0 <= y - height / 2 < y + height / 2 <= 1 + 1e-8
    assert (tmp_path / "to/labels/train/empty.txt").read_bytes() == b""


def test_automl_names_whole_urls_in_a_store():
    """Vertex AI reads gs:// paths only; the shares of boxes are the shortest of their float32."""
    folder = Path(__file__).parents[2] / "examples/object_detection"
    recordgen.convert(str(folder / "digits.csv"), "memory://automl/out")
    assert main(["export", "automl", "memory://automl/out", "--to", "memory://automl/to"]) == 0
    text = recordgen.storage.read_text("memory://automl/to/import.csv")
    rows = list(csv.reader(text.splitlines()))
    assert {row[0] for row in rows} == {"training", "validation", "test"}
    assert all(recordgen.storage.exists(row[1]) for row in rows)
    assert rows[0][1].startswith("memory://automl/to/images/")
    source = {tuple(row[2:]) for row in csv.reader((folder / "digits.csv").read_text().split())}
    assert {tuple(row[2:]) for row in rows} == source


def test_documents_are_json(tmp_path):
    """A split without boxes has an empty list of annotations."""
    lines = pictures(tmp_path, "{split}/{name}", lambda number, size: [""] * 9)
    box = "cat,0.1,0.1,,,0.5,0.5,,"
    lines[0] = f"{','.join(lines[0].split(',')[:2])},{box}"
    export("coco", converted(tmp_path, lines, task="object_detection"), tmp_path / "to")
    documents = {
        path.stem: json.loads(path.read_text()) for path in (tmp_path / "to/annotations").iterdir()
    }
    assert [len(documents[f"instances_{word}"]["annotations"]) for word in ("train", "val")] == [
        1,
        0,
    ]
    assert len(documents["instances_val"]["images"]) == 3


def crowd(tmp_path):
    """Convert a COCO document: a cat with an outline, a crowd of cats, and a dog."""
    objects = [
        {"image_id": 0, "category_id": 1, "bbox": [1, 2, 10, 10], "iscrowd": 0, "area": 55},
        {"image_id": 0, "category_id": 1, "bbox": [5, 5, 20, 20], "iscrowd": 1, "area": 300},
        {"image_id": 1, "category_id": 2, "bbox": [5, 5, 20, 20], "iscrowd": 0, "area": 300},
    ]
    objects[0]["segmentation"] = [[1, 2, 11, 2, 11, 12]]
    for number in range(2):
        path = tmp_path / f"{number}.png"
        path.write_bytes(encoded(noise(40, 30, seed=number), "PNG"))
    size = {"width": 40, "height": 30}
    document = {
        "images": [{"id": at, "file_name": f"{at}.png", **size} for at in range(2)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [{"id": at, **item} for at, item in enumerate(objects)],
    }
    (tmp_path / "document.json").write_text(json.dumps(document))
    recordgen.convert(tmp_path / "document.json", tmp_path / "out", split="1", lint="-ALL")
    return tmp_path / "out"


@pytest.mark.parametrize(("name", "source"), [("coco", ""), ("parquet", ""), ("webdataset", "")])
def test_crowds_come_back(name, source, tmp_path):
    """A format with a word for crowds keeps them, and what it loses is counted."""
    old = crowd(tmp_path)
    lost = lost_objects(Output.open(old), ["train"], EXPORTS[name].keeps)
    assert lost == ({} if name == "coco" else {"outlines": 1})
    new = again(tmp_path, old, name, source)
    table = pq.read_table(new / "examples.parquet", columns=["annotation"])
    details = [json.loads(text).get("details", ()) for text in table["annotation"].to_pylist()]
    crowds = [
        at for item in details for at, it in enumerate(item) if "is_crowd" in it.get("flags", ())
    ]
    assert crowds == [1]


@pytest.mark.parametrize(("name", "source"), [("yolo", ""), ("automl", "import.csv")])
def test_crowds_are_left_out_only_on_request(name, source, tmp_path, caplog):
    """A format without a word for crowds refuses before the first byte; --lossy copies the rest."""
    old = crowd(tmp_path)
    lost = lost_objects(Output.open(old), ["train"], EXPORTS[name].keeps)
    assert (lost["crowd"], lost["area"], lost.get("outlines", 0)) == (1, 3, name == "automl")
    assert not lost_objects(Output.open(old), ["eval"], EXPORTS[name].keeps)
    before = tree_bytes(tmp_path)
    with pytest.raises(UsageError):
        export(name, old, tmp_path / "to")
    assert tree_bytes(tmp_path) == before
    assert main(["export", name, str(old), "--to", f"{tmp_path}/to", "--lossy"]) == 0
    recordgen.convert(f"{tmp_path}/to/{source}", tmp_path / "again", lint="-ALL")
    found = [
        label for _, objects in corners_of(tmp_path / "again").values() for label, _ in objects
    ]
    assert sorted(found) == ["cat", "dog"]


def test_the_table_of_what_copies_keep():
    """docs/exports.md says what each export declares."""
    text = (ROOT / "docs/exports.md").read_text()
    head, _, *rows = text.partition("| export | images")[2].partition("\n\n")[0].splitlines()
    assert head == f" | {' | '.join(PARTS[1:])} |"
    found = {}
    for row in rows:
        name, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        found[name.strip("`")] = [part for part, cell in zip(PARTS, cells, strict=True) if cell]
    copies = {name: export for name, export in EXPORTS.items() if "to" in export.takes}
    assert found == {name: [p for p in PARTS if p in it.keeps] for name, it in copies.items()}
