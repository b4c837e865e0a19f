"""Pascal VOC: boxes in pixels from 0 or 1, lists of splits, and documents that cannot be used."""

import re

import pytest

import recordgen
from recordgen import cli
from recordgen.errors import SourceError, UsageError
from tests.formats.boxes import boxes_of

pytestmark = pytest.mark.once


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


def write(folder, files):
    """Write text files below ``in``, and return that folder."""
    for name, text in files.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "in"


def test_the_challenge(tmp_path, make_pictures, capsys):
    """Pixels count from 1, ImageSets/Main has the splits, and parts of objects are no objects."""
    make_pictures(*(f"JPEGImages/{name}.jpg" for name in "abcd"))
    root = write(
        tmp_path,
        {
            "Annotations/a.xml": document("a.jpg", ("dog", "1 1 40 20"), folder="VOC2012"),
            "Annotations/b.xml": document("b.jpg", ("cat", "5 6 8.0 10"), folder="VOC2012"),
            "Annotations/c.xml": document("c.jpg", folder="VOC2012"),
            "Annotations/d.xml": document("d.jpg", folder="VOC2012"),
            "ImageSets/Main/train.txt": "a\nc\n",
            "ImageSets/Main/val.txt": "b\n",
            "ImageSets/Main/trainval.txt": "a\nb\nc\n",
            "ImageSets/Main/cat_train.txt": "a -1\n",
        },
    )
    assert cli.main(["convert", str(root), str(tmp_path / "out")]) == 0
    assert "pascal_voc" in capsys.readouterr().out
    assert boxes_of(tmp_path / "out") == {
        "JPEGImages/a.jpg": ("train", [("dog", 1, [0, 0, 1, 1])]),
        "JPEGImages/b.jpg": ("eval", [("cat", 0, [0.1, 0.25, 0.2, 0.5])]),
        "JPEGImages/c.jpg": ("train", []),
    }
    dataset = recordgen.read_dataset(str(tmp_path / "out"))
    assert dataset.rows.adjusted["voc_one_based"] == 2


def test_documents_beside_their_images(tmp_path, make_pictures):
    """Roboflow's folders are splits; pixels count from 0; a wrong filename does not matter."""
    make_pictures("train/a.jpg", "valid/b.jpg", "valid/c.jpg")
    root = write(
        tmp_path,
        {
            "train/a.xml": document("other.jpg", ("cat", "4 5 8 10")),
            "valid/b.xml": document("b", ("cat", "4 5 8 10"), size="0 0"),
        },
    )
    recordgen.convert(str(root), tmp_path / "out")
    boxes = [("cat", 0, [0.1, 0.25, 0.2, 0.5])]
    assert boxes_of(tmp_path / "out") == {
        "train/a.jpg": ("train", boxes),
        "valid/b.jpg": ("eval", boxes),
    }
    assert "valid/c.jpg" in (tmp_path / "out/lint.jsonl").read_text()


# the XML of an image, what the message names
BAD = [
    (document("a.jpg", ("", "4 5 8 10")), "<name>"),
    (document("a.jpg", ("cat", "4 5 8 ten")), "ten"),
    ("<annotation><object><name>cat</name></object></annotation>", "<bndbox>"),
    ("<annotation><object>", "a.xml"),
    ('<!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>', "DOCTYPE"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_bad_document_rejects_its_image(text, words, tmp_path, make_pictures):
    make_pictures("a.jpg", "b.jpg")
    root = write(tmp_path, {"a.xml": text, "b.xml": document("b.jpg", ("cat", "4 5 8 10"))})
    result = recordgen.convert(str(root), tmp_path / "out", max_reject_fraction=1)
    [reject] = result.rejects
    assert (reject.uri, reject.code) == ("a.jpg", "bad_annotation")
    assert words in reject.message
    assert list(boxes_of(tmp_path / "out")) == ["b.jpg"]


def test_an_image_in_two_lists_stops(tmp_path, make_pictures):
    """Its split would be a guess."""
    make_pictures("JPEGImages/a.jpg")
    root = write(
        tmp_path,
        {
            "Annotations/a.xml": document("a.jpg", ("cat", "4 5 8 10")),
            "ImageSets/Main/train.txt": "a\n",
            "ImageSets/Main/val.txt": "a\n",
        },
    )
    with pytest.raises(SourceError, match=r"val.*train"):
        recordgen.convert(str(root), tmp_path / "out")


def test_a_document_without_an_image(tmp_path, make_pictures):
    """It is a reject that names the document."""
    make_pictures("a.jpg")
    root = write(
        tmp_path,
        {"a.xml": document("a.jpg", ("cat", "4 5 8 10")), "z.xml": document("z.jpg")},
    )
    result = recordgen.convert(str(root), tmp_path / "out", max_reject_fraction=1)
    [reject] = result.rejects
    assert "z.xml" in reject.message


def test_lists_of_several_challenges(tmp_path, make_pictures):
    """VOCdevkit has a folder for each year, with lists of the same names."""
    files = {}
    for year in ("VOC2007", "VOC2012"):
        for name in ("a", "b"):
            make_pictures(f"{year}/JPEGImages/{year}{name}.jpg")
            files[f"{year}/Annotations/{year}{name}.xml"] = document("", ("cat", "4 5 8 10"))
        files[f"{year}/ImageSets/Main/train.txt"] = f"{year}a\n"
        files[f"{year}/ImageSets/Main/val.txt"] = f"{year}b.jpg\n"  # some write the suffix
    recordgen.convert(str(write(tmp_path, files)), tmp_path / "out")
    assert {uri: split for uri, (split, _) in boxes_of(tmp_path / "out").items()} == {
        "VOC2007/JPEGImages/VOC2007a.jpg": "train",
        "VOC2007/JPEGImages/VOC2007b.jpg": "eval",
        "VOC2012/JPEGImages/VOC2012a.jpg": "train",
        "VOC2012/JPEGImages/VOC2012b.jpg": "eval",
    }


def test_the_devkit_holds_boxes_and_masks(tmp_path, make_pictures, caplog):
    """The message of the command and that of Python name formats, each with lists of its own."""
    files = {"Main/train": "a\nb\n", "Main/val": "c\n"}
    files |= {"Segmentation/train": "c\n", "Segmentation/val": "b\n"}
    files = {f"VOC2012/ImageSets/{name}.txt": text for name, text in files.items()}
    for name in "abc":
        make_pictures(f"VOC2012/JPEGImages/{name}.jpg", f"VOC2012/SegmentationClass/{name}.png")
        files[f"VOC2012/Annotations/{name}.xml"] = document("", ("cat", "4 5 8 10"))
    root = str(write(tmp_path, files))
    with pytest.raises(UsageError) as error:
        recordgen.plan(root)
    assert cli.main(["convert", root, str(tmp_path / "out")]) == 2
    choices = re.findall(r"format='(\w+)' for (\w+)", str(error.value))
    assert choices == re.findall(r"--format (\w+) for (\w+)", caplog.text)
    plans = {task: recordgen.plan(root, format=name).splits for name, task in choices}
    assert {
        task: [split["rows"] for split in splits.values()] for task, splits in plans.items()
    } == {
        "object_detection": [2, 1],
        "image_segmentation": [1, 1],
    }


def test_an_image_beside_its_mask(tmp_path, make_pictures):
    """The suffix in <filename> decides between files of one stem."""
    make_pictures("a.bmp", "a.jpg")
    root = write(tmp_path, {"a.xml": document("a.jpg", ("cat", "4 5 8 10"))})
    recordgen.convert(str(root), tmp_path / "out")
    assert list(boxes_of(tmp_path / "out")) == ["a.jpg"]


def test_entities_in_another_encoding(tmp_path, make_pictures):
    """UTF-16 must not hide a DOCTYPE."""
    make_pictures("a.jpg", "b.jpg")
    root = write(tmp_path, {"b.xml": document("b.jpg", ("cat", "4 5 8 10"))})
    text = '<!DOCTYPE a [<!ENTITY owl "owl">]>' + document("a.jpg", ("&owl;", "4 5 8 10"))
    (root / "a.xml").write_bytes(text.encode("utf-16"))
    result = recordgen.convert(str(root), tmp_path / "out", max_reject_fraction=1)
    assert [item.uri for item in result.rejects] == ["a.jpg"]


def test_other_xml_beside_the_documents(tmp_path, make_pictures):
    """It neither hides the format nor costs an image."""
    make_pictures("z.jpg")
    files = dict.fromkeys(("a.xml", "b.xml", "c.xml"), "<settings/>")
    root = write(tmp_path, {**files, "z.xml": document("z.jpg", ("cat", "4 5 8 10"))})
    recordgen.convert(str(root), tmp_path / "out")
    assert list(boxes_of(tmp_path / "out")) == ["z.jpg"]
