"""Raw pixels: every function reads them as it reads the same images in PNGs."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import recordgen
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.exports.inspection import inspect
from recordgen.exports.report.render import render_report
from recordgen.reading import Tuning
from recordgen.tasks.images.training import stored_images
from tests.conftest import encoded, exif_of, noise, rewrite_records

SIZE = (24, 30)

# width and height of the pictures; one is smaller than the size, one too large to be raw with
# ``pixels="mixed"``
PICTURES = [(80, 48), (48, 80), (64, 64), (20, 12), (300, 230)]


def picture(number):
    """Return a smooth picture; the third is gray."""
    small = noise(6, 5, number).resize(PICTURES[number], Image.Resampling.BICUBIC)
    return small.convert("L") if number == 2 else small


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(len(PICTURES)):
        data = encoded(picture(number), "PNG", **({"exif": exif_of(6)} if number == 1 else {}))
        (folder / f"{number}.png").write_bytes(data)
    for name, what in (("labels", "thing"), ("boxes", "box,.3,.3,,,.8,.7,,")):
        rows = (f"TRAIN,{number}.png,{what}\n" for number in range(len(PICTURES)))
        (folder / f"{name}.csv").write_text("".join(rows))
    return folder


@pytest.fixture(scope="module")
def outputs(source):
    """Return outputs by name: the same pictures as PNGs and raw, resized to one size or not.

    Most have a label: reading boxes takes four times as long.
    """
    one_size = {"image_size": SIZE, "resize": "fit"}
    options = {
        "png": {"encode": "png"},
        "raw": {"encode": "raw"},
        "raw unchecked": {"encode": "raw", "check": "header"},
        "boxes mixed": {"encode": "mixed", "image_size": "2000max", "check": "header"},
        "one size png": {**one_size, "encode": "png"},
        "one size raw": {**one_size, "encode": "raw"},
        "tiny png": {"image_size": "8", "encode": "png"},
        "tiny raw": {"image_size": "8", "encode": "raw"},
        "boxes png": {"encode": "png"},
        "boxes raw": {"encode": "raw"},
        "boxes unchecked": {"encode": "raw", "check": "header"},
        "boxes one size raw": {**one_size, "encode": "raw"},
    }
    for name, given in options.items():
        what = "boxes" if name.startswith("boxes") else "labels"
        recordgen.convert(source / f"{what}.csv", source / name, lint="-BLURRED", **given)
    return {name: str(source / name) for name in options}


def batch(output, **options):
    """Return all images, and their boxes or labels, of one output or several, in order."""
    given = {"batch_size": len(PICTURES), "image_size": SIZE, "shuffle": False, **options}
    [(images, targets)] = recordgen.train_dataset(output, **given)
    return images.numpy(), np.asarray(targets["boxes"] if isinstance(targets, dict) else targets)


# the output of raw pixels, that of PNGs, how both are read
ALIKE = [
    ("boxes raw", "boxes png", "center_crop", "fast"),
    ("boxes raw", "boxes png", "random_crop", "fast"),
    ("raw", "png", "random_crop", "fast"),
    ("raw", "png", "fit", "exact"),
    ("boxes unchecked", "boxes png", "stretch", "fast"),
    ("boxes mixed", "boxes png", "fit", "fast"),
]


@pytest.mark.parametrize(("name", "png", "resize", "decoder"), ALIKE)
def test_raw_pixels_and_boxes_equal_those_of_pngs(outputs, name, png, resize, decoder):
    """To the last bit, for each way to resize and decode."""
    options = {"resize": resize, "tuning": Tuning(decoder=decoder), "seed": 3}
    for found, expected in zip(
        batch(outputs[name], **options), batch(outputs[png], **options), strict=True
    ):
        assert np.array_equal(found, expected)


def test_raw_pixels_change_alike_as_a_batch_and_one_by_one(outputs):
    """Augmentation does not depend on how pixels are stored or cached."""
    how = dict(flip=True, crop=0.3, contrast=0.2, saturation=0.3)
    options = {"augment": how, "seed": 3, "image_size": 8}
    expected, _ = batch(f"{outputs['tiny png']}/Split-train/*", **options)
    plain, _ = batch(outputs["tiny png"], image_size=8)
    assert np.abs(expected - plain).mean() > 0.05
    for name, given in (("png", {}), ("raw", {}), ("raw", {"cache": "memory"})):
        found, _ = batch(outputs[f"tiny {name}"], **options, **given)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_raw_and_png_outputs_are_read_as_one(outputs):
    """Several outputs may store pixels differently."""
    images, _ = batch([outputs["png"], outputs["raw"]], batch_size=2 * len(PICTURES))
    expected, _ = batch(outputs["png"])
    assert np.array_equal(images, [*expected, *expected])


def test_images_of_the_requested_size_are_returned_as_stored(outputs):
    """No resizing changes a level."""
    assert np.array_equal(batch(outputs["one size raw"])[0], batch(outputs["one size png"])[0])
    images, _ = batch(outputs["tiny raw"], image_size=8, scale="uint8")
    stored = [record["image/encoded"][0] for record in records(outputs["tiny raw"])]
    assert [image.tobytes() for image in images] == stored


@pytest.mark.parametrize("resize", ["fit", "center_crop"])
def test_what_is_stored_is_what_a_fresh_reading_shows(outputs, source, resize):
    """An image that was resized by the conversion looks as if the reader had resized it.

    The two filters differ by a few levels on smooth pictures; boxes have the same place.
    """
    out = outputs["boxes one size raw"]
    if resize != "fit":
        out = str(source / "shaped")
        recordgen.convert(source / "boxes.csv", out, image_size=SIZE, resize=resize, encode="raw")
    images, boxes = batch(out, scale="uint8")
    how = {"scale": "uint8", "resize": resize, "boxes": {"min_visible": 0}}
    fresh, fresh_boxes = batch(outputs["boxes png"], **how)
    assert np.abs(images.astype(int) - fresh).mean() < 3
    assert boxes == pytest.approx(fresh_boxes, abs=0.02)


def shards_of(output):
    return sorted(map(str, Path(output).glob("Split-train/*")))


def records(output):
    return [parse_example(item) for path in shards_of(output) for item in RECORDS.read(path)]


def test_a_record_has_what_its_pixels_need(outputs):
    """Height, width and channels give back the upright RGB picture; schema and counts know them."""
    for record in records(outputs["raw"]):
        [data] = record["image/encoded"]
        shape = [record[f"image/{name}"][0] for name in ("height", "width", "channels")]
        pixels = tf.reshape(tf.io.decode_raw(data, tf.uint8), shape).numpy()
        number = int(record["image/source_id"][0][:1])
        upright = picture(number)
        if number == 1:
            upright = upright.transpose(Image.Transpose.ROTATE_270)
        assert np.array_equal(pixels, np.asarray(upright.convert("RGB")))
    schema = Path(outputs["raw"], "schema.pbtxt").read_text()
    assert '"image/channels"' in schema
    assert '"raw"' in schema
    assert '"image/channels"' not in Path(outputs["png"], "schema.pbtxt").read_text()
    dataset = recordgen.read_dataset(outputs["one size raw"])
    assert dataset.encoding.pixels == "raw"
    assert dataset.reencoded == {"image_size": 4, "exif_orientation": 1}


def size_of(path):
    with Image.open(path) as image:
        return image.size


def test_every_door_shows_raw_pixels_as_a_picture(outputs, tmp_path):
    """inspect, extract and the report show PNGs."""
    [shown, *_] = inspect(outputs["boxes one size raw"], num=1, to=str(tmp_path / "one"))
    assert shown.image_file is not None
    sizes = {(30, 24), (20, 16)}  # the second is the small picture, which is not enlarged
    assert size_of(shown.image_file) in sizes
    shown = inspect(outputs["boxes one size raw"], num=99, to=str(tmp_path / "all"))
    files = [str(record.image_file) for record in shown]
    assert set(map(size_of, files)) == sizes
    assert all(file.endswith(".png") for file in files)
    page = render_report(outputs["boxes one size raw"])
    assert page.count("data:image/png;base64") >= len(PICTURES)


def test_models_see_what_they_were_trained_on(outputs):
    """Evaluation reads records through the model's signature."""
    examples = [item for path in shards_of(outputs["boxes mixed"]) for item in RECORDS.read(path)]
    assert np.array_equal(stored_images(tf.constant(examples), SIZE), batch(outputs["png"])[0])


def table(source, **options):
    """Return an output of rows with two images each."""
    rows = source / "table.csv"
    rows.write_text("day,night,age,kind\n0.png,1.png,3,a\n3.png,2.png,5,b\n")
    out = source / f"table {options}"
    schema = {"day": "image", "night": "image", "age": "int", "kind": "label"}
    given = {"schema": schema, "split": "1,0,0", "overwrite": True}
    recordgen.convert(str(rows), out, **given, **options)
    return str(out)


def columns_of(output):
    [(columns, _)] = recordgen.train_dataset(output, image_size=SIZE, shuffle=False)
    return columns


@pytest.mark.parametrize("options", [{}, {"check": "header"}])
def test_raw_images_in_columns_are_read_like_pngs(source, options):
    """The columns of declared rows have the same pixels."""
    expected = columns_of(table(source, encode="png"))
    found = columns_of(table(source, encode="raw", **options))
    for name in ("day", "night"):
        assert np.array_equal(found[name], expected[name])


def test_damaged_pixels_are_an_error(outputs, out):
    """Raw bytes of another length than their size are bad images."""
    shutil.copytree(outputs["raw unchecked"], out)
    [shard] = shards_of(out)
    # Keep the number of bytes: dataset.json has the length of the file.
    rewrite_records(Path(shard), lambda it: {**it, "image/height": [it["image/height"][0] + 1]})
    with pytest.raises(tf.errors.InvalidArgumentError):
        batch(str(out))
