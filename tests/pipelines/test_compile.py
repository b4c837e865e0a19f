"""The components of the pipeline agree on task, measure and features."""

import json
from dataclasses import replace
from importlib import import_module

import pytest
from google.protobuf import json_format
from tensorflow_model_analysis import EvalConfig
from tfx.utils import dependency_utils

from pipelines.pipeline import LOCAL_BEAM_ARGS, create_local_pipeline, eval_config
from pipelines.settings import Settings
from recordgen.options import ConvertOptions
from recordgen.registry import OWN

SETTINGS = Settings(input_base="gs://bucket/data", pattern="{YYYY}-{MM}-{DD}/*.csv")


def test_tfx_is_not_packed_for_workers_on_this_machine(monkeypatch):
    """A step in this process starts at once, because no worker needs TFX's sources."""
    monkeypatch.setattr(dependency_utils, "build_ephemeral_package", pytest.fail)
    flags = list(LOCAL_BEAM_ARGS)
    assert dependency_utils.make_beam_dependency_flags(flags) == flags


MEASURES = {"image_classification": "accuracy", "image_multi_label": "auc"}
MEASURES |= {"object_detection": "map"}


@pytest.mark.parametrize("task", OWN)
def test_the_threshold_is_for_the_measure_of_the_task(task):
    """The Evaluator's metric exists, and has the task's name and the given bound."""
    config = eval_config(task, 0.75)
    [metrics] = config.metrics_specs
    [metric] = [metric for metric in metrics.metrics if metric.HasField("threshold")]
    assert metric.threshold.value_threshold.lower_bound.value == 0.75
    assert eval_config(task, 0.5) != config
    found = getattr(import_module(metric.module or "keras.metrics"), metric.class_name)
    settings = json.loads(metric.config)
    assert settings == {"name": MEASURES.get(task, settings["name"])}
    assert found(**settings).name == settings["name"]


def steps_of(options):
    """Return the components of a pipeline by name."""
    pipeline = create_local_pipeline(replace(SETTINGS, options=options), "work")
    return {step.id: step for step in pipeline.components}


@pytest.mark.parametrize("given", ["auto", *MEASURES])
def test_one_task_in_all_steps(given):
    """Conversion and Evaluator have the same task, also a default one."""
    task = "image_classification" if given == "auto" else given
    steps = steps_of(ConvertOptions(task=given))
    assert steps["AutoMLExampleGen"].exec_properties["task"] == task
    measured = steps["Evaluator"].exec_properties["eval_config"]
    assert json_format.Parse(measured, EvalConfig()) == eval_config(task, SETTINGS.min_score)


def test_declared_columns_in_all_steps():
    """StatisticsGen sees the declared columns without their bytes."""
    schema = '{"front": "image", "back": "image", "age": "int", "breed": "label"}'
    steps = steps_of(ConvertOptions(schema=schema))
    given = steps["AutoMLExampleGen"].exec_properties
    assert (given["task"], json.loads(given["schema"])) == ("declared", json.loads(schema))
    options = json.loads(steps["StatisticsGen"].exec_properties["stats_options_json"])
    assert options["_feature_allowlist"] == [
        *("age", "back/format", "back/height", "back/width"),
        *("breed/label", "breed/text", "front/format", "front/height", "front/width"),
    ]
