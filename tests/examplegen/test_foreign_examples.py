"""Examples of TFX's ImportExampleGen and Transform, without a ``dataset.json``.

Transform's go through the Trainer; the model, on raw examples, through Evaluator and BulkInferrer.
"""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from PIL import Image
from tfx import v1 as tfx

from pipelines.pipeline import eval_config
from recordgen import load
from recordgen.core.records.example import serialize_example
from recordgen.examplegen import AutoMLExampleGen
from recordgen.exports.lineage import find_lineage
from recordgen.reading import describe
from tests.bulk_inferrer import scores_in
from tests.cpp_loader import CppModel
from tests.trainer import records_of

pytestmark = pytest.mark.slow

COUNT = 24
SIDE = 32
COLOURS = {"dark": 10, "light": 240}


def picture(label, seed):
    """Return a PNG file, dark or light."""
    noise = np.random.default_rng(seed).integers(-9, 10, (SIDE, SIDE, 3))
    file = io.BytesIO()
    Image.fromarray((COLOURS[label] + noise).clip(0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def write_images(folder):
    """Write the records of another tool: an image, and the text of its label."""
    for split in ("train", "eval"):
        (folder / split).mkdir(parents=True)
        with tf.io.TFRecordWriter(str(folder / split / "a.tfrecord")) as writer:
            for seed in range(COUNT):
                label = sorted(COLOURS)[seed % 2]
                values = {
                    "image/encoded": picture(label, seed),
                    "image/class/text": label.encode(),
                }
                writer.write(b"".join(serialize_example(values)))


def write_rows(folder):
    """Write a table whose class follows from a number."""
    folder.mkdir()
    rows = [
        f"{split},{size},{colour},{'big' if size > 50 else 'small'}\n"
        for split in ("TRAIN", "VALIDATION")
        for size in range(1, 100, 4)
        for colour in ("red", "blue")
    ]
    (folder / "a.csv").write_text("split,size,colour,kind\n" + "".join(rows))


def trainer(name, examples, settings, **inputs):
    return tfx.components.Trainer(
        run_fn="recordgen.training.run_fn",
        examples=examples,
        custom_config={"batch_size": 4, **settings},
        train_args=tfx.proto.TrainArgs(),
        eval_args=tfx.proto.EvalArgs(),
        **inputs,
    ).with_id(name)


@pytest.fixture(scope="module")
def run(tmp_path_factory, run_tfx):
    """The uris of the artifacts of one run, by component and type."""
    root = tmp_path_factory.mktemp("foreign")
    write_images(root / "images")
    write_rows(root / "rows")
    sys.path.insert(0, str(Path(__file__).parent))  # Transform imports its function by name
    splits = [
        tfx.proto.Input.Split(name=split, pattern=f"{split}/*") for split in ("train", "eval")
    ]
    images = tfx.components.ImportExampleGen(
        str(root / "images"), input_config=tfx.proto.Input(splits=splits)
    )
    rows = AutoMLExampleGen(str(root / "rows"), columns="target=kind", lint="-ALL")
    statistics = tfx.components.StatisticsGen(examples=rows.outputs["examples"])
    schema = tfx.components.SchemaGen(statistics=statistics.outputs["statistics"])
    transform = tfx.components.Transform(
        examples=rows.outputs["examples"],
        schema=schema.outputs["schema"],
        preprocessing_fn="scaling_transform.preprocessing_fn",
    )
    of_images = {"task": "image_classification", "epochs": 3}
    of_rows = {"task": "tabular", "columns": "target=kind", "epochs": 15, "learning_rate": 0.02}
    transformed = transform.outputs["transformed_examples"]
    graph = {"transform_graph": transform.outputs["transform_graph"]}
    trained = trainer("rows", transformed, of_rows, **graph)
    raw, model = rows.outputs["examples"], trained.outputs["model"]
    evaluator = tfx.components.Evaluator(
        examples=raw, model=model, eval_config=eval_config("tabular", min_score=0.9)
    )
    inferrer = tfx.components.BulkInferrer(
        examples=raw,
        model=model,
        model_blessing=evaluator.outputs["blessing"],
        data_spec=tfx.proto.DataSpec(example_splits=["eval"]),
        model_spec=tfx.proto.ModelSpec(model_signature_name=["evaluate"]),
    )
    metadata = run_tfx(
        root / "work",
        *(images, rows, statistics, schema, transform, trained, evaluator, inferrer),
        trainer("images", images.outputs["examples"], of_images),
    )
    return {
        f"{execution.component}/{artifact.type}": artifact.uri
        for execution in metadata.latest_run()
        for artifact in metadata.outputs(execution)
    }


def test_images_of_import_example_gen(run):
    examples = run["ImportExampleGen/Examples"]
    model = f"{run['images/Model']}/Format-Serving"
    answer = CppModel(model).run("serving_default", image_bytes=[picture("light", 99)])
    assert answer["labels"][0, 0] == b"light"
    lineage = find_lineage(model).model
    assert (lineage.dataset.uri, lineage.dataset.splits["train"]) == (examples, COUNT)
    found = load(describe(examples, task="image_classification"), image_size=SIDE)
    assert found.class_names == sorted(COLOURS)
    labels = np.concatenate([labels for _, labels in found["eval"]])
    assert labels.tolist() == [0, 1] * (COUNT // 2)


def sorted_features(record):
    """Return an example as bytes that do not depend on the order of its features."""
    return tf.train.Example.FromString(record).SerializeToString(deterministic=True)


def test_rows_of_transform(run):
    """The model learned transformed rows; its signatures take raw ones."""
    model, raw = f"{run['rows/Model']}/Format-Serving", run["AutoMLExampleGen/Examples"]
    served, records = CppModel(model), records_of(raw)
    truth = served.run("truth", examples=records)["label"]
    scores = served.run("evaluate", examples=records)["scores"]
    assert (scores.argmax(1) == truth).mean() > 0.9
    # a client need not know the class
    row = {"size": 97, "colour": b"red"}
    answer = served.run("serving_default", examples=[b"".join(serialize_example(row))])
    assert answer["labels"][0, 0] == b"big"
    assert "columns" not in served.signatures
    # Evaluator and BulkInferrer read raw rows
    held = records_of(raw, "eval")
    scores = served.run("evaluate", examples=held)["scores"]
    right = (scores.argmax(1) == served.run("truth", examples=held)["label"]).mean()
    metrics = tfma.load_eval_result(run["Evaluator/ModelEvaluation"]).get_metrics_for_slice()
    assert metrics["score"]["doubleValue"] == pytest.approx(right)
    # newer versions of TFX write the features of an example in another order
    inferred = {
        sorted_features(record): found
        for record, found in scores_in(run["BulkInferrer/InferenceResult"])
    }
    rows = [*map(sorted_features, held)]
    assert inferred.keys() == {*rows}
    np.testing.assert_allclose([inferred[row] for row in rows], scores, rtol=1e-5)
