"""Each export and each part of a dataset: a copy that keeps the part gives it back, by content."""

import csv
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pycocotools.coco import COCO

import recordgen
from recordgen import features
from recordgen.cli import main
from recordgen.core.dataset.manifest import COPY_FILE
from recordgen.errors import SourceError, UsageError
from recordgen.exports import Output
from recordgen.exports.copying import PARTS, lost_objects
from recordgen.registry import EXPORTS
from tests.conftest import ROOT, convert_lines, encoded, noise, stored_examples, write_noise
from tests.exports.copies import COPIES, LABELS, boxes, converted, export, labelled, pictures
from tests.formats import test_coco as documents
from tests.formats.sources import refusal, write_files

#: Half of the last decimal of COCO's pixels, and the error of shares as float32.
PIXELS = 1e-4

#: The beginnings of the features that hold a part.
FEATURES = {
    "images": ("image/encoded", "image/format"),
    "labels": ("image/class/text", "image/object/class/text"),
    "several labels": ("image/class/",),
    "numbers": ("image/class/label", "image/object/class/label"),
    "boxes": ("image/object/bbox/",),
    "crowd": features.OBJECT_FLAGS[:1],
    "difficult": features.OBJECT_FLAGS[1:2],
    "truncated": features.OBJECT_FLAGS[2:],
    "area": (features.IMAGE_OBJECT_AREA,),
    "keypoints": ("image/object/keypoint/",),
    "outlines": ("image/object/polygon/", "image/object/mask/"),
    "masks": ("image/segmentation/class/",),
    "texts": ("text", "class/"),
    "sentiments": ("text", "class/"),
    "entities": ("entity/", "tags/", "tokens"),
    "videos": ("video/",),
    "tables": ("",),
    "declared columns": ("",),
}

#: The sample, or the dataset of :func:`datasets`, that has a part.
HAS = {
    **dict.fromkeys(("images", "labels", "numbers", "splits"), "classes"),
    **{"several labels": "image_multi_label", "masks": "image_segmentation", "boxes": "area"},
    **{"texts": "text_classification", "sentiments": "text_sentiment"},
    **{"entities": "text_entities", "videos": "video_classification", "tables": "tabular"},
    **{"declared columns": "declared", "truncated": "difficult"},
}


def objects(folder, **known):
    """Convert a COCO document of four images, each with a zebra and an ant; no cat is there."""
    points = {"keypoints": ["nose", "tail"]} if "keypoints" in known else {}
    names = ("zebra", "cat", "ant")
    categories = [{"id": at, "name": it, **points} for at, it in enumerate(names)]
    for word, numbers in (("train", (0, 1)), ("val", (2,)), ("test", (3,))):
        images = [documents.image(at, f"{at}.png", height=30) for at in numbers]
        found = [
            documents.box(at, 2 * place, 2 + 10 * place, 3, 10, 12, id=2 * at + place, iscrowd=0)
            | {key: each[place] for key, each in known.items()}
            for at in numbers
            for place in (0, 1)
        ]
        document = documents.coco(*images, boxes=found, categories=categories)
        pixels = {f"{word}/{at}.png": encoded(noise(40, 30, seed=at), "PNG") for at in numbers}
        write_files(folder, {f"annotations/instances_{word}.json": document, **pixels})
    recordgen.convert(folder, folder / "out", lint="-ALL")
    return folder / "out"


TRIANGLE = [2, 3, 12, 3, 12, 15]
RUNS = {"size": [30, 40], "counts": [363, 12, 825]}
OBJECTS = {
    "crowd": {"iscrowd": [0, 1]},
    "area": {"area": [77, 99.5]},
    "keypoints": {"keypoints": [[5, 6, 2, 0, 0, 0], [14, 9, 1, 15, 10, 2]]},
    "outlines": {"segmentation": [[TRIANGLE], [[12, 3, 22, 3, 22, 15, 12, 15]]]},
    "pixels": {"segmentation": [[TRIANGLE], RUNS]},
}


def difficult(folder):
    """Convert a line of Hugging Face's metadata, with a difficult and a truncated object."""
    flags = {"difficult": [1, 0], "truncated": [0, 1], "occluded": [1, 1]}
    known = {"bbox": [[2, 3, 10, 12], [12, 3, 10, 12]], "category": ["zebra", "ant"], **flags}
    metadata = json.dumps({"file_name": "0.png", "objects": known})
    picture = encoded(noise(40, 30), "PNG")
    write_files(folder, {"0.png": picture, "metadata.jsonl": metadata})
    recordgen.convert(folder, folder / "out", lint="-ALL", split="1")
    return folder / "out"


def classes(folder):
    """Convert pictures whose labels have numbers of their own, and none of which is a bird."""
    folder.mkdir()
    (folder / "order.txt").write_text("yes\nbird\ndog\ncat\n")
    return labelled(folder, vocabulary=str(folder / "order.txt"))


def columns(folder):
    """Convert pictures with a label and other columns; one row has nothing else."""
    folder.mkdir()
    schema = {"photo": "image", "age": "int", "note": "text", "at": "floats", "breed": "label"}
    write_noise(folder, range(4))
    values = ('3,"a, b",1 2,cat', ",,,", "-1,c,,yes", "0,,0.5,dog")
    lines = [",".join(schema), *(f"{number}.png,{rest}" for number, rest in enumerate(values))]
    return convert_lines(folder, lines, schema=schema, lint="-ALL", split="1")


def converted_again(out, through, folder, **options):
    """Export a dataset into a folder, convert the copy, and return the output.

    Without an export, with ``itself``, the dataset is converted again.
    """
    source = out
    if through != "itself":
        export(through, out, folder / "to")
        source = folder / ("to/import.csv" if through == "automl" else "to")
    recordgen.convert(source, folder / "again", lint="-ALL", **options)
    return folder / "again"


@pytest.fixture(scope="module")
def datasets(sample, tmp_path_factory):
    """Return a function that converts a dataset once, and one that copies it and converts it."""
    root = tmp_path_factory.mktemp("datasets")

    @cache
    def dataset(name):
        if name in OBJECTS:
            return objects(root / name, **OBJECTS[name])
        own = {"difficult": difficult, "classes": classes, "columns": columns}.get(name)
        return sample(name) if own is None else own(root / name)

    @cache
    def again(export_name, name):
        return converted_again(dataset(name), export_name, root / f"{name}-{export_name}")

    return dataset, again


def facts_of(out, part):
    """Return the values of a part by payload and place; of splits, their names.

    The name of a file is no fact; a video is what its address leads to.
    """
    found, folder = {}, recordgen.read_dataset(str(out)).folder
    for split, values in stored_examples(out):
        for uri in values.get("video/uri", []):
            values["video/uri"] = [os.path.normpath(os.path.join(folder, uri.decode()))]
        values = {name: each for name, each in values.items() if not name.endswith("source_id")}
        known = [values[name][0] for name in ("image/encoded", "text") if name in values]
        key = known or [repr(sorted(values.items()))]
        if part == "splits":
            found[key[0]] = split
        for name, each in values.items():
            if part != "splits" and name.startswith(FEATURES[part]):
                found |= {(key[0], name, at): value for at, value in enumerate(each)}
    return found


def dataset_of(name, part):
    """Return the dataset for a part that an export can hold, if there is one."""
    found = HAS.get(part, part)
    is_of_objects = found == "classes" and "image_classification" not in EXPORTS[name].tasks
    return "area" if EXPORTS[name].tasks and is_of_objects else found


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", COPIES)
def test_what_a_copy_keeps_comes_back(name, part, datasets):
    """A part that the export declares is the same in the copy, converted again.

    Any other part is counted before the first byte, or the export refuses the dataset.
    """
    dataset, again = datasets
    chosen = dataset_of(name, part)
    old = dataset(chosen)
    expected = facts_of(old, part)
    assert expected
    if part in EXPORTS[name].keeps:
        new = again(name, chosen)
        assert facts_of(new, part) == pytest.approx(expected, abs=PIXELS)
        before, after = (recordgen.read_dataset(str(it)) for it in (old, new))
        assert before.labels == after.labels
        assert before.keypoints == after.keypoints or "keypoints" not in EXPORTS[name].keeps
    elif not lost_objects(Output.open(old), ["train"], EXPORTS[name].keeps).get(part):
        with pytest.raises(UsageError):
            again(name, chosen)


SAMPLES = [
    *("image_classification", "image_multi_label", "area", "keypoints", "pixels"),
    *("text_classification", "text_multi_label", "text_sentiment", "text_entities", "tabular"),
    *("image_segmentation", "declared", "columns", "video_classification"),
]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("through", ["itself", "parquet", "webdataset"])
def test_every_task_comes_back(through, name, datasets, tmp_path):
    """From an output, and from the copies that hold all tasks: rows, numbers, splits, keypoints."""
    dataset, again = datasets
    old = dataset(name)
    if through == "itself":
        new = converted_again(old, through, tmp_path, compression="gzip")
    else:
        new = again(through, name)
    assert main(["diff", str(old), str(new), "--by", "content"]) == 0
    before, after = (recordgen.read_dataset(str(it)) for it in (old, new))
    assert (before.task, before.labels) == (after.task, after.labels)
    assert (before.features, before.keypoints) == (after.features, after.keypoints)
    assert facts_of(new, "tables") == pytest.approx(facts_of(old, "tables"), abs=PIXELS)


def test_classes_of_a_single_file_have_names(datasets, tmp_path):
    """The schema of Parquet names them; a number that none of them has costs its row."""
    again = datasets[1]("parquet", "text_classification")
    path = again.with_name("to") / "data/train-00000-of-00001.parquet"
    table = pq.read_table(path)
    numbers = pa.array([7, *table["label"].to_pylist()[1:]])
    pq.write_table(table.set_column(2, "label", numbers), tmp_path / "a.parquet")
    found = recordgen.convert(tmp_path / "a.parquet", tmp_path / "out", max_reject_fraction=0.1)
    assert found.dataset.labels == recordgen.read_dataset(str(again)).labels
    assert dict(found.dataset.rows.rejected) == {"bad_line": 1}
    for task in ("text_classification", "image_classification"):
        files = datasets[1]("parquet", task).with_name("to").glob("data/*")
        frame = pd.concat(map(pd.read_parquet, files))
        of_frame = recordgen.convert(frame, tmp_path / task, lint="-ALL").dataset
        assert of_frame.labels == recordgen.read_dataset(str(datasets[0](task))).labels


def test_long_names_of_many_classes_come_back(tmp_path):
    """A labels.txt of more than 64 KiB names the numbers of a tar, too."""
    names = [f"a long name of class {number:05}" for number in range(4_000)]
    (tmp_path / "names.txt").write_text("".join(f"{name}\n" for name in names))
    lines = [f"TRAIN,text {number} of a row,{names[number * 900]}" for number in range(4)]
    out = convert_lines(tmp_path, lines, vocabulary=str(tmp_path / "names.txt"), lint="-ALL")
    assert recordgen.diff(out, converted_again(out, "webdataset", tmp_path)).is_same


ODD_LABELS = [["images", "labels"], ["only"], ["masks", "images"]]


@pytest.mark.parametrize("name", ["folder", "parquet", "webdataset", "automl", "itself"])
@pytest.mark.parametrize("labels", ODD_LABELS, ids=str)
def test_a_single_split_and_odd_names_of_classes_come_back(labels, name, tmp_path):
    """A copy says what its folders and files are: neither number nor names of them are doubted."""
    write_noise(tmp_path, range(6))
    lines = [f"TRAIN,{number}.png,{labels[number % len(labels)]}" for number in range(6)]
    out = converted(tmp_path, lines, task="image_classification")
    assert recordgen.diff(out, converted_again(out, name, tmp_path), by="content").is_same


@pytest.mark.parametrize("name", ["folder", "parquet", "webdataset"])
def test_a_copy_without_train_proposes_its_split(name, tmp_path):
    """The names of its files are Recordgen's, and meant."""
    write_noise(tmp_path, range(4))
    lines = [f"VALIDATE,{number}.png,{'ab'[number % 2]}" for number in range(4)]
    out = converted(tmp_path, lines, task="image_classification")
    options = refusal(converted_again, out, name, tmp_path).options
    again = converted_again(out, name, tmp_path, **options)
    assert recordgen.diff(out, again, by="content").is_same


@pytest.mark.parametrize("name", ["parquet", "webdataset", "automl", "coco", "yolo", "itself"])
def test_rounded_boxes_are_the_same(name, tmp_path):
    """Shares that become pixels, and centers, are no change of a copy; another box is one."""
    lines = []
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(encoded(noise(97 + number, 31), "PNG"))
        lines.append(f"TRAIN,{number}.png,cat,{number / 7},{1 / 3},,,{0.7 + number / 17},0.9,,")
    out = converted(tmp_path, lines, task="object_detection")
    assert recordgen.diff(out, converted_again(out, name, tmp_path), by="content").is_same
    lines[0] = lines[0].replace(",0.9,", ",0.9001,")
    new = convert_lines(tmp_path, lines, "new", lint="-ALL")
    assert recordgen.diff(out, new, by="content").kinds["annotation"] == 1


@pytest.mark.parametrize("name", ["parquet", "webdataset", "coco", "itself"])
def test_rounded_outlines_are_the_same(name, tmp_path):
    """Points that a copy rounds are no change; a point that moved is one."""
    outline = [2.123456789, 3.987654321, 12.1, 3.3, 12.7, 15.123456789]
    known = {"segmentation": [[outline], RUNS]}
    out = objects(tmp_path / "old", **known)
    assert recordgen.diff(out, converted_again(out, name, tmp_path), by="content").is_same
    outline[2] += 0.01
    new = objects(tmp_path / "new", **known)
    assert recordgen.diff(out, new, by="content").kinds["annotation"] == 4


@pytest.mark.parametrize("name", ["parquet", "webdataset", "itself"])
def test_targets_are_compared_as_stored(name, tmp_path):
    """A number that a copy writes with the digits of float32 is no change; another one is."""
    lines = ["age,price", *(f"{number},{number / 7 + 37.4:.3f}" for number in range(30))]
    out = convert_lines(tmp_path, lines, lint="-ALL", task="tabular", columns="target=price")
    assert recordgen.diff(out, converted_again(out, name, tmp_path), by="content").is_same
    lines[1] = "0,37.40001"
    new = convert_lines(tmp_path, lines, "new", lint="-ALL", task="tabular", columns="target=price")
    assert recordgen.diff(out, new).kinds["label"] == 1


#: Values of columns by the kind of a column.
VALUES = {
    "int": st.integers(-(2**63), 2**63 - 1) | st.just(""),
    "float": st.floats(-1e6, 1e6, width=32).map(lambda it: it + 0.0) | st.just(""),
    "text": st.text(st.characters(blacklist_categories=["C", "Z"]), min_size=1, max_size=8),
}


@st.composite
def tables(draw):
    """Draw the kinds of columns, whose names other formats know, and rows of their values."""
    known = ["source_id", "label", "category", "entities", "ner_tags", "text", "a/b", "class/text"]
    names = draw(st.lists(st.sampled_from(known), min_size=2, max_size=5, unique=True))
    kinds = {name: draw(st.sampled_from([*VALUES])) for name in names}
    rows = st.tuples(*(VALUES[kind] for kind in kinds.values()))
    return kinds, draw(st.lists(rows.filter(any), min_size=1, max_size=6))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.sampled_from(["itself", "parquet", "webdataset"]), st.booleans())
def test_random_tables_come_back(table, through, is_declared):
    """Whatever columns are called: their values, types and gaps, from each way to keep all."""
    kinds, rows = table
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with open(place / "a.csv", "w", newline="") as file:
            csv.writer(file).writerows([["split", *kinds], *(["TRAIN", *row] for row in rows)])
        options = {"schema": {"split": "split", **kinds}} if is_declared else {"task": "tabular"}
        recordgen.convert(place / "a.csv", place / "out", lint="-ALL", labels="none", **options)
        again = converted_again(place / "out", through, place, labels="none")
        assert recordgen.diff(place / "out", again, by="content").is_same
        known = [recordgen.read_dataset(str(place / name)).features for name in ("out", "again")]
        assert known[0] == known[1]


CHANGED = [
    *({"labels": 5}, {"labels": [5]}, {"keypoints": 5}, {"keypoints": {"names": ["x"]}}),
    *({"options": 5}, {"options": {"seed": "1"}}, {"options": {"schema": "/x.pbtxt"}}),
    *({"options": {"table": "[]"}}, {"options": {"layout": "{"}}, {"options": {"layout": 5}}),
    {"finished": False},
]


@pytest.mark.parametrize("changed", CHANGED)
def test_a_copy_whose_description_is_damaged_is_an_error(changed, datasets, tmp_path):
    """It names the file that says what the copy is, or that it was interrupted."""
    copied = datasets[1]("folder", "classes").with_name("to")
    copy = shutil.copytree(copied, tmp_path / "copy")
    mark = copy / COPY_FILE
    mark.write_text(json.dumps({**json.loads(mark.read_text()), **changed}))
    with pytest.raises(SourceError, match=COPY_FILE):
        recordgen.convert(copy, tmp_path / "out")


def test_coco_as_its_own_library_reads_it(tmp_path):
    """Ids begin at 1, boxes that were whole pixels are whole pixels, and areas are theirs."""
    export("coco", boxes(tmp_path), tmp_path / "to")
    seen = 0
    for word in ("train", "val", "test"):
        coco = COCO(tmp_path / f"to/annotations/instances_{word}.json")
        assert [coco.cats[at]["name"] for at in (1, 2, 3)] == list(LABELS)
        for image in coco.loadImgs(coco.getImgIds()):
            assert (tmp_path / "to" / word / image["file_name"]).is_file()
            for each in coco.loadAnns(coco.getAnnIds(image["id"])):
                x, y, width, height = each["bbox"]
                assert (x, y) == (round(x), round(y))
                assert each["area"] == pytest.approx(width * height, abs=1e-3)
                seen += 1
    assert seen > 20


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
    assert all(recordgen.storage.is_file(row[1]) for row in rows)
    assert rows[0][1].startswith("memory://automl/to/images/")
    source = {tuple(row[2:]) for row in csv.reader((folder / "digits.csv").read_text().split())}
    assert {tuple(row[2:]) for row in rows} == source


@pytest.mark.parametrize("name", ["", "parquet", "webdataset"])
def test_an_image_without_a_mask_stays_one(name, tmp_path):
    """Only in documents of boxes an image without any of them shows nothing but background."""
    write_noise(tmp_path, ["a.jpg", "b.jpg"])
    (tmp_path / "a.png").write_bytes(encoded(Image.new("L", (16, 12), 1)))
    out = convert_lines(tmp_path, ["TRAIN,a.jpg,a.png", "VALIDATE,b.jpg,"])
    if name:
        export(name, out, tmp_path / "to")
    found = recordgen.convert(tmp_path / ("to" if name else "out"), tmp_path / "back").dataset
    assert (found.labels, found.splits["eval"].unlabelled) == (("0", "1"), 1)


def test_documents_are_json(tmp_path):
    """A split without boxes has an empty list of annotations, and is read again."""
    lines = pictures(tmp_path, "{split}/{name}", lambda number, size: [""] * 9)
    box = "cat,0.1,0.1,,,0.5,0.5,,"
    lines[0] = f"{','.join(lines[0].split(',')[:2])},{box}"
    export("coco", converted(tmp_path, lines, task="object_detection"), tmp_path / "to")
    paths = (tmp_path / "to/annotations").iterdir()
    documents = {path.stem: json.loads(path.read_text()) for path in paths}
    counts = [len(documents[f"instances_{word}"]["annotations"]) for word in ("train", "val")]
    assert counts == [1, 0]
    assert len(documents["instances_val"]["images"]) == 3
    splits = recordgen.convert(tmp_path / "to", tmp_path / "back").dataset.splits
    assert {name: split.examples for name, split in splits.items()}["eval"] == 3


@pytest.mark.parametrize(("name", "source"), [("yolo", ""), ("automl", "import.csv")])
def test_a_crowd_never_becomes_an_object(name, source, datasets, tmp_path, caplog):
    """A format without a word for crowds leaves them out, and the command warns of them."""
    old = datasets[0]("crowd")
    assert lost_objects(Output.open(old), ["eval"], EXPORTS[name].keeps) == {"crowd": 1}
    assert main(["export", name, str(old), "--to", f"{tmp_path}/to"]) == 0
    assert "crowd (4 objects)" in caplog.text
    recordgen.convert(f"{tmp_path}/to/{source}", tmp_path / "again", lint="-ALL")
    assert {*facts_of(tmp_path / "again", "labels").values()} == {b"zebra"}
    assert len(facts_of(tmp_path / "again", "labels")) == 4
    assert recordgen.read_dataset(str(tmp_path / "again")).labels == ("zebra", "cat", "ant")


def test_the_table_of_what_copies_keep():
    """docs/exports.md says what each export declares."""
    text = (ROOT / "docs/exports.md").read_text()
    _, *rows = text.partition("| copy | keeps |\n")[2].partition("\n\n")[0].splitlines()
    found = {}
    for row in rows:
        copies, keeps = (cell.split(", ") for cell in row.strip("| ").split(" | "))
        found |= {copy.strip("`"): {*keeps} for copy in copies}
    kept = {name: {*export.keeps} for name, export in EXPORTS.items() if "to" in export.takes}
    assert found == kept
