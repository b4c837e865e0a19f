"""Pascal VOC: boxes in pixels from 0 or 1, lists of splits, and documents that cannot be used."""

import re

import recordgen
from recordgen import cli
from recordgen.errors import UsageError
from tests.conftest import error_of
from tests.formats.sources import write_files


def document(name, *objects, folder="x", size="40 20"):
    """Return the XML of an image; an object is a class and four corners."""
    items = []
    for label, corners in objects:
        sides = zip(("xmin", "ymin", "xmax", "ymax"), corners.split(), strict=True)
        box = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
        part = "<part><name>head</name><bndbox><xmin>0</xmin></bndbox></part>"
        items.append(f"<object><name>{label}</name>{part}<bndbox>{box}</bndbox></object>")
    width, height = size.split()
    return (
        f"<annotation><folder>{folder}</folder><filename>{name}</filename>"
        f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
        f"{''.join(items)}</annotation>"
    )


BOX = [("cat", [0.1, 0.25, 0.2, 0.5])]
CAT = document("", ("cat", "4 5 8 10"))


def test_the_challenge(outcome):
    """Pixels count from 1, ImageSets/Main has the splits, and parts of objects are no objects."""
    files = {
        "Annotations/a.xml": document("a.jpg", ("dog", "1 1 40 20"), folder="VOC2012"),
        "Annotations/b.xml": document("b.jpg", ("cat", "5 6 8.0 10"), folder="VOC2012"),
        "Annotations/c.xml": document("c.jpg", folder="VOC2012"),
        "Annotations/d.xml": document("d.jpg", folder="VOC2012"),
        "ImageSets/Main/train.txt": "a\nc\n",
        "ImageSets/Main/val.txt": "b\n",
        "ImageSets/Main/trainval.txt": "a\nb\nc\n",
        "ImageSets/Main/cat_train.txt": "a -1\n",
    }
    images = [f"JPEGImages/{name}.jpg" for name in "abcd"]
    found = outcome(files, *images)
    assert found.options.format == "pascal_voc"
    assert found.images == {images[0]: [("dog", [0, 0, 1, 1])], images[1]: BOX, images[2]: []}
    assert [found.splits[name] for name in images[:3]] == ["train", "eval", "train"]
    assert found.adjusted["voc_one_based"] == 2


def test_a_document_without_an_image(outcome):
    """It is a reject that names the document."""
    [reject] = outcome({"a.xml": CAT, "z.xml": document("z.jpg")}, "a.jpg").rejects
    assert "z.xml" in reject.message


def test_a_document_of_two_images(outcome):
    """A name in two folders is ambiguous, and not missing."""
    images = [f"{at}/train/a.jpg" for at in ("visible", "infrared")]
    assert outcome({"Annotations/a.xml": document("a.jpg")}, *images).codes == ["ambiguous_path"]


def test_lists_of_several_challenges(outcome):
    """VOCdevkit has a folder for each year, with lists of the same names."""
    files, splits = {}, {}
    for year in ("VOC2007", "VOC2012"):
        for name, split in (("a", "train"), ("b", "eval")):
            files[f"{year}/Annotations/{year}{name}.xml"] = CAT
            splits[f"{year}/JPEGImages/{year}{name}.jpg"] = split
        files[f"{year}/ImageSets/Main/train.txt"] = f"{year}a\n"
        files[f"{year}/ImageSets/Main/val.txt"] = f"{year}b.jpg\n"  # some write the suffix
    assert outcome(files, *splits).splits == splits


def test_an_image_beside_its_mask(outcome):
    """The suffix in <filename> decides between files of one stem."""
    files = {"a.xml": document("a.jpg", ("cat", "4 5 8 10"))}
    assert [*outcome(files, "a.bmp", "a.jpg").images] == ["a.jpg"]


def test_the_devkit_holds_boxes_and_masks(tmp_path, make_pictures, caplog):
    """The message of the command and that of Python name formats, each with lists of its own."""
    files = {"Main/train": "a\nb\n", "Main/val": "c\n"}
    files |= {"Segmentation/train": "c\n", "Segmentation/val": "b\n"}
    files = {f"VOC2012/ImageSets/{name}.txt": text for name, text in files.items()}
    for name in "abc":
        make_pictures(f"VOC2012/JPEGImages/{name}.jpg", f"VOC2012/SegmentationClass/{name}.png")
        files[f"VOC2012/Annotations/{name}.xml"] = document("", ("cat", "4 5 8 10"))
    root = str(write_files(tmp_path / "in", files))
    error = error_of(UsageError, recordgen.plan, root)
    assert cli.main(["convert", root, str(tmp_path / "out")]) == 2
    choices = re.findall(r"format='(\w+)' for (\w+)", str(error))
    assert choices == re.findall(r"--format (\w+) for (\w+)", caplog.text)
    plans = {task: recordgen.plan(root, format=name).splits for name, task in choices}
    assert {
        task: [split["rows"] for split in splits.values()] for task, splits in plans.items()
    } == {"object_detection": [2, 1], "image_segmentation": [1, 1]}
