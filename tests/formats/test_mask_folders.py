# ruff: noqa: E501 - tables with a case on each line
"""Folders of images and masks: pairs, splits, names of classes, and what cannot be used."""

import numpy as np
import pytest
from PIL import Image

import recordgen
from recordgen.errors import SourceError
from tests.conftest import encoded
from tests.formats.boxes import masks_of
from tests.formats.sources import Reading, refusal, write_files
from tests.formats.test_pascal_voc import document

NUMBERS = np.array([[0, 1, 2], [2, 255, 1]], np.uint8)
RED, GREEN = (255, 0, 0), (0, 255, 0)


def palette(numbers=NUMBERS):
    image = Image.fromarray(numbers, "P")
    image.putpalette([0, 0, 0, *RED, *GREEN] + [7] * 759)
    return image


def write(folder, *names, mask=None):
    """Write files below ``in``: photos of 3×2 pixels, and masks where a name says so."""
    photo = encoded(Image.fromarray(np.zeros((2, 3, 3), np.uint8)), "JPEG")
    pixels = encoded(mask or palette(), "PNG")
    files = {name: pixels if name.endswith(".png") else photo for name in names}
    return write_files(folder / "in", files)


def outcome(root, **options):
    """Return the split, the mask and its pixels by image, and the result."""
    output = root.parent / "out"
    result = recordgen.convert(str(root), output, max_reject_fraction=1, **options)
    found = masks_of(output)
    return {uri: (*names, mask.tolist()) for uri, (*names, mask) in found.items()}, result


# files → image, mask, split
LAYOUTS = [
    (["images/a.jpg", "masks/a.png"], "images/a.jpg", "masks/a.png", None),
    (["train/images/a.jpg", "train/masks/a.png"], "train/images/a.jpg", "train/masks/a.png", "train"),
    (["images/val/a.jpg", "labels/val/a.png"], "images/val/a.jpg", "labels/val/a.png", "eval"),
    (["images/training/1.jpg", "annotations/training/1.png"], "images/training/1.jpg", "annotations/training/1.png", "train"),
    (["images/a.jpg", "masks/a_mask.png"], "images/a.jpg", "masks/a_mask.png", None),
    (["test/a.jpg", "test/a_mask.png"], "test/a.jpg", "test/a_mask.png", "test"),
    (["a.jpg", "masks/a.png"], "a.jpg", "masks/a.png", None),
    (["images/a.jpg", "annotations/trimaps/a.png"], "images/a.jpg", "annotations/trimaps/a.png", None),
    (["JPEGImages/A.JPG", "SegmentationClass/A.png"], "JPEGImages/A.JPG", "SegmentationClass/A.png", None),
]  # fmt: skip


@pytest.mark.parametrize(("files", "image", "mask", "split"), LAYOUTS)
def test_images_and_masks_are_paired_by_folder_and_name(tmp_path, files, image, mask, split):
    """Images and masks are paired by folder and name, which may leave train without any."""
    found, result = outcome(write(tmp_path, *files), split="names=yes")
    assert result.dataset.task == "image_segmentation"
    assert list(found) == [image]
    named, uri, pixels = found[image]
    assert (uri, pixels) == (mask, NUMBERS.tolist())
    assert split in (None, named)


TABLE = "Pixel Value, Class\n0, ground\n1, cat\n2, dog\n"

# file, its text → labels
NAMES = [
    ("classes.txt", "ground\ncat\ndog\n", ("ground", "cat", "dog")),
    ("labels.txt", "\ufeffground\r\ncat\r\ndog\r\n", ("ground", "cat", "dog")),
    ("train/_classes.csv", TABLE, ("ground", "cat", "dog")),
    ("other.txt", "ground\n", ("0", "1", "2")),
]


@pytest.mark.parametrize(("file", "text", "labels"), NAMES)
def test_names_beside_the_masks_keep_their_numbers(tmp_path, file, text, labels):
    """A file beside the masks names the classes, which keep their numbers."""
    root = write(tmp_path, "train/images/a.jpg", "train/masks/a.png")
    (root / file).write_text(text)
    found, result = outcome(root)
    assert result.dataset.labels == labels
    assert found["train/images/a.jpg"][2] == NUMBERS.tolist()


LABEL_MAP = "ground:0,0,0::\ncat:255,0,0::\ndog:0,255,0::\nnone:7,7,7::\n"

# file, its text
COLOURS = [
    ("class_dict.csv", "name,r,g,b\nground,0,0,0\ncat,255,0,0\ndog,0,255,0\nnone,7,7,7\n"),
    ("labelmap.txt", f"# label:color_rgb:parts:actions\n{LABEL_MAP}"),
    ("dataset_meta.json", '{"label_map": {"0": "ground", "1": "cat", "2": "dog", "3": "none"}, "segmentation_colors": [[0, 0, 0], [255, 0, 0], [0, 255, 0], [7, 7, 7]]}'),
    ("label_colors.txt", "0 0 0 ground\n255 0 0\tcat\n0 255 0 dog\n7 7 7 none\n"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text"), COLOURS)
def test_a_file_gives_the_colours_of_classes(tmp_path, file, text):
    """A file gives the colours of classes, in files of colours and of palettes."""
    root = write(tmp_path, "images/a.jpg", "masks/a.png", mask=palette().convert("RGB"))
    (root / file).write_text(text)
    found, result = outcome(root)
    assert result.dataset.labels == ("ground", "cat", "dog", "none")
    assert found["images/a.jpg"][2] == [[0, 1, 2], [2, 3, 1]]


# file, text
UNUSABLE_NAMES = [
    ("_classes.csv", "Pixel Value, Class\n1, cat\n"),
    ("_classes.csv", "Pixel Value, Class\ncat\n"),
    ("class_dict.csv", "name,r,g,b\ncat,255,0\n"),
    ("labelmap.txt", "cat:red::\n"),
    ("label_colors.txt", "255 0\n"),
    ("dataset_meta.json", '{"label_map": {"0": "cat"}, "segmentation_colors": [7]}'),
]


@pytest.mark.parametrize(("file", "text"), UNUSABLE_NAMES)
def test_names_that_cannot_be_used(tmp_path, file, text):
    """The run stops before anything is written, and names the file."""
    root = write(tmp_path, "images/a.jpg", "masks/a.png")
    (root / file).write_text(text)
    with pytest.raises(SourceError, match=file):
        Reading(root)


def test_pictures_of_numbers_or_colours_beside_masks_are_skipped(tmp_path):
    """They are no masks without an image."""
    names = [f"{at}/{n}.png" for n in "12" for at in ("GT/LABELS", "GT/COLOR")]
    found = Reading(write(tmp_path, "RGB/1.jpg", "RGB/2.jpg", *names))
    assert (len(found.rows), found.codes) == (2, [])


def test_an_image_may_lack_the_mask_that_others_have(tmp_path):
    """Gray pictures of most numbers of the others are their masks, too."""
    names = [f"land/{n}.jpg" for n in range(5)] + [f"cover/{n}.png" for n in (0, 1, 2, 4)]
    source = write(tmp_path, *names, mask=Image.fromarray(NUMBERS))
    assert len(Reading(source, **refusal(Reading, source).options).rows) == 4


@pytest.mark.parametrize("end", ["jpg", "png"])
def test_masks_beside_those_of_instances(end, tmp_path):
    """Neither instances nor colours make the masks of classes unsure; a mask is no image."""
    kinds = ("instance", "semantic", "semantic_rgb")
    names = [f"training/{kind}/{n}.png" for kind in kinds for n in "1234"]
    names += [f"{at}/image_2/{n}.{end}" for at in ("training", "testing") for n in "1234"]
    layout = "{split}/image_2/{name}.jpg {split}/semantic/{name}.png"
    found = refusal(Reading, write(tmp_path, *names)).options
    assert found == ({"layout": layout} if end == "jpg" else {})


def test_black_and_white(tmp_path):
    """Masks of 0 and 255 have two classes; otherwise 255 is none."""
    mask = Image.fromarray(np.array([[0, 255, 255], [0, 0, 255]], np.uint8))
    found, result = outcome(write(tmp_path, "images/a.jpg", "masks/a.png", mask=mask))
    assert result.dataset.labels == ("background", "object")
    assert result.dataset.rows.adjusted == {"masks_of_two_levels": 1}
    assert found["images/a.jpg"][2] == [[0, 1, 1], [0, 0, 1]]


def test_what_has_no_partner(tmp_path):
    """A mask without an image is rejected, as is one of two images; images alone are skipped."""
    root = write(
        tmp_path,
        *("images/a.jpg", "masks/a.png", "masks/b.png", "images/c.jpg"),
        *("images/d.jpg", "images/d.jpeg", "masks/d.png"),
    )
    found, result = outcome(root)
    assert list(found) == ["images/a.jpg"]
    codes = {reject.uri: reject.code for reject in result.rejects}
    assert codes == {"masks/b.png": "missing_file", "masks/d.png": "ambiguous_path"}
    assert "images/c.jpg" in (tmp_path / "out" / "lint.jsonl").read_text()


def voc(tmp_path):
    """A folder of the challenge: boxes of a and b, masks of a, b and d, lists of a and b."""
    root = write(
        tmp_path,
        *(f"JPEGImages/{name}.jpg" for name in "abcd"),
        *(f"SegmentationClass/{name}.png" for name in "abd"),
    )
    boxes = document("", ("dog", "1 1 3 2"), folder="VOC2012", size="3 2")
    lists = {"Segmentation/train": "a\n", "Segmentation/val": "b\n", "Main/val": "b\n"}
    lists |= {"Segmentation/trainval": "a\nb\n", "Main/train": "a\nc\n"}
    files = {f"ImageSets/{name}.txt": text for name, text in lists.items()}
    return write_files(root, files | {f"Annotations/{name}.xml": boxes for name in "abc"})


def test_voc(tmp_path):
    """Its lists of segmentation give images and splits; classes are those of the challenge."""
    found, result = outcome(voc(tmp_path), task="image_segmentation")
    splits = {uri: split for uri, (split, *_) in found.items()}
    assert splits == {"JPEGImages/a.jpg": "train", "JPEGImages/b.jpg": "eval"}
    labels = result.dataset.labels
    assert (len(labels), *labels[:2]) == (21, "background", "aeroplane")
    assert labels[20] == "tvmonitor"


def test_two_masks_of_one_image_stop(tmp_path):
    """Which of them is read would be a guess: the layouts of both are options."""
    refusal(Reading, write(tmp_path, "images/a.jpg", "trimaps/a.png", "annotations/trimaps/a.png"))
    names = "images/a.jpg", "manual/a.png", "mask/a_mask.png"
    eyes = write(tmp_path / "eyes", *names, mask=Image.fromarray(NUMBERS))
    assert len(Reading(eyes, **refusal(Reading, eyes).options).rows) == 1
    write(tmp_path / "more", "b.jpg", "b_mask.png", "c.jpg", "c_mask.png")
    assert not refusal(Reading, write(tmp_path / "more", "c_mask_1.png")).options


@pytest.mark.parametrize("other", ["test/images/a.png", "test/a.png", "train/depth/a.png"])
def test_gray_pictures_of_another_split_or_of_depths_are_no_masks(other, tmp_path):
    """A test set without masks, and depths, leave the pairs as they are."""
    names = "train/images/a.png", "train/masks/a.png", other
    assert len(Reading(write(tmp_path, *names, mask=Image.fromarray(NUMBERS))).rows) == 1


def test_a_word_of_all_masks_hides_no_missing_image(tmp_path):
    """A mask without an image is a reject although each path says ``edge``."""
    source = write(tmp_path, "edges/images/a.png", "edges/masks/a.png", "edges/masks/b.png")
    assert len(Reading(source).rejects) == 1


def test_only_numbers_of_files_that_differ_pair_gray_pictures(tmp_path):
    """Neither a number of a folder nor one that all files have; words beside numbers may differ."""
    numbers = Image.fromarray(NUMBERS)
    names = "s1/real/a.jpg", "s1/real/b.jpg", "s1/drawn/x.png", "s1/drawn/y.png"
    found = Reading(write(tmp_path / "folders", *names, mask=numbers))
    assert {row.annotation for row in found.rows} == {"real", "drawn"}
    names = "photo/cat_1.jpg", "photo/dog_2.jpg", "gray/cat_1.png", "gray/dog_2.png"
    assert refusal(Reading, write(tmp_path / "words", *names, mask=numbers)).options


@pytest.mark.parametrize("names", ["cxr/CXR_{}.png lungs/L_0{}.png", "CXR_{}.png lung{}.png"])
def test_gray_pictures_have_gray_masks(names, tmp_path):
    """Of kinds with the same numbers, the only one with few levels has the masks of the others."""
    image, mask = ([it.format(n) for n in range(1, 4)] for it in names.split())
    write(tmp_path, *mask, mask=Image.fromarray(NUMBERS))
    gray = np.random.default_rng(0).integers(0, 256, (48, 64)).astype(np.uint8)
    source = write(tmp_path, *image, mask=Image.fromarray(gray))
    assert "few gray levels" in refusal(Reading, source).reason


def test_gray_pictures_without_labels_are_pictures(tmp_path):
    """Nothing is a mask where nothing is learnt."""
    names = [
        f"{kind}_{n}.{end}" for n in range(3) for kind, end in (("img", "jpg"), ("lab", "png"))
    ]
    source = write(tmp_path, *names, mask=Image.fromarray(NUMBERS))
    assert len(Reading(source, labels="none").rows) == 6
    assert refusal(Reading, source).options == {"layout": "img{name}.jpg lab{name}.png"}


def test_a_folder_of_classes_is_none_of_masks(tmp_path):
    """Folders by label stay folders by label, whatever the labels are called."""
    found = Reading(write(tmp_path, "cat/a.jpg", "dog/b.jpg", "mask/c.png"))
    assert {row.annotation for row in found.rows} == {"cat", "dog", "mask"}


# lists beside images and masks, their lines, and the proposed source, or format; None: none
PAIR = "JPEGImages/a1b.jpg Annotations/a1b.png"
LISTS = [
    ("train_list.txt val_list.txt", PAIR, "/*.txt"),
    ("train.txt label_list.txt", PAIR, ""),
    ("train.txt val.txt", "./JPEGImages/a1b.jpg", ""),
    ("ImageSets/2017/val.txt", "JPEGImages", ""),
    ("notes.txt", "a1b", None),
    ("train_log.txt", "All JPEGImages were read", None),
    ("ImageSets/Segmentation/train.txt ImageSets/Main/train.txt", "a1b", None),
]


@pytest.mark.parametrize(("names", "line", "source"), LISTS)
def test_lists_of_splits_are_read_or_stop(tmp_path, names, line, source):
    """What benchmarks say about splits is not lost in silence, and lists of pairs are read."""
    root = write(tmp_path, "JPEGImages/a1b.jpg", "Annotations/a1b.png")
    write_files(root, dict.fromkeys(names.split(), line))
    options = {"format": "mask_folders"} if source == "" else {}
    if source is not None:
        refused = refusal(Reading, root)
        assert refused.options == options
        assert refused.source == (source and f"{root}{source}")
    [row] = Reading(f"{root}{source or ''}", **options).rows[-1:]
    assert row.annotation == '["Annotations/a1b.png"]'
