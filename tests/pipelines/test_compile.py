"""The pipeline compiles for Vertex AI, and runs through the programs that Vertex AI starts."""

import json
from dataclasses import replace
from importlib import import_module

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from PIL import Image
from tensorflow_model_analysis import EvalConfig
from tfx import v1 as tfx
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor
from tfx.orchestration.kubeflow.v2.file_based_example_gen import driver
from tfx.utils import dependency_utils

from pipelines.pipeline import LOCAL_BEAM_ARGS, create_local_pipeline, eval_config
from pipelines.settings import Settings
from recordgen.core.dataset.manifest import read_dataset
from recordgen.examplegen import AutoMLExampleGen
from recordgen.options import ConvertOptions
from recordgen.registry import OWN


def compile_pipeline(pipeline, path, *, spec_2_1=True):
    config = tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
        default_image="example.com/tfx:1", use_pipeline_spec_2_1=spec_2_1
    )
    runner = tfx.orchestration.experimental.KubeflowV2DagRunner(config, output_filename=str(path))
    runner.run(pipeline, write_out=True)
    return json.loads(path.read_text())["pipelineSpec"]


SETTINGS = Settings(input_base="gs://bucket/data", pattern="{YYYY}-{MM}-{DD}/*.csv")


def test_tfx_is_not_packed_for_workers_on_this_machine(monkeypatch):
    """A step in this process starts at once, because no worker needs TFX's sources."""
    monkeypatch.setattr(dependency_utils, "build_ephemeral_package", pytest.fail)
    flags = list(LOCAL_BEAM_ARGS)
    assert dependency_utils.make_beam_dependency_flags(flags) == flags


def test_runtime_parameters_compile(tmp_path):
    example_gen = AutoMLExampleGen(
        RuntimeParameter("data", ptype=str),
        seed=RuntimeParameter("seed", ptype=int, default=3),
        max_reject_fraction=RuntimeParameter("rejects", ptype=float, default=0.5),
        dataset_version=RuntimeParameter("dataset_version", ptype=str),
    )
    pipeline = tfx.dsl.Pipeline("flowers", "gs://bucket/root", components=[example_gen])
    spec = compile_pipeline(pipeline, tmp_path / "p.json")
    inputs = spec["root"]["inputDefinitions"]["parameters"]
    assert set(inputs) == {"data", "seed", "rejects", "dataset_version"}
    given = spec["root"]["dag"]["tasks"]["AutoMLExampleGen"]["inputs"]["parameters"]
    assert given["seed"]["componentInputParameter"] == "seed"


MEASURES = {
    "image_classification": "accuracy",
    "image_multi_label": "auc",
    "object_detection": "map",
}


@pytest.mark.parametrize("task", OWN)
def test_the_threshold_is_for_the_measure_of_the_task(task):
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


@pytest.mark.parametrize(
    ("given", "task"),
    [
        # --task of the conversion; the task of conversion, training and evaluation
        ("auto", "image_classification"),
        ("image_classification", "image_classification"),
        ("image_multi_label", "image_multi_label"),
        ("object_detection", "object_detection"),
    ],
)
def test_one_task_in_all_steps(given, task):
    steps = steps_of(ConvertOptions(task=given))
    assert steps["AutoMLExampleGen"].exec_properties["task"] == task
    measured = steps["Evaluator"].exec_properties["eval_config"]
    assert json_format.Parse(measured, EvalConfig()) == eval_config(task, SETTINGS.min_score)


def test_declared_columns_in_all_steps():
    schema = '{"front": "image", "back": "image", "age": "int", "breed": "label"}'
    steps = steps_of(ConvertOptions(schema=schema))
    given = steps["AutoMLExampleGen"].exec_properties
    assert (given["task"], json.loads(given["schema"])) == ("declared", json.loads(schema))
    options = json.loads(steps["StatisticsGen"].exec_properties["stats_options_json"])
    assert options["_feature_allowlist"] == [
        *("age", "back/format", "back/height", "back/width"),
        *("breed/label", "breed/text", "front/format", "front/height", "front/width"),
    ]


@pytest.mark.parametrize("spec_2_1", [False, True])
def test_vertex_driver_and_container(tmp_path, spec_2_1):
    """The programs that Vertex AI starts for the component work: TFX's driver, then the container.

    Our own driver does not run; numbers arrive as JSON doubles (schema 2.1), or the driver's
    results do not arrive at all (2.0).
    """
    for day, count in (("2026-01-01", 2), ("2026-01-02", 5)):
        folder = tmp_path / "data" / day
        folder.mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (4, 4), (number, 0, 0)).save(folder / f"{number}.png")
        rows = (f"TRAIN,{number}.png,a\n" for number in range(count))
        (folder / "a.csv").write_text("".join(rows))
    example_gen = AutoMLExampleGen(
        str(tmp_path / "data"),
        input_config=tfx.proto.Input(
            splits=[tfx.proto.Input.Split(name="all", pattern="{YYYY}-{MM}-{DD}/*.csv")]
        ),
        seed=5,
        fail_on="none",
    )
    pipeline = tfx.dsl.Pipeline("flowers", str(tmp_path / "root"), components=[example_gen])
    spec = compile_pipeline(pipeline, tmp_path / "p.json", spec_2_1=spec_2_1)
    definitions = spec["components"]["AutoMLExampleGen"]
    task = spec["root"]["dag"]["tasks"]["AutoMLExampleGen"]
    key, kind = ("parameterValues", "constant") if spec_2_1 else ("parameters", "constantValue")
    values = {
        name: value["runtimeValue"][kind] for name, value in task["inputs"]["parameters"].items()
    }
    [output] = definitions["outputDefinitions"]["artifacts"].values()
    uri = str(tmp_path / "examples")
    result = tmp_path / "result/executor_output.json"
    invocation = pipeline_spec_pb2.ExecutorInput()
    json_format.ParseDict(
        {
            "inputs": {key: values},
            "outputs": {
                "artifacts": {
                    "examples": {
                        "artifacts": [{"name": "1", "uri": uri, "type": output["artifactType"]}]
                    }
                },
                "outputFile": str(result),
            },
        },
        invocation,
    )
    arguments = [
        "--json_serialized_invocation_args",
        json_format.MessageToJson(invocation),
    ]
    if spec_2_1:
        definition = json.dumps(definitions["inputDefinitions"])
        arguments += ["--json_serialized_inputs_spec_args", definition]
    driver.main(driver._parse_flags(["driver", *arguments]))
    name = "recordgen.examplegen.executor.AutoMLExampleGenExecutor"
    kubeflow_v2_run_executor.main(
        kubeflow_v2_run_executor._parse_flags(
            ["executor", "--executor_class_path", name, *arguments]
        )
    )
    dataset = read_dataset(uri)
    assert (dataset.examples, dataset.seed) == (5, 5)
    written = json.loads(result.read_text())["artifacts"]["examples"]["artifacts"][0]["metadata"]
    assert written["span"] == 20455  # days from 1970 to 2026-01-02
    assert written["split_names"] == '["train"]'
    assert written["dataset_digest"] == dataset.digest
