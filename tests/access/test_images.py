"""Images of a source have the pixels, labels and boxes that ``recordgen.load`` gives."""

import importlib
import io
import pickle
import re
import sys

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import recordgen
from recordgen.errors import NotUnderstoodError, RecordError, UsageError
from tests.conftest import convert_lines, encoded, error_of, noise

KINDS = {"JPEG": "jpg", "PNG": "png", "GIF": "gif", "BMP": "bmp"}


def photo(width, height, seed):
    """Return a smooth picture with some noise: edges, gradients and colours."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (7, 9, 3), np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.int16)
    grain = rng.integers(-9, 10, smooth.shape)
    return Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Return an output of 24 pictures of several sizes, formats and colours, with two labels."""
    folder = tmp_path_factory.mktemp("photos")
    lines = []
    sizes = [(500, 375), (97, 141), (32, 32), (1000, 301), (225, 224), (31, 460)]
    for n in range(24):
        kind = list(KINDS)[(n // 6) % 4]
        image = photo(*sizes[n % 6], n)
        if n % 5 == 4:
            image = image.convert("L")
        name = f"{n}.{KINDS[kind]}"
        image.save(folder / name, kind, **({"quality": 80} if kind == "JPEG" else {}))
        lines.append(f"TRAIN,{name},{'ab'[n % 2]}")
    return convert_lines(folder, lines)


def loaded(output, **options):
    data = recordgen.eval_dataset(output, split="train", batch_size=1, **options)
    return [(pixels[0], label[0]) for pixels, label in data.as_numpy_iterator()]


def levels(found, expected):
    """Return the largest difference of a level; labels must be equal."""
    assert len(found) == len(expected) > 1
    most = 0
    for (pixels, label), (wanted, wanted_label) in zip(found, expected, strict=True):
        assert pixels.shape == wanted.shape
        assert label == wanted_label
        most = max(most, int(np.abs(pixels.astype(np.int16) - wanted.astype(np.int16)).max()))
    return most


def test_without_resizing_pixels_are_those_of_tensorflow(photos):
    """To the last bit, with the same labels."""
    source = recordgen.source(photos)
    for example, (pixels, label) in zip(source, source.images(), strict=True):
        data = example["image/encoded"].tobytes()
        expected = tf.io.decode_image(data, channels=3, expand_animations=False).numpy()
        np.testing.assert_array_equal(pixels, expected, strict=True)
        assert label == example["image/class/label"]


# method, resize; center_crop by area has a test of its own
WAYS = [("area", "stretch"), ("area", "fit"), ("", "stretch"), ("", "fit"), ("", "center_crop")]
SIZES = [(24, 24), (224, 224), (50, 120)]


# method, resize, size
RESIZES = [
    *((*way, SIZES[2]) for way in WAYS),
    *((*WAYS[n], size) for n in (1, 4) for size in SIZES[:2]),
]


@pytest.mark.parametrize(("method", "resize", "size"), RESIZES)
def test_levels_are_as_loaded(photos, method, resize, size):
    """By areas, a level differs by at most one from ``load``; interpolated, from the exact one."""
    how = {"method": method} if method else {}
    tuning = recordgen.reading.Tuning(decoder="fast" if method else "exact")
    images = recordgen.source(photos).images(size, resize=resize, **how)
    expected = loaded(photos, image_size=size, resize=resize, scale="0..255:uint8", tuning=tuning)
    assert levels(images, expected) <= 1


@pytest.mark.parametrize("method", ["area", "auto"])
def test_other_libraries_change_no_pixel(photos, monkeypatch, method):
    """Pixels are the same and writable whatever a program has imported."""
    images = recordgen.source(photos).images(24, method=method)
    expected = images.batch(range(24))[0]
    for name in ("torch", "cv2"):
        monkeypatch.setitem(sys.modules, name, object())
    np.testing.assert_array_equal(images.batch(range(24))[0], expected)
    for each in (images, images.source.images(), images.source.images(layout="CHW")):
        assert all(pixels.flags.writeable for pixels, _ in each)


def test_center_crops_by_area(photos):
    """Only the colours at the edges of a window depend on the decoder."""
    images = recordgen.source(photos).images(48, resize="center_crop", method="area")
    expected = loaded(photos, image_size=48, resize="center_crop", scale="0..255:uint8")
    for (pixels, _), (wanted, _) in zip(images, expected, strict=True):
        different = np.abs(pixels.astype(np.int16) - wanted.astype(np.int16))
        assert different[2:-2, 2:-2].max() <= 1


@pytest.mark.parametrize("encode", ["raw", "jpeg"])
def test_raw_pixels_and_other_encodings_are_decoded(photos, tmp_path, encode):
    """Images have the stored size, can be changed, and equal the stored pixels."""
    csv = str(photos.parent / "labels.csv")
    recordgen.convert(csv, tmp_path / "out", encode=encode, image_size="64x64")
    source = recordgen.source(tmp_path / "out")
    for example, (pixels, _) in zip(source, source.images(), strict=True):
        assert pixels.shape == (example["image/height"], example["image/width"], 3)
        assert pixels.flags.writeable
        data = example["image/encoded"].tobytes()
        if encode == "raw":
            assert pixels.tobytes() == data
        else:
            with Image.open(io.BytesIO(data)) as image:
                wanted = np.asarray(image.convert("RGB"), np.int16)
            assert np.abs(pixels - wanted).mean() < 2
    resized = source.images(24, method="area")
    assert levels(resized, loaded(tmp_path / "out", image_size=24, scale="0..255:uint8")) <= 1


@pytest.mark.parametrize("method", ["area", "bilinear"])
@pytest.mark.parametrize(
    ("resize", "boxes"),
    [("stretch", "rel_xyxy"), ("fit", "xyxy"), ("center_crop", "center_xywh"), ("fit", "yxyx")],
)
def test_boxes_move_with_the_pixels(tmp_path, resize, boxes, method):
    """Boxes are those of ``load`` in the same format, whatever the layout of the pixels."""
    lines = []
    rng = np.random.default_rng(1)
    for n in range(8):
        photo(400 + 37 * n, 150 + 11 * n, n).save(tmp_path / f"{n}.jpg")
        for corners in rng.uniform(0, 1, (5, 4)):
            left, right = sorted(corners[:2])
            top, bottom = sorted(corners[2:])
            box = f"{left:.3f},{top:.3f},,,{right:.3f},{bottom:.3f},,"
            lines.append(f"TRAIN,{n}.jpg,{'xy'[n % 2]},{box}")
    convert_lines(tmp_path, lines, task="object_detection")
    how = {"resize": resize, "boxes": boxes}
    images = recordgen.source(tmp_path / "out").images((40, 48), layout="CHW", method=method, **how)
    how |= {"split": "train", "batch_size": 8, "image_size": (40, 48), "scale": "0..255:uint8"}
    tuning = recordgen.reading.Tuning(decoder="fast" if method == "area" else "exact")
    data = recordgen.eval_dataset(tmp_path / "out", tuning=tuning, **how)
    [(pixels, expected)] = data.as_numpy_iterator()
    found_pixels, found = images.batch(range(8))
    assert expected["count"].min() < 5 or resize != "center_crop"
    np.testing.assert_array_equal(found["count"], expected["count"])
    np.testing.assert_array_equal(found["labels"], expected["labels"], strict=True)
    np.testing.assert_allclose(found["boxes"], expected["boxes"], rtol=1e-5, atol=1e-5)
    assert found_pixels.transpose(0, 2, 3, 1).shape == pixels.shape
    assert images.collate(images[:2])[1]["count"].tolist() == expected["count"][:2].tolist()
    [first, *_] = images[:1]
    np.testing.assert_array_equal(first[1]["boxes"], found["boxes"][0, : found["count"][0]])


def test_images_without_labels(tmp_path):
    """Images of a dataset without labels are decoded one by one and in batches."""
    (tmp_path / "images").mkdir()
    noise().save(tmp_path / "images" / "1.png")
    options = {"task": "image_classification", "labels": "none", "split": "1,0,0"}
    recordgen.convert(tmp_path / "images", tmp_path / "out", **options)
    images = recordgen.source(tmp_path / "out").images()
    assert images[0].shape == (12, 16, 3)
    assert images.batch([0, 0]).shape == (2, 12, 16, 3)


def test_proposed_columns_keep_the_given_ones(tmp_path):
    """The proposal adds what is missing, and trains on the label that the user named."""
    data = {"image": encoded(noise(), "PNG"), "label": "a", "kind": "b"}
    recordgen.write([data], tmp_path / "out")
    images = recordgen.source(tmp_path / "out").images
    error = error_of(NotUnderstoodError, images, 8, columns="label=kind")
    assert error.options == {"columns": "image=image,label=kind"}


def test_an_image_that_cannot_be_decoded(tmp_path):
    """The error names shard and record."""
    data = {"image/encoded": b"\xff\xd8\xff nothing", "image/format": b"jpeg"}
    recordgen.write([data], tmp_path / "out")
    [shard] = (tmp_path / "out").glob("Split-train/*")
    with pytest.raises(RecordError, match=rf"{shard}: record 0:"):
        recordgen.source(tmp_path / "out").images(8)[0]


def test_a_wrong_argument_is_an_error(photos, tmp_path):
    """A size may be of any integers; Grain compares the texts."""
    source = recordgen.source(photos)
    for size in (np.int64(8), [8, 8], (np.int64(8), 8)):
        assert repr(source.images(size)) == repr(source.images(8))
    wrong = {"resize": "random_crop", "method": "cubic", "dtype": "float64", "scale": "-1..1:uint8"}
    for name, value in {
        **wrong,
        "image_size": 0,
        "columns": "image=jpg",
        "fields": ["mask"],
    }.items():
        with pytest.raises(UsageError, match=name):
            source.images(**{"image_size": 8, name: value})
    with pytest.raises(UsageError, match="none"):
        source.images(8).batch([])
    with pytest.raises(UsageError, match="size"):
        list(source.images().batches(6))
    recordgen.write([{"x": 1, "image": np.zeros((2, 2, 3), np.uint8)}], tmp_path / "out")
    with pytest.raises(UsageError, match="image"):
        recordgen.source(tmp_path / "out").images(8)


@pytest.mark.parametrize("name", ["convert_and_load", "inspect"])
def test_another_tools_function_is_answered_with_ours(name):
    """The error says which call does it here."""
    with pytest.raises(AttributeError, match=r"recordgen\.(convert|source)\("):
        getattr(recordgen, name)


# options of source.images, scale of load
SCALES = [
    (dict(dtype=np.uint8), "uint8"),
    (dict(dtype=np.dtype("float32")), "0..1"),
    (dict(scale="-1..1"), "-1..1"),
    (dict(scale="-1..1", dtype=np.float16), "-1..1:float16"),
    (dict(scale="0..255"), "0..255"),
    (dict(scale="ResNet50", image_size="48x48"), "ResNet50"),
    (dict(scale="0..255:uint8", image_size=np.int64(48)), "uint8"),
]


@pytest.mark.parametrize(("options", "scale"), SCALES)
def test_ranges_and_sizes_have_the_words_of_load(photos, options, scale):
    """Pixels have the range and the type that ``load`` gives for the same words."""
    given = {"image_size": (48, 48), **options}
    images = recordgen.source(photos).images(**given, method="area")
    expected = loaded(photos, image_size=given["image_size"], scale=scale)
    for (pixels, _), (wanted, _) in zip(images, expected, strict=True):
        assert (pixels.dtype, pixels.shape) == (wanted.dtype, wanted.shape)
        assert pixels.flags.c_contiguous
        levels = 1.01 if wanted.max() > 2 else 0.01
        np.testing.assert_allclose(pixels.astype(float), wanted.astype(float), atol=levels)


def halved(pixels):
    return pixels // 2


def misshapen(pixels):
    return pixels.reshape(7)


def test_transforms_and_maps_change_items_also_in_another_process(photos):
    """A transform changes the image, a mapped function the whole item; labels are unchanged."""
    source = recordgen.source(photos)
    plain = source.images(8)
    sent = pickle.dumps(source.images(8, transform=halved, dtype=np.uint8))
    changed = pickle.loads(sent).map(len)
    assert [changed[at] for at in range(3)] == [2] * 3
    np.testing.assert_array_equal(source.images(8, transform=halved)[5][0], plain[5][0] // 2)
    for index in (5, [5]):  # an error of a function is its own
        with pytest.raises(ValueError, match=r"^cannot reshape"):
            source.images(8, transform=misshapen)[index]
    laid_out = source.images(8, layout="CHW", dtype=np.dtype("float32"))
    assert laid_out[5][0].flags.c_contiguous
    np.testing.assert_allclose(laid_out[5][0], plain[5][0].transpose(2, 0, 1) / 255, atol=1e-6)


def test_all_labels_are_one_array_without_decoding(photos, sample, monkeypatch):
    """Labels are those of the items: int64 [items], or float32 [items, classes] for several."""
    several = recordgen.source(sample("image_multi_label"))
    expected = np.stack([label for _, label in several.images(8)])
    monkeypatch.setattr("recordgen.access.decode.OfExamples.__call__", None)
    np.testing.assert_array_equal(several.labels, expected, strict=True)
    source = recordgen.source(photos)
    stored = np.array([example["image/class/label"] for example in source])
    np.testing.assert_array_equal(source.labels, stored, strict=True)
    with pytest.raises(UsageError):
        _ = recordgen.source(sample("object_detection")).labels


# call, ours
OTHER_NAMES = [
    (lambda source: source.images(size=8), "image_size"),
    (lambda source: source.images(8, data_format="channels_first"), "layout"),
    (lambda source: source.batches(8, shuffle=True), "seed="),
    (lambda source: recordgen.load("out", size=8), "image_size"),
    (lambda source: recordgen.load("out", class_mode="binary"), "label_mode"),
    (lambda source: recordgen.load("out", dtype="uint8"), "scale"),
    (lambda source: recordgen.load("out", shuffle_buffer_size=8), "shuffle_buffer"),
    (lambda source: recordgen.load("out", validation_split=0.2), "convert"),
    (lambda source: recordgen.input_fn("out", training=False), "eval_dataset"),
    (lambda source: recordgen.convert("in", "out", num_shards=2), "shard_mb"),
    (lambda source: recordgen.convert("in", output_dir="out"), "second"),
    (lambda source: recordgen.write([], output_dir="out"), "second"),
    (lambda source: source.images(8, batch_size=2), "batches"),
    (lambda source: recordgen.load("out", data_format="channels_first"), "map"),
    (lambda source: recordgen.load("out", drop_last=True), "drop_remainder=True"),
]


@pytest.mark.parametrize(("call", "ours"), OTHER_NAMES)
def test_another_tools_name_is_answered_with_ours(photos, monkeypatch, call, ours):
    """The function that the answer names exists."""
    monkeypatch.chdir(photos.parent)
    with pytest.raises(UsageError, match=ours) as error:
        call(recordgen.source(photos))
    for module, name in re.findall(r"(recordgen(?:\.\w+)*)\.(\w+)", str(error.value)):
        assert hasattr(importlib.import_module(module), name)
