"""A bad image of a request costs its own answer; the others are those of a good request."""

import io
import struct
from contextlib import nullcontext

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen.core.records.example import serialize_example
from recordgen.errors import DataError
from recordgen.reading.decoding import MOST_PIXELS
from recordgen.training import save
from tests.conftest import convert_lines, encoded
from tests.cpp_loader import CppModel
from tests.trainer import convert_table, evaluated, save_untrained, tfma_input

SIDE = 16

# A row of each task; the trainer of several labels shares all of this with the first.
ROWS = {
    "image_classification": "TRAIN,{at}.png,{label}",
    "object_detection": "TRAIN,{at}.png,{label},0.1,0.1,,,0.6,0.7,,",
    "image_segmentation": "TRAIN,{at}.png,{at}_mask.png",
}


def picture(seed, form="JPEG", side=SIDE):
    """Return the bytes of noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)
    return encoded(Image.fromarray(pixels), form)


def claiming(data, place, form, *size):
    """Return an image file that claims another size, at this place, in a form of ``struct``."""
    return data[:place] + struct.pack(form, *size) + data[place + struct.calcsize(form) :]


JPEG, PNG = picture(1), picture(1, "PNG")
BAD = {
    "empty": b"",
    "text": b"hello, this is no image",
    "one byte": b"\xff",
    "JPEG of nothing": b"\xff\xd8\xff",
    "truncated JPEG": picture(1, side=64)[:-900],
    "truncated PNG": PNG[:-200],
    "PNG without a size": b"\x89PNG\r\n\x1a\n",
    "huge JPEG": claiming(JPEG, JPEG.find(b"\xff\xc0") + 5, ">HH", 65_000, 65_000),
    "huge PNG": claiming(PNG, 16, ">II", 20_000, 20_000),
    "negative PNG": claiming(PNG, 16, ">II", 0xFFFF_FFFF, 8),
}
GOOD = [picture(2), picture(3, "PNG"), picture(4, "BMP", 40), picture(5, "GIF", 9)]


@pytest.fixture(scope="module", params=ROWS)
def model(request, tmp_path_factory):
    """An untrained model of each kind that takes images."""
    folder = tmp_path_factory.mktemp(request.param)
    for at in range(4):
        (folder / f"{at}.png").write_bytes(picture(at, "PNG"))
        Image.fromarray(np.full((SIDE, SIDE), at % 2, np.uint8)).save(folder / f"{at}_mask.png")
    row = ROWS[request.param]
    rows = [row.format(at=at, label=["ant", "bee"][at % 2]) for at in range(4)]
    out = str(convert_lines(folder, rows, task=request.param))
    keras.utils.set_random_seed(0)
    size = (SIDE, SIDE)
    save_untrained(out, str(folder / "model"), image_size=size, batch_size=2, top_k=2)
    return CppModel(folder / "model")


def test_a_bad_image_costs_its_own_answer(model):
    """The other answers of the request are those without it."""
    sides = tf.io.extract_jpeg_shape(BAD["huge JPEG"])[:2]
    assert np.prod(sides, dtype=np.int64) > MOST_PIXELS  # or its name is wrong
    expected = model.run("serving_default", image_bytes=GOOD)
    assert expected["error"].tolist() == [b""] * len(GOOD)
    answer = model.run("serving_default", image_bytes=[GOOD[0], *BAD.values(), *GOOD[1:]])
    is_good = answer.pop("error") == b""
    assert is_good.tolist() == [True, *[False] * len(BAD), *[True] * (len(GOOD) - 1)]
    for name, values in answer.items():
        if values.dtype.kind == "f":  # kernels add in another order in a larger batch
            np.testing.assert_allclose(values[is_good], expected[name], rtol=1e-6)
        else:
            np.testing.assert_array_equal(values[is_good], expected[name])
        nothing = values[~is_good]
        if nothing.dtype == object:
            assert set(nothing.ravel()) == {b""}
        else:
            assert (nothing == 255).all() if nothing.dtype == np.int32 else np.isnan(nothing).all()


def test_a_request_of_bad_images_only(model):
    """Each has its reason, and none has a score."""
    answer = model.run("serving_default", image_bytes=list(BAD.values()))
    reasons = dict(zip(BAD, answer["error"].tolist(), strict=True))
    assert all(reasons.values())
    # "empty", "not an image", and "cannot be decoded" are told apart
    assert len({reasons["empty"], reasons["text"], reasons["truncated PNG"]}) == 3
    assert reasons["truncated JPEG"] == reasons["huge PNG"] == reasons["truncated PNG"]


def test_pixels_have_the_scores_of_records(model):
    """The image in a record has the model's size, so that it is only decoded."""
    image = picture(7, "PNG")
    record = b"".join(serialize_example({"image/encoded": image}))
    expected = model.run("evaluate", examples=[record])["scores"]
    pixels = np.asarray(Image.open(io.BytesIO(image)), np.float32)[None] / 255
    scores = model.run("pixels", pixels=pixels)["scores"]
    assert model.empty()["pixels"]["scores"].shape == (0, *scores.shape[1:])
    of_masks = expected.dtype == np.int32
    np.testing.assert_allclose(scores.argmax(-1) if of_masks else scores, expected, rtol=1e-4)


def test_records_that_cannot_be_decoded_stop_an_evaluation(model):
    """They were checked when they were written, so the data set is damaged."""
    record = b"".join(serialize_example({"image/encoded": b"no image"}))
    with pytest.raises(tf.errors.OpError):
        model.run("evaluate", examples=[record])


def test_scores_that_are_no_numbers_are_no_answers():
    """A model that diverged is not right about its first class."""
    tfma_metrics = pytest.importorskip("recordgen.training.tfma_metrics", exc_type=ImportError)
    [computation] = tfma_metrics.LabelAccuracy().computations(model_names=[""], output_names=[""])
    for scores, error in (([0.9, 0.1], nullcontext()), ([np.nan] * 2, pytest.raises(DataError))):
        with error:
            computation.combiner.add_input(None, tfma_input(0, scores))


def test_a_model_without_answers_has_no_score(examples, tmp_path, monkeypatch):
    """The same in Kubeflow's step."""
    layers = [keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(3)]
    model = keras.Sequential(layers)
    model.set_weights([np.full_like(weight, np.nan) for weight in model.get_weights()])
    monkeypatch.setenv("HOME", str(tmp_path))
    save(model, "~/model", examples)
    with pytest.raises(DataError, match="NaN"):
        evaluated(str(tmp_path / "model"), examples)


def test_a_bad_record_costs_its_own_answer(tmp_path):
    """Of a table: no record, and one that lacks a column which no row of the training lacked."""
    rows = [f"TRAIN,{at}.5,{at}.5,{'red' if at % 2 else ''},c{at % 2}" for at in range(8)]
    out = convert_table(tmp_path, ["fold,a,b,word,cls", *rows], target="cls")
    save_untrained(out, str(tmp_path / "model"), batch_size=2)
    loaded = CppModel(tmp_path / "model")
    values = {"a": 1.5, "b": 0.5, "word": b"red"}
    good = b"".join(serialize_example(values))
    bad = b"".join(serialize_example({"a": b"one", "word": b"red"}))
    assert {len(each["scores"]) for each in loaded.empty().values() if "scores" in each} == {0}
    [expected] = loaded.run("serving_default", examples=[good])["scores"]
    for examples in ([b"no record"], [good, bad, b"no record", good], [bad, bad]):
        answer = loaded.run("serving_default", examples=examples)
        is_good = [example == good for example in examples]
        assert [error == b"" for error in answer["error"]] == is_good
        assert np.isnan(answer["scores"]).all(-1).tolist() == [not each for each in is_good]
        for scores in answer["scores"][is_good]:
            np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_an_empty_batch_has_an_empty_answer(model):
    """Of each signature: a client that filters its images may have none left."""
    assert {len(values) for each in model.empty().values() for values in each.values()} == {0}
