"""Models of two spans with different labels, in TFX's Trainer and Evaluator."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow_model_analysis as tfma
from tfx import v1 as tfx

from pipelines.pipeline import eval_config
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import DataError
from recordgen.examplegen import AutoMLExampleGen
from recordgen.kubeflow.evaluate import evaluate
from recordgen.training.tfma_metrics import LabelAccuracy
from tests.trainer import write_texts

COUNT = 16
TASK = "text_classification"


def example_gen(folder, name, *labels):
    data = folder / "data" / name
    write_texts(data / "a.csv", *labels, count=COUNT)
    return AutoMLExampleGen(str(data), task=TASK, lint="-ALL").with_id(f"{name}_examples")


def trainer(examples, name):
    return tfx.components.Trainer(
        run_fn="recordgen.training.run_fn",
        examples=examples.outputs["examples"],
        custom_config={"batch_size": 8, "epochs": 5, "learning_rate": 0.05},
        train_args=tfx.proto.TrainArgs(),
        eval_args=tfx.proto.EvalArgs(),
    ).with_id(f"{name}_trainer")


@pytest.fixture(scope="module")
def run(tmp_path_factory, run_tfx):
    """The uris of the artifacts of a run, by component and output.

    A model of ape, bee and cat is the baseline; the candidate, and the data, have bee, cat and dog.
    """
    root = tmp_path_factory.mktemp("spans")
    old, new = (
        example_gen(root, "old", "ape", "bee", "cat"),
        example_gen(root, "new", "bee", "cat", "dog"),
    )
    baseline, candidate = trainer(old, "old"), trainer(new, "new")
    config = eval_config(TASK, 0.9)
    change = config.metrics_specs[0].metrics[0].threshold.change_threshold
    change.direction = tfma.MetricDirection.HIGHER_IS_BETTER
    change.absolute.value = 0.3
    evaluator = tfx.components.Evaluator(
        examples=new.outputs["examples"],
        model=candidate.outputs["model"],
        baseline_model=baseline.outputs["model"],
        eval_config=config,
    )
    steps = (old, new, baseline, candidate, evaluator)
    metadata = run_tfx(root / "work", *steps)
    return {
        f"{execution.component}/{artifact.type}": artifact.uri
        for execution in metadata.latest_run()
        for artifact in metadata.outputs(execution)
    }


def metrics_of(run, *model):
    """Return the Evaluator's metrics of a model, or of the only model."""
    result = tfma.load_eval_result(run["Evaluator/ModelEvaluation"], model_name=" ".join(model))
    found = result.get_metrics_for_slice()
    return {name.rsplit("/", 1)[-1]: value["doubleValue"] for name, value in found.items()}


@pytest.mark.slow
def test_a_baseline_scores_by_the_names_of_its_labels(run):
    known = metrics_of(run, "candidate")
    assert (known["accuracy"], known["unknown_labels"]) == (1, 0)
    found = metrics_of(run, "baseline")
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert (found["unknown_labels"], found["unknown_labels:dog"]) == (1, COUNT)
    assert Path(run["Evaluator/ModelBlessing"], "BLESSED").exists()
    examples = run["new_examples/Examples"]
    step = evaluate(
        f"{run['old_trainer/Model']}/Format-Serving", examples, read_dataset(examples), "eval"
    )
    assert found["accuracy"] == pytest.approx(step.score)


@pytest.mark.parametrize("sliced", [False, True])
def test_an_evaluation_without_a_common_label_fails(sliced):
    config = eval_config(TASK, 0.5)
    if sliced:
        config.slicing_specs.add(feature_keys=["class/text"])
    [computation] = LabelAccuracy().computations(
        eval_config=config, model_names=[""], output_names=[""]
    )
    [preprocessor] = computation.preprocessors
    parts = []
    for label in (b"dog", b"eel", b"eel"):
        extracts = {
            "labels": np.array([-1]),
            "predictions": np.array([0.1, 0.9], np.float32),
            "example_weights": np.array([1.0]),
            "transformed_features": {
                "unknown": np.array([label, b""], object),
                "known": np.array([b"'ape', 'bee'"], object),
                "label": np.array([-1]),
            },
        }
        [inputs] = preprocessor.process(extracts)
        found = tfma.metrics.StandardMetricInputs(inputs)
        parts.append(computation.combiner.add_input(None, found))
    merged = computation.combiner.merge_accumulators(parts)
    if not sliced:
        message = "the model knows 'ape', 'bee', the examples have 'dog', 'eel'; evaluate it"
        with pytest.raises(DataError, match=message):
            computation.combiner.extract_output(merged)
        return
    found = computation.combiner.extract_output(merged)
    assert {key.name: value for key, value in found.items()} == {
        "accuracy": 0,
        "unknown_labels": 2,
        "unknown_labels:dog": 1,
        "unknown_labels:eel": 2,
    }
