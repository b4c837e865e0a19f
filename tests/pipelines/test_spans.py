"""Three spans in the pipeline of spans: drift, warm start, baseline by label names, push."""

import numpy as np
import pytest
import tensorflow_model_analysis as tfma
from PIL import Image

from pipelines import local
from pipelines.metadata import Metadata
from pipelines.pipeline import eval_config
from pipelines.settings import Settings
from recordgen import convert
from recordgen.errors import DataError
from recordgen.options import ConvertOptions
from recordgen.training import TrainingConfig
from recordgen.training.tfma_metrics import LabelAccuracy

COLOURS = {"blue": (0, 0, 255), "green": (0, 255, 0), "red": (255, 0, 0)}
SPLITS = {"TRAIN": 24, "VALIDATION": 6}


def write_span(folder, labels, eval_labels):
    """Write images, and an import file that gives each colour a label; return the file."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(len(labels))
    rows = []
    for (split, count), named in zip(SPLITS.items(), (labels, eval_labels), strict=True):
        for colour, label in named.items():
            for number in range(count):
                noise = random.integers(0, 60, (8, 8, 3))
                pixels = np.clip(noise + COLOURS[colour], 0, 255).astype(np.uint8)
                name = f"{colour}-{split}-{number}.png"
                Image.fromarray(pixels).save(folder / name)
                rows.append(f"{split},{name},{label}\n")
    (folder / "a.csv").write_text("".join(rows))
    return folder / "a.csv"


def settings_of(root):
    return Settings(
        input_base=str(root / "data"),
        pattern="span-{SPAN}/*.csv",
        name="spans",
        fingerprint_images=False,
        options=ConvertOptions(task="image_classification", lint=("-ALL",)),
        training=TrainingConfig(image_size=(8, 8), batch_size=12, epochs=6, learning_rate=0.01),
        min_score=0.6,
        curated_schema=f"{root}/checked/schema.pbtxt",
        window=2,
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("spans")


@pytest.fixture(scope="module")
def reports(root):
    """The reports of a span like the curated one, a span with a new label, and a wrong span."""
    first = {"blue": "blue", "red": "red"}
    second = {**first, "green": "apple"}
    third = {**first, "green": "green"}
    wrong = {"blue": "red", "red": "green", "green": "blue"}
    convert(write_span(root / "curated", first, first), root / "checked", lint="-ALL")
    found = []
    for number, labels in enumerate(((first, first), (second, second), (third, wrong)), 1):
        write_span(root / f"data/span-{number}", *labels)
        local.run_pipeline(settings_of(root), f"{root}/work")
        found.append(local.read_report(f"{root}/work"))
    return found


@pytest.mark.slow
def test_labels_keep_their_numbers_over_spans_and_bad_models_are_not_pushed(reports):
    """New labels follow the old ones; a model that is worse than the last one is not blessed."""
    assert [report.span for report in reports] == [1, 2, 3]
    assert [report.trained_on for report in reports] == [(1,), (1, 2), (2, 3)]
    labels = [report.dataset.labels for report in reports]
    assert labels == [("blue", "red"), ("blue", "red", "apple"), ("blue", "red", "apple", "green")]
    one, two, three = reports
    assert one.anomalies == ()
    assert any("image/class/text" in anomaly and "apple" in anomaly for anomaly in two.anomalies)
    assert (one.baseline, one.blessed) == (None, True)
    # Compared by names, the first model is right about two of three colours.
    assert two.baseline == pytest.approx(2 / 3)
    assert two.score > two.baseline
    assert two.blessed
    assert two.pushed_to is not None
    assert two.pushed_to != one.pushed_to
    assert (three.blessed, three.pushed_to) == (False, None)


@pytest.mark.slow
def test_labels_that_the_baseline_does_not_know_are_counted(root, reports):
    """TFMA counts the examples whose label the earlier model lacks."""
    _, second, _ = Metadata(str(root / "work/metadata.db")).artifacts("ModelEvaluation")
    metrics = tfma.load_eval_result(second.uri, model_name="baseline").get_metrics_for_slice()
    found = {name.rsplit("/", 1)[-1]: value["doubleValue"] for name, value in metrics.items()}
    assert (found["unknown_labels"], found["unknown_labels:apple"]) == (1, SPLITS["VALIDATION"])


@pytest.mark.slow
def test_each_training_begins_with_the_model_before(root, reports):
    """The Trainer reads the last blessed model."""
    metadata = Metadata(str(root / "work/metadata.db"))
    _, second, _ = metadata.artifacts("Model")
    [trainer] = [e for e in metadata.latest_run() if e.component == "Trainer"]
    assert [a.id for a in metadata.inputs(trainer) if a.type == "Model"] == [second.id]


KNOWN = b"'ape', 'bee'"


@pytest.mark.parametrize("sliced", [False, True])
def test_an_evaluation_without_a_common_label_fails(sliced):
    """A slice without a known label scores 0; a whole evaluation without one is an error."""
    config = eval_config("image_classification", 0.5)
    if sliced:
        config.slicing_specs.add(feature_keys=["class/text"])
    names = {"model_names": [""], "output_names": [""]}
    [computation] = LabelAccuracy().computations(eval_config=config, **names)
    [preprocessor] = computation.preprocessors
    parts = []
    for label in (b"dog", b"eel", b"eel"):
        names = {"unknown": np.array([label, b""], object), "known": np.array([KNOWN], object)}
        extracts = {"transformed_features": {"label": np.array([-1]), **names}}
        extracts |= {"labels": np.array([-1]), "example_weights": np.array([1.0])}
        scores = {"predictions": np.array([0.1, 0.9], np.float32)}
        [inputs] = preprocessor.process({**extracts, **scores})
        found = tfma.metrics.StandardMetricInputs(inputs)
        parts.append(computation.combiner.add_input(None, found))
    merged = computation.combiner.merge_accumulators(parts)
    if not sliced:
        message = "the model knows 'ape', 'bee', the examples have 'dog', 'eel'; evaluate it"
        with pytest.raises(DataError, match=message):
            computation.combiner.extract_output(merged)
        return
    found = computation.combiner.extract_output(merged)
    unknown = {"unknown_labels": 2, "unknown_labels:dog": 1, "unknown_labels:eel": 2}
    assert {key.name: value for key, value in found.items()} == {"accuracy": 0, **unknown}
