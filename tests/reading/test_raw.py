"""Pixels that are stored raw: every door reads them, and as it would read the same in PNGs."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import recordgen
from recordgen.reading import Tuning
from recordgen.records.example import parse_example, serialize_example
from recordgen.records.tfrecord import frame, read_records
from recordgen.report.examples import find_examples
from recordgen.report.extraction import extract
from recordgen.report.inspection import find_shards, inspect
from recordgen.training.images import stored_images
from tests.conftest import encoded, exif_of, noise

SIZE = (24, 30)

# width and height of the pictures; one is smaller than the size, one too large to be stored raw
# among others
PICTURES = [(80, 48), (48, 80), (64, 64), (20, 12), (300, 230)]


def picture(number: int) -> Image.Image:
    """Return a smooth picture; the third one is gray."""
    small = noise(6, 5, number).resize(PICTURES[number], Image.Resampling.BICUBIC)
    return small.convert("L") if number == 2 else small


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    for number in range(len(PICTURES)):
        data = encoded(picture(number), "PNG", **({"exif": exif_of(6)} if number == 1 else {}))
        (folder / f"{number}.png").write_bytes(data)
    for name, what in (("labels", "thing"), ("boxes", "box,.3,.3,,,.8,.7,,")):
        rows = (f"TRAIN,{number}.png,{what}\n" for number in range(len(PICTURES)))
        (folder / f"{name}.csv").write_text("".join(rows))
    return folder


@pytest.fixture(scope="module")
def outputs(source: Path) -> dict[str, str]:
    """Return outputs by name: the same pictures as PNGs and raw, of one size and as they are.

    Most have a label: reading boxes takes four times as long.
    """
    one_size = {"size": SIZE, "resize": "fit"}
    options: dict[str, Any] = {
        "png": {"encode": "png"},
        "raw": {"pixels": "raw"},
        "raw unchecked": {"pixels": "raw", "check": "header"},
        "boxes mixed": {"pixels": "mixed", "max_side": 2000, "check": "header"},
        "one size png": {**one_size, "encode": "png"},
        "one size raw": {**one_size, "pixels": "raw"},
        "tiny png": {"size": 8, "encode": "png"},
        "tiny raw": {"size": 8, "pixels": "raw"},
        "boxes png": {"encode": "png"},
        "boxes raw": {"pixels": "raw"},
        "boxes unchecked": {"pixels": "raw", "check": "header"},
        "boxes one size raw": {**one_size, "pixels": "raw"},
    }
    for name, given in options.items():
        rows = source / ("boxes.csv" if name.startswith("boxes") else "labels.csv")
        recordgen.convert(rows, source / name, ignore="BLURRED", **given)
    return {name: str(source / name) for name in options}


def batch(output: str | list[str], **options: Any) -> Any:
    """Return all images, and their boxes or labels, of one output or several, in their order."""
    given = {"batch_size": len(PICTURES), "image_size": SIZE, "shuffle": False, **options}
    [(images, targets)] = recordgen.train_dataset(output, **given)
    return images.numpy(), np.asarray(targets["boxes"] if isinstance(targets, dict) else targets)


@pytest.mark.parametrize(
    ("raw", "png", "resize", "decoder"),
    [
        ("boxes raw", "boxes png", "center_crop", "fast"),
        ("raw", "png", "fit", "exact"),
        ("boxes unchecked", "boxes png", "stretch", "fast"),
        ("boxes mixed", "boxes png", "fit", "fast"),
    ],
)
def test_same_pixels_as_png(
    outputs: dict[str, str], raw: str, png: str, resize: str, decoder: str
) -> None:
    """Pixels and boxes do not differ at all, whatever is done to them after reading."""
    options = {"resize": resize, "tuning": Tuning(decoder=decoder)}
    for found, expected in zip(
        batch(outputs[raw], **options), batch(outputs[png], **options), strict=True
    ):
        assert np.array_equal(found, expected)


def test_same_augmentation(outputs: dict[str, str]) -> None:
    """Pixels that are ready change as a batch, others one by one: alike by the same seed."""
    how = recordgen.Augmentation(flip=True, crop=0.3, contrast=0.2, saturation=0.3)
    options = {"augment": how, "seed": 3, "image_size": 8}
    expected, _ = batch(f"{outputs['tiny png']}/Split-train/*", **options)
    plain, _ = batch(outputs["tiny png"], image_size=8)
    assert np.abs(expected - plain).mean() > 0.05
    for name, given in (("png", {}), ("raw", {}), ("raw", {"cache": "memory"})):
        found, _ = batch(outputs[f"tiny {name}"], **options, **given)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_outputs_that_are_read_as_one(outputs: dict[str, str]) -> None:
    """One may hold raw pixels and the other PNGs."""
    both = [outputs["png"], outputs["raw"]]
    images, _ = batch(both, batch_size=2 * len(PICTURES))
    expected, _ = batch(outputs["png"])
    assert np.array_equal(images, [*expected, *expected])


def test_a_batch_of_one_size(outputs: dict[str, str]) -> None:
    """Images of the size that is read, as stored; smaller ones are enlarged by the reader."""
    assert np.array_equal(batch(outputs["one size raw"])[0], batch(outputs["one size png"])[0])
    images, _ = batch(outputs["tiny raw"], image_size=8, dtype="uint8")
    stored = [record["image/encoded"][0] for record in records(outputs["tiny raw"])]
    assert [image.tobytes() for image in images] == stored


@pytest.mark.parametrize("resize", ["fit", "center_crop"])
def test_what_is_stored_is_what_a_fresh_reading_shows(
    outputs: dict[str, str], source: Path, resize: str
) -> None:
    """An image that was shaped when it was stored looks as if the reader had shaped it.

    Two filters differ by a few levels of smooth pictures; boxes lie where they lay.
    """
    out = outputs["boxes one size raw"]
    if resize != "fit":
        out = str(source / "shaped")
        recordgen.convert(source / "boxes.csv", out, size=SIZE, resize=resize, pixels="raw")
    images, boxes = batch(out, dtype="uint8")
    fresh, fresh_boxes = batch(outputs["boxes png"], dtype="uint8", resize=resize, min_visible=0)
    assert np.abs(images.astype(int) - fresh).mean() < 3
    assert boxes == pytest.approx(fresh_boxes, abs=0.02)


@pytest.mark.parametrize(("what", "cache"), [("", None), ("boxes ", "memory")])
def test_random_crops(outputs: dict[str, str], what: str, cache: str | None) -> None:
    """Windows are cut out of raw pixels as out of decoded ones, also of those in a cache."""
    options = {"resize": "random_crop", "seed": 3}
    if cache is not None:
        options |= {"cache": cache, "cache_bytes": 10_000_000}
    found, expected = (batch(outputs[f"{what}{name}"], **options) for name in ("raw", "png"))
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


def records(output: str) -> list[dict[str, Any]]:
    return [parse_example(item) for path in find_shards(output) for item in read_records(path)]


def test_features(outputs: dict[str, str]) -> None:
    """A record says how its pixels are read; descriptions of the dataset know the feature."""
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
    assert dataset.options["pixels"] == "raw"
    assert dataset.reencoded == {"size": 4, "exif_orientation": 1}
    assert "SUFFIX" not in dataset.lint


def size_of(path: str) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def test_people_see_a_picture(outputs: dict[str, str], tmp_path: Path) -> None:
    """inspect, with boxes and without, the extracted examples and the report show raw pixels."""
    [shown, *_] = inspect(outputs["boxes one size raw"], num=1, to=str(tmp_path / "one"))
    assert shown.image_file is not None
    sizes = {(30, 24), (20, 16)}  # of the small one, which is not enlarged
    assert size_of(shown.image_file) in sizes
    matches = find_examples(outputs["boxes one size raw"], "split=train")
    *files, table = extract(matches, str(tmp_path / "all"))
    assert set(map(size_of, files)) == sizes
    with open(table, encoding="utf-8") as file:
        assert all(row[1].endswith(".png") for row in csv.reader(file))
    page = recordgen.render_report(outputs["boxes one size raw"])
    assert page.count("data:image/png;base64") >= len(PICTURES)


def test_a_comparison_knows_the_pictures(outputs: dict[str, str]) -> None:
    """Rows of both are matched by name, and what differs is the payload alone."""
    found = recordgen.diff(outputs["boxes png"], outputs["boxes raw"])
    assert (found.kinds["bytes"], found.kinds["features"]) == (len(PICTURES), 0)


def test_models_see_what_they_were_trained_on(outputs: dict[str, str]) -> None:
    """Evaluation reads records through the model's own signature."""
    examples = [item for path in find_shards(outputs["boxes mixed"]) for item in read_records(path)]
    images = stored_images(tf.constant(examples), SIZE)
    assert np.array_equal(images, batch(outputs["png"])[0])


def test_images_in_columns(source: Path) -> None:
    """Tables with one image or several are read raw, too, checked or not."""
    (source / "table.csv").write_text("day,night,kind\n0.png,1.png,a\n3.png,2.png,b\n")
    schema = {"day": "image", "night": "image", "kind": "label"}
    read = []
    for check, options in (
        ("decode", {"encode": "png"}),
        ("decode", {"pixels": "raw"}),
        ("header", {"pixels": "raw"}),
    ):
        out = source / f"table {check} {next(iter(options))}"
        given: dict[str, Any] = {"schema": schema, "split_fractions": "1,0,0", **options}
        recordgen.convert(str(source / "table.csv"), out, check=check, **given)
        [(columns, _)] = recordgen.train_dataset(str(out), image_size=SIZE, shuffle=False)
        read.append(columns)
    for columns in read[1:]:
        for name in ("day", "night"):
            assert np.array_equal(columns[name], read[0][name])


def test_damaged_pixels_are_skipped(outputs: dict[str, str], tmp_path: Path) -> None:
    """Pixels of another size than the record says are an image that does not decode."""
    out = tmp_path / "out"
    shutil.copytree(outputs["raw unchecked"], out)
    [shard] = find_shards(str(out))
    whole = [parse_example(item) for item in read_records(shard)]
    # As many bytes in all: the file is as long as dataset.json says.
    taken = whole[0]["image/height"][0]
    assert isinstance(taken, int)
    whole[0]["image/height"] = [taken + 1]
    Path(shard).write_bytes(
        b"".join(part for item in whole for part in frame(serialize_example(item)))
    )
    bad: list[str] = []
    images, _ = batch(str(out), on_error=bad.append)
    assert len(images) == len(PICTURES) - 1
    [said] = bad
    assert f"record 0 ({whole[0]['image/source_id'][0].decode()})" in said
