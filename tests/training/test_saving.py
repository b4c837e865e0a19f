"""What a saved model holds besides signatures for requests, and models of other programs."""

import base64
import json
import logging
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from recordgen import train_dataset
from recordgen.errors import SourceError
from recordgen.exports.lineage import find_lineage
from recordgen.training import TrainingConfig, save
from recordgen.training.fitting import Replicas
from recordgen.training.model import build_model
from recordgen.training.run import fit
from tests import serving, trainer


@pytest.fixture(scope="module")
def own_model():
    """A model that another program trained, with the layers of ours, for 8×6 pixels."""
    keras.utils.set_random_seed(0)
    return build_model(TrainingConfig(image_size=(8, 6)), classes=3, activation="softmax")


@pytest.fixture(scope="module")
def saved(own_model, examples, tmp_path_factory):
    """The folder of that model, saved for serving."""
    path = str(tmp_path_factory.mktemp("saved") / "model")
    save(own_model, path, [f"{examples}/Split-train/*"])
    return path


@pytest.mark.slow
def test_own_model_gets_signatures_labels_and_lineage(own_model, saved, examples):
    """Its answers to requests, records and pixels are those of the model itself."""
    loaded = tf.saved_model.load(saved)  # signatures do not keep its variables
    signatures = loaded.signatures
    clients = {"serving_default", "key", "pixels", "xai_preprocess", "xai_model"}
    assert set(signatures) == {*clients, "evaluate", "truth"}
    images, _ = next(iter(train_dataset(examples, batch_size=4, image_size=(8, 6))))
    expected = own_model(images)
    np.testing.assert_allclose(signatures["pixels"](pixels=images)["scores"], expected, 1e-5)
    records = tf.constant(trainer.records_of(examples, "train"))
    assert signatures["evaluate"](examples=records)["scores"].shape[1] == 3
    lineage = find_lineage(saved).model
    assert (lineage.split, lineage.settings["image_size"]) == ("train", [8, 6])


@pytest.mark.slow
def test_a_key_comes_back_with_its_answer(saved):
    """As from AutoML's models of images."""
    image = base64.b64encode(tf.io.encode_png(np.zeros((8, 6, 3), np.uint8)).numpy()).decode()
    rows = [{"image_bytes": {"b64": each}, "key": key} for key, each in (("7", image), ("a", ""))]
    answer = serving.answer(saved, "key", json.dumps(rows))
    assert answer.pop("key").tolist() == [b"7", b"a"]
    plain = [{"image_bytes": row["image_bytes"]} for row in rows]
    expected = serving.answer(saved, "serving_default", json.dumps(plain))
    assert answer.keys() == expected.keys()
    assert answer["scores"].tobytes() == expected["scores"].tobytes()
    assert answer["error"].tolist() == expected["error"].tolist()


@pytest.mark.slow
def test_vertex_explains_the_pixels_of_a_request(saved):
    """Its two signatures together are the model; gradients reach the pixels."""
    loaded = tf.saved_model.load(saved)  # signatures do not keep its variables
    signatures = loaded.signatures
    image = tf.io.encode_png(np.random.default_rng(0).integers(0, 256, (20, 9, 3), np.uint8))
    given = signatures["xai_preprocess"](image_bytes=[image])
    assert given.keys() == signatures["xai_model"].structured_input_signature[1].keys()
    with tf.GradientTape() as tape:
        tape.watch(given["pixels"])
        scores = signatures["xai_model"](**given)["scores"]
        surest = tf.reduce_max(scores)
    best = signatures["serving_default"](image_bytes=[image])["scores"]
    np.testing.assert_allclose(np.sort(scores[0])[::-1], best[0], rtol=1e-5)
    assert np.abs(tape.gradient(surest, given["pixels"])).max() > 0


@pytest.mark.slow
def test_keras_file_and_litert_give_the_same_scores(own_model, saved):
    """The two ways out of TensorFlow: the Keras file, and the signature on pixels."""
    pixels = np.random.default_rng(0).random((2, 8, 6, 3), np.float32)
    again = keras.models.load_model(Path(saved, "assets.extra/model.keras"))
    expected = own_model(pixels)
    np.testing.assert_array_equal(again(pixels), expected)
    converter = tf.lite.TFLiteConverter.from_saved_model(saved, signature_keys=["pixels"])
    runner = tf.lite.Interpreter(model_content=converter.convert()).get_signature_runner("pixels")
    np.testing.assert_allclose(runner(pixels=pixels)["scores"], expected, atol=1e-5)


@pytest.mark.slow
def test_onnx_gives_the_same_scores(own_model, saved, tmp_path):
    """As docs/model.md exports it; the leg without TFX has the packages."""
    pytest.importorskip("tf2onnx", reason="the extra onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime")
    model = keras.models.load_model(Path(saved, "assets.extra/model.keras"))
    model(np.zeros((1, *model.input_shape[1:]), "float32"))
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    pixels = np.random.default_rng(0).random((2, 8, 6, 3), np.float32)
    [scores] = session.run(None, {session.get_inputs()[0].name: pixels})
    np.testing.assert_allclose(scores, own_model(pixels), atol=1e-5)


def test_save_refuses_what_is_no_dataset(own_model, tmp_path):
    """No folder of a model is left."""
    with pytest.raises(SourceError):
        save(own_model, str(tmp_path / "model"), str(tmp_path))
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_absl_gets_the_epochs_that_nobody_else_listens_to(fn_args, caplog):
    """TFX's containers show what absl logs at INFO."""
    logging.getLogger("recordgen.training").setLevel(logging.NOTSET)
    with caplog.at_level(logging.INFO, "absl"):
        fit(fn_args(), TrainingConfig(image_size=(8, 8), epochs=2))
    logged = [item.getMessage() for item in caplog.records if item.name == "absl"]
    assert [any(f"epoch {n}/2" in line for line in logged) for n in (1, 2)] == [True, True]


def test_a_gpu_without_cuda_is_a_warning(monkeypatch, caplog, tmp_path):
    """The container's runtime gives a GPU, but TensorFlow sees none."""
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [])
    replicas = Replicas(strategy=tf.distribute.get_strategy(), worker=0, workers=1)
    for driver, expected in ((tmp_path, 1), (tmp_path / "missing", 0)):
        caplog.clear()
        replicas.log_devices(str(driver))
        assert len([item for item in caplog.records if item.levelname == "WARNING"]) == expected
