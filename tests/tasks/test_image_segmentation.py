"""Masks: what rows say, what records hold, and that masks move with their images."""

import io

import numpy as np
import pytest
from PIL import Image

from recordgen import cli, convert, load, source
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.rows.row import Adjustments
from recordgen.errors import PayloadError, TooManyRejectsError, UsageError
from recordgen.exports.report.records import record_view
from recordgen.payloads import check
from recordgen.payloads.check import check_image
from recordgen.payloads.reencoding import CheckedImage
from recordgen.subjects.masks import seen_through
from recordgen.tasks.image_segmentation.stored_masks import gray_levels, mask_of
from recordgen.tasks.image_segmentation.task import ImageSegmentation
from tests.conftest import encoded, error_of, exif_of, stored_examples
from tests.payloads.test_pictures import png
from tests.payloads.test_png import header
from tests.payloads.test_png import png as png_of
from tests.settings import payload_settings

MASK = "image/segmentation/class/encoded"
RED, GREEN, OTHER = (255, 0, 0), (0, 128, 0), (1, 2, 3)
VERTEX = {
    "categoryMaskGcsUri": "m.png",
    "annotationSpecColors": [
        {"color": {"red": 1.0}, "displayName": "cat"},
        {"color": {"green": 128 / 255, "blue": 0}, "displayName": "dog"},
    ],
}


def test_masks_are_looked_at_within_the_limits_of_images():
    """A mask that announces too many pixels is refused before it is decoded."""
    data = png_of(header(20_000, 20_000))
    assert error_of(PayloadError, gray_levels, data).code == "too_many_pixels"


def palette(numbers, colours=((0, 0, 0), RED, GREEN)):
    image = Image.fromarray(np.array(numbers, np.uint8), "P")
    levels = [level for colour in colours for level in colour]
    image.putpalette(levels + [0] * (768 - len(levels)))
    return image


def gray(numbers):
    return Image.fromarray(np.array(numbers, np.uint8))


def stored(data, colours=None, *, size=(2, 3), orientation="stored", way=1, **options):
    """Return the class numbers of a mask as it is stored with a photo of a size (height, width)."""
    photo = Image.fromarray(np.zeros((*size, 3), np.uint8))
    settings = payload_settings(**options)
    image = check_image(encoded(photo, "JPEG", exif=exif_of(way)), settings)
    found = mask_of(data, colours or {}, image, orientation, settings)
    kept = Image.open(io.BytesIO(found.data))
    assert (kept.format, kept.mode) == ("PNG", "L")
    assert kept.size == (image.width, image.height)
    levels = np.asarray(kept)
    assert found.numbers == tuple(sorted({*levels.ravel().tolist()} - {255}))
    return levels.tolist()


NAMELESS = {"annotationSpecDisplayName": "none", "color": {}}
NAMED = '["m.png", {"#000000": "background", "#008000": "dog", "#ff0000": "cat"}]'
MANAGED = {"maskGcsUri": "m.png", "annotationSpecColors": [NAMELESS]}

# fields after the path or a line of JSON → annotation
ROWS = [
    ([], None),
    ([""], None),
    (["m.png"], '["m.png"]'),
    (["./a//m.png"], '["a/m.png"]'),
    ({}, None),
    ({"segmentationAnnotation": VERTEX}, NAMED),
    ({"maskAnnotation": MANAGED}, '["m.png", {"#000000": "none"}]'),
]


@pytest.mark.parametrize(("given", "annotation"), ROWS)
def test_rows(given, annotation):
    """A row names a mask, and Vertex AI's lines the classes of its colours."""
    task, adjusted = ImageSegmentation(), Adjustments()
    if isinstance(given, list):
        assert task.from_fields(given, adjusted) == annotation
        return
    [row] = task.from_record({"imageGcsUri": "i.jpg", **given}, adjusted)
    assert row == ("i.jpg", annotation)


NUMBERS = [[0, 1, 2], [2, 255, 0]]


# a mask file in every form in which its numbers are exact, the numbers of its colours
BITS = np.array([[0, 1, 1], [1, 0, 1]], np.uint8)
COLOURED = np.array([[(0, 0, 0), RED, GREEN], [GREEN, RED, RED]], np.uint8)
FORMS = {
    "palette": (encoded(palette(NUMBERS)), NUMBERS),
    "palette with a transparent colour": (encoded(palette(NUMBERS), transparency=0), NUMBERS),
    "gray": (encoded(gray(NUMBERS)), NUMBERS),
    "gray RGB": (encoded(gray(NUMBERS).convert("RGB")), NUMBERS),
    "gray, opaque": (encoded(gray(NUMBERS).convert("RGBA")), NUMBERS),
    "16 bit": (encoded(Image.fromarray(np.array(NUMBERS, np.uint16))), NUMBERS),
    "bmp": (encoded(gray(NUMBERS), "BMP"), NUMBERS),
    "tiff": (encoded(gray(NUMBERS), "TIFF"), NUMBERS),
    # The samples are class numbers, not the levels that decoders show.
    **{f"{bits} bit": (png(BITS, bits), BITS.tolist()) for bits in (1, 2, 4)},
    # The classes of colours that a row names; black is its own.
    "colours": (encoded(Image.fromarray(COLOURED)), [[1, 0, 2], [2, 0, 0]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    """Pixels are indexes of a palette, levels of gray, or the classes of colours."""
    data, numbers = FORMS[form]
    colours = {"#000000": 1, "#008000": 2, "#ff0000": 0} if form == "colours" else None
    assert stored(data, colours) == numbers


def test_a_gray_file_keeps_its_bytes():
    """A mask in the stored form is passed through."""
    settings = payload_settings(encode="jpeg:50")
    image = check_image(encoded(gray(NUMBERS), "BMP"), settings)
    data = encoded(gray(NUMBERS), compress_level=1)
    assert image.format == "jpeg"
    assert mask_of(data, {}, image, "stored", settings).data == data


def of_colour(colour):
    return Image.fromarray(np.array([[colour] * 3] * 2, np.uint8))


LARGE = np.full((2, 3), 256, np.uint16)
BAD = {
    "JPEG": (encoded(gray(NUMBERS), "JPEG"), {}, "bad_annotation"),
    "GIF, which renumbers": (encoded(palette(NUMBERS), "GIF"), {}, "bad_annotation"),
    "not an image": (b"a mask", {}, "not_an_image"),
    "cut": (encoded(gray(NUMBERS))[:50], {}, "truncated"),
    "colours": (encoded(of_colour(RED)), {}, "bad_annotation"),
    "other colour": (encoded(of_colour(OTHER)), {"#000000": 0}, "bad_annotation"),
    "large number": (encoded(Image.fromarray(LARGE)), {}, "bad_annotation"),
    # Nothing is decoded: both files end in their headers.
    "other proportions": (encoded(gray([[0, 1]] * 9))[:60], {}, "bad_annotation"),
    "the proportions, but another size": (encoded(gray([[0] * 6] * 4))[:60], {}, "bad_annotation"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_unusable_mask_is_refused(case):
    """The code says why."""
    data, colours, code = BAD[case]
    assert error_of(PayloadError, stored, data, colours).code == code


def corners(height, width):
    """Return a mask and a photo of the same size: its quarters have the classes 1 to 4."""
    mask = np.zeros((height, width), np.uint8)
    for number, rows in enumerate(np.array_split(np.arange(height), 2)):
        for other, columns in enumerate(np.array_split(np.arange(width), 2)):
            mask[np.ix_(rows, columns)] = 1 + 2 * number + other
    return mask


@pytest.mark.parametrize("way", range(1, 9))
@pytest.mark.parametrize("resize", [None, "stretch", "fit", "center_crop"])
@pytest.mark.parametrize("drawn_on", ["stored", "upright"])
def test_masks_turn_with_their_image(way, resize, drawn_on):
    """The stored mask shows the classes where the stored photo shows their levels."""
    upright = corners(24, 40)
    turns = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # of Pillow, to lie in this way
    lying = Image.fromarray(upright * 60)
    if way > 1:
        lying = lying.transpose(Image.Transpose(turns[way]))
    settings = payload_settings(**({"image_size": "20x20", "resize": resize} if resize else {}))
    photo = check_image(encoded(lying, "JPEG", quality=100, exif=exif_of(way)), settings)
    mask = np.asarray(lying) // 60 if drawn_on == "stored" else upright
    found = mask_of(encoded(gray(mask)), {}, photo, drawn_on, settings)
    seen = np.asarray(Image.open(io.BytesIO(photo.data)).convert("L"))
    classes = np.asarray(Image.open(io.BytesIO(found.data)))
    assert set(np.unique(classes)) <= {1, 2, 3, 4, 255}  # no new class appears
    shown = np.where(classes == 255, 0, classes.astype(int) * 60)
    assert (np.abs(shown - seen) < 30).mean() > 0.8


def test_a_shared_mask_is_decoded_once(monkeypatch):
    """Rows may name one file for images that are stored differently, but have one size."""
    opened = []
    opening = check.open_image
    monkeypatch.setattr(check, "open_image", lambda it: opened.append(it) or opening(it))
    mask = encoded(gray([[0, 1, 3]] * 2))
    for photo in (CheckedImage(b"a", "png", 2, 3), CheckedImage(b"b", "jpeg", 2, 3)):
        assert mask_of(mask, {}, photo, "stored", payload_settings()).numbers == (0, 1, 3)
    assert len(opened) == 1


def test_a_costly_mask_is_decoded_in_a_process_that_may_die(monkeypatch):
    """The header of a mask announces its work, as that of an image does."""
    apart, image = [], CheckedImage(b"", "png", 2, 3)
    monkeypatch.setattr(check, "APART_SHARE", 1e-9)
    monkeypatch.setattr(check, "check_apart", lambda data, *_: apart.append(data) or image)
    mask = encoded(gray([[7, 8, 9]] * 2))
    mask_of(mask, {}, image, "stored", payload_settings())
    assert apart == [mask]


# view, size → what is seen of [[0, 1], [2, 3]]
VIEWS = [
    ((0, 0, 1, 1), (2, 2), [[0, 1], [2, 3]]),
    ((0, 0, 1, 1), (1, 4), [[2, 2, 3, 3]]),
    ((0, 0.5, 1, 0.5), (2, 1), [[1], [3]]),
    ((-0.5, 0, 2, 1), (4, 2), [[255, 255], [0, 1], [2, 3], [255, 255]]),
]


@pytest.mark.parametrize(("view", "size", "seen"), VIEWS)
def test_views(view, size, seen):
    """Pixels beyond the mask are ignored; others are the nearest."""
    assert seen_through(np.array([[0, 1], [2, 3]], np.uint8), view, size).tolist() == seen


@pytest.fixture
def folder(tmp_path):
    """Eight photos whose classes are their levels of gray: 0, 1 and 2; the last has no mask."""
    rows = []
    for number in range(8):
        mask = corners(20 + number, 30) % 3
        gray(mask * 100).save(tmp_path / f"{number}.png")
        palette(mask).save(tmp_path / f"{number}_mask.png")
        mask_field = f",{number}_mask.png" if number < 7 else ""
        rows.append(f"TRAIN,{number}.png{mask_field}\n")
    (tmp_path / "rows.csv").write_text("".join(rows))
    return tmp_path


@pytest.fixture
def output(folder):
    convert(str(folder / "rows.csv"), str(folder / "out"))
    return str(folder / "out")


def test_numbers_are_the_labels_of_masks_without_names(output):
    """The levels that occur, counted by image."""
    dataset = read_dataset(output)
    assert (dataset.task, dataset.label_kind) == ("image_segmentation", "integer")
    assert dataset.labels == ("0", "1", "2")
    assert dataset.splits["train"].labels == {"0": 7, "1": 7, "2": 7}
    assert dataset.splits["train"].unlabelled == 1


def test_names_are_given_by_a_vocabulary(folder):
    """The line of a name in labels.txt is its class number; larger numbers are rejected."""
    (folder / "names.txt").write_text("ground\ncat\ndog\nbird\n")
    names = str(folder / "names.txt")
    convert(str(folder / "rows.csv"), str(folder / "a"), vocabulary=names)
    assert read_dataset(str(folder / "a")).labels == ("ground", "cat", "dog", "bird")
    assert read_dataset(str(folder / "a")).lint["MISSING_CLASS"] == 1  # no pixel is a bird
    example = next(e for _, e in stored_examples(folder / "a") if MASK in e)
    assert example["image/segmentation/class/text"] == [b"ground", b"cat", b"dog"]
    assert example["image/segmentation/class/label"] == [0, 1, 2]
    (folder / "names.txt").write_text("ground\ncat\n")
    options = {"vocabulary": names, "max_reject_fraction": 1}
    convert(str(folder / "rows.csv"), str(folder / "b"), **options)
    assert read_dataset(str(folder / "b")).rows.rejected == {"bad_annotation": 7}


def test_black_and_white_masks_need_names_of_classes(folder):
    """255 is no class: without names, a white class would be lost silently."""
    for number in range(7):
        gray([[0, 255], [0, 0]]).resize((30, 20 + number), 0).save(folder / f"{number}_mask.png")
    with pytest.raises(TooManyRejectsError, match="255"):
        convert(str(folder / "rows.csv"), str(folder / "a"))
    (folder / "names.txt").write_text("ground\ncat\n")
    convert(str(folder / "rows.csv"), str(folder / "b"), vocabulary=str(folder / "names.txt"))
    assert read_dataset(str(folder / "b")).splits["train"].labels == {"ground": 7}


def test_append_keeps_numbers_and_verifies_masks(folder, output):
    """More rows keep the numbers; another mask of a known image contradicts."""
    gray(corners(20, 30)).save(folder / "new.png")
    gray(corners(20, 30)).save(folder / "new_mask.png")
    (folder / "more.csv").write_text("TRAIN,new.png,new_mask.png\n")
    convert(str(folder / "more.csv"), output, append=True)
    assert read_dataset(output).labels == ("0", "1", "2", "3", "4")
    (folder / "again.csv").write_text("TRAIN,0.png,new_mask.png\n")
    error = error_of(TooManyRejectsError, convert, str(folder / "again.csv"), output, append=True)
    assert [reject.code for reject in error.rejects] == ["conflicting_labels"]


def pairs_of_load(output, **options):
    data = load(output, batch_size=8, image_size=(32, 32), **options)["train"]
    return [
        (image, mask)
        for images, masks in data.as_numpy_iterator()
        for image, mask in zip(images, masks, strict=True)
    ]


def agree(image, mask):
    """Return the share of pixels with a class whose level of gray is that of their class."""
    level = image[..., 0] * 255
    counts = mask != 255
    return (np.abs(level - mask.astype(float) * 100) < 50)[counts].mean()


MOVES = [
    {},
    {"resize": "fit"},
    {"resize": "center_crop"},
    {"augment": "photo", "seed": 2},
    {"augment": {"flip": True, "crop": 0.5}, "seed": 3},
    {"augment": {"flip": True, "crop": 0.5}, "cache": "memory", "seed": 3, "epochs": 2},
    {"augment": "photo", "cache": "memory", "seed": 2, "epochs": 2},
]


@pytest.mark.parametrize("options", MOVES)
def test_load_moves_masks_with_their_images(output, options):
    """Every way of resizing and every change moves both; a missing mask is ignored."""
    pairs = pairs_of_load(output, **options)
    assert {(mask.shape, mask.dtype) for _, mask in pairs} == {((32, 32), np.dtype("uint8"))}
    masked = [(image, mask) for image, mask in pairs if (mask != 255).any()]
    assert len(masked) == len(pairs) * 7 // 8
    assert min(agree(*pair) for pair in masked) > 0.75
    assert np.mean([agree(*pair) for pair in masked]) > 0.9


@pytest.mark.parametrize("resize", ["stretch", "fit", "center_crop"])
def test_source_gives_the_masks_of_load(output, resize):
    """Reading without TensorFlow gives the same masks."""
    expected = pairs_of_load(output, resize=resize, shuffle=False)
    images = source(output, split="train").images((32, 32), resize=resize)
    for (_, mask), (_, other) in zip(expected, images, strict=True):
        np.testing.assert_array_equal(mask, other)
    [(pixels, masks)] = images.batches(8)
    assert (pixels.shape, masks.shape) == ((8, 32, 32, 3), (8, 32, 32))


@pytest.mark.parametrize(
    "options",
    [{"label_mode": "int"}, {"vocabulary": ["0"]}, {"only": ["0"]}, {"weights": "balanced"}],
)
def test_options_of_labels_do_not_act(output, options):
    """Options of whole images' labels are refused."""
    with pytest.raises(UsageError, match="masks"):
        load(output, **options)


def test_inspect_draws_masks_on_their_images(output, tmp_path):
    """Pixels have the colour of their class; class 0 and pixels without a class stay."""
    assert cli.main(["inspect", output, "--to", str(tmp_path / "drawn"), "--num", "8"]) == 0
    drawn = {}
    for path in (tmp_path / "drawn").iterdir():
        drawn[path.stem.split("-")[1]] = np.asarray(Image.open(path)).astype(int)
    assert len(drawn) == 8
    mask = corners(23, 30) % 3
    pixels = drawn["3"]
    gray_again = (pixels[..., 0] == pixels[..., 1]) & (pixels[..., 1] == pixels[..., 2])
    np.testing.assert_array_equal(gray_again, mask == 0)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) == 3
    without = drawn["7"]  # has no mask
    assert (without[..., 0] == without[..., 1]).all()


def test_the_report_shows_masks(output):
    """Thumbnails are coloured, and each picture has the labels of its classes."""
    record = next(each for _, each in stored_examples(output) if MASK in each)
    view = record_view(record, read_dataset(output))
    pixels = np.asarray(Image.open(io.BytesIO(view.thumbnail.data)))
    assert (pixels[..., 0] != pixels[..., 1]).any()
    assert [(label.number, label.text) for label in view.labels] == [(0, "0"), (1, "1"), (2, "2")]


def test_images_can_be_read_alone(output):
    """Then masks are left out."""
    images = next(iter(load(output, image_size=8, label_mode=None)["train"]))
    assert images.shape[1:] == (8, 8, 3)
