"""``pipelines.vertex``: the job that it compiles, and the arguments that it refuses."""

import json
from functools import cache

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

from pipelines import vertex
from pipelines.pipeline import LOCAL_BEAM_ARGS
from recordgen.examplegen.driver import OPTION_TYPES

REQUIRED = [
    *("--data", "gs://bucket/data", "--pipeline-root", "gs://bucket/root"),
    *("--image", "host/recordgen:1"),
]
DATAFLOW = [
    *("--", "--runner=DataflowRunner", "--project=my-project", "--region=us-central1"),
    *("--temp_location=gs://bucket/root/dataflow", "--max_num_workers=20"),
    "--sdk_container_image=host/recordgen:1-dataflow",
]
# Parameters of the job, and the steps that they reach.
NAMES = {
    **dict.fromkeys(("input_base", "range_config", "dataset_version"), "AutoMLExampleGen"),
    **dict.fromkeys(("train_args", "custom_config"), "Trainer"),
    "eval_config": "Evaluator",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile with further arguments, once for the same arguments; return the job."""
    folder = tmp_path_factory.mktemp("jobs")

    @cache
    def compile_with(*arguments):
        path = folder / f"{hash(arguments)}.json"
        assert vertex.main([*REQUIRED, "--output", str(path), *arguments]) == 0
        return json.loads(path.read_text())

    return compile_with


def containers(job):
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    return {name.removesuffix("_executor"): e["container"] for name, e in executors.items()}


def compiled_in(job):
    """Return the values of AutoMLExampleGen that no parameter replaces."""
    inputs = job["pipelineSpec"]["root"]["dag"]["tasks"]["AutoMLExampleGen"]["inputs"]
    given = inputs["parameters"].items()
    return {n: it["runtimeValue"]["constant"] for n, it in given if "runtimeValue" in it}


def test_what_may_differ_from_run_to_run_is_a_parameter(compiled):
    """Folder, span, version, training and threshold; given options are compiled in, no defaults."""
    job = compiled()
    root, values = job["pipelineSpec"]["root"], job["runtimeConfig"]["parameterValues"]
    assert set(root["inputDefinitions"]["parameters"]) == set(values) == set(NAMES)
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/root"
    assert values["input_base"] == "gs://bucket/data"
    names = ("range_config", "dataset_version", "train_args", "custom_config")
    assert [values[name] for name in names] == ["", "", "{}", "{}"]
    reached = {
        name: task
        for task, spec in root["dag"]["tasks"].items()
        for name, source in spec["inputs"].get("parameters", {}).items()
        if source.get("componentInputParameter") == name
    }
    assert reached == NAMES
    fixed = compiled_in(job)
    assert json.loads(fixed["input_config"]) == {"splits": [{"name": "import", "pattern": "*.csv"}]}
    # Trainer and Evaluator need a split eval, so the conversion fails without one.
    options = {name: fixed[name] for name in OPTION_TYPES if name in fixed}
    assert options == {"task": "image_classification", "fail_on": "NO_EVAL"}


def test_options_are_in_the_job(compiled):
    """What the command line says reaches the conversion, the training and the threshold."""
    job = compiled(
        *("--pattern", "{YYYY}-{MM}-{DD}/*.csv", "--span", "20455", "--dataset-version", "v3"),
        *("--stored-image-size", "64max", "--split", "60,40,0", "--epochs", "3", "--seed", "7"),
        *("--dropout", "0.5", "--allow", "https,ftp", "--min-score", "0.9", "--threads", "2"),
    )
    values, fixed = job["runtimeConfig"]["parameterValues"], compiled_in(job)
    assert json.loads(values["range_config"])["static_range"]["start_span_number"] == 20455
    assert json.loads(fixed["input_config"])["splits"][0]["pattern"] == "{YYYY}-{MM}-{DD}/*.csv"
    assert values["dataset_version"] == "v3"
    names = ("image_size", "allow", "seed", "threads")
    assert [fixed[name] for name in names] == ["64max", "https,ftp", 7, 2]
    splits = json.loads(fixed["output_config"])["split_config"]["splits"]
    assert splits == [{"name": "train", "hash_buckets": 60}, {"name": "eval", "hash_buckets": 40}]
    assert json.loads(values["custom_config"]) == {"epochs": 3, "dropout": 0.5, "seed": 7}
    [metric, _] = json.loads(values["eval_config"])["metrics_specs"][0]["metrics"]
    assert metric["threshold"]["value_threshold"]["lower_bound"] == 0.9


def test_the_trainer_may_have_an_image_of_its_own(compiled):
    """All other steps have the common image."""
    found = containers(compiled("--trainer-image", "host/recordgen:1-gpu"))
    assert {found[name]["image"] for name in found if name != "Trainer"} == {"host/recordgen:1"}
    assert found["Trainer"]["image"] == "host/recordgen:1-gpu"


def test_images_are_in_the_cache_key_unless_told_otherwise(compiled):
    """Recordgen's driver takes the place of TFX's, which looks only at import files."""

    def driver(job):
        return containers(job)["AutoMLExampleGen"]["lifecycle"]["preCacheCheck"]["command"]

    assert driver(compiled()) == ["python", "-m", "recordgen.examplegen.vertex_driver"]
    of_tfx = "tfx.orchestration.kubeflow.v2.file_based_example_gen.driver"
    assert driver(compiled("--no-fingerprint-images")) == ["python", "-m", of_tfx]


def test_each_beam_step_gets_the_flags_of_dataflow(compiled):
    """All steps that use Beam get the flags behind ``--``, else those for runs in memory."""
    assert arguments(compiled(), "StatisticsGen")[-len(LOCAL_BEAM_ARGS) :] == list(LOCAL_BEAM_ARGS)
    job = compiled(*DATAFLOW)
    for step in ("AutoMLExampleGen", "StatisticsGen", "Evaluator"):
        assert arguments(job, step)[-len(DATAFLOW) + 1 :] == DATAFLOW[1:]


def arguments(job, step):
    return containers(job)[step]["args"]


def test_the_client_of_google_starts_the_job_with_other_parameters(compiled, tmp_path):
    """``PipelineJob`` takes steps and parameters from the file, and checks the given ones."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps(compiled()))

    def started(**given):
        place = {"project": "my-project", "location": "us-central1"}
        place |= {"credentials": AnonymousCredentials(), "template_path": str(path)}
        job = aiplatform.PipelineJob(display_name="flowers", parameter_values=given, **place)
        return job.to_dict()

    made, job = started(dataset_version="v4"), compiled()
    assert made["pipelineSpec"] == job["pipelineSpec"]
    values = job["runtimeConfig"]["parameterValues"]
    assert made["runtimeConfig"]["parameterValues"] == {**values, "dataset_version": "v4"}
    assert made["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/root"
    with pytest.raises(ValueError, match="epoch"):
        started(epoch=3)


# further arguments, what the error names
WRONG = [
    (["--pipeline-root", "/root"], "--pipeline-root"),
    (["--serving-dir", "gs://"], "--serving-dir"),
    (["--data", "s3://bucket/x"], "--data"),
    (["--span", "3"], "span"),
    (["--epochs", "0"], "epochs"),
    (["--", "--runer=DataflowRunner"], "--runer"),
    (["--", "--runner=DataflowRunner", "--region=us-central1"], "--project"),
]


@pytest.mark.parametrize(("arguments", "named"), WRONG)
def test_a_wrong_setting_is_one_line_and_no_file_is_written(tmp_path, arguments, named, capsys):
    """The line names the option, and no job is written."""
    path = tmp_path / "job.json"
    assert vertex.main([*REQUIRED, "--output", str(path), *arguments]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert (line.startswith("error: "), named in line) == (True, True)
    assert not path.exists()
