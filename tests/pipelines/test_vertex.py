"""``pipelines.vertex``: the job that it compiles, and the arguments that it refuses."""

import json
from dataclasses import replace

import pytest

from pipelines import vertex
from pipelines.pipeline import LOCAL_BEAM_ARGS
from recordgen.examplegen.parameters import OPTION_TYPES, given_options
from recordgen.options import ConvertOptions
from recordgen.training import TrainingConfig
from tests.vertex_service import serving, write_key

REQUIRED = [
    *("--project", "my-project", "--region", "us-central1", "--data", "gs://bucket/data"),
    *("--pipeline-root", "gs://bucket/root", "--image", "host/recordgen:1"),
]
GPU_IMAGE = ["--trainer-image", "host/recordgen:1-gpu"]
DATAFLOW = [
    *("--", "--runner=DataflowRunner", "--project=my-project", "--region=us-central1"),
    *("--temp_location=gs://bucket/root/dataflow", "--max_num_workers=20"),
    "--sdk_container_image=host/recordgen:1-dataflow",
]
OPTION_NAMES = OPTION_TYPES.keys() - {"task", "schema"}
OF_TRAINER = {"train_args", "custom_config"}
NAMES = {
    *("input_base", "input_config", "range_config", "output_config", "dataset_version"),
    *OPTION_NAMES,
    *OF_TRAINER,
    "eval_config",
}
ACCOUNT = "runner@my-project.iam.gserviceaccount.com"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile with further arguments, once for the same arguments; return the job."""
    folder = tmp_path_factory.mktemp("jobs")
    jobs = {}

    def compile_with(*arguments):
        if arguments not in jobs:
            path = folder / f"{len(jobs)}.json"
            assert vertex.main([*REQUIRED, "--output", str(path), *arguments]) == 0
            jobs[arguments] = json.loads(path.read_text())
        return jobs[arguments]

    return compile_with


def containers(job):
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    return {name.removesuffix("_executor"): e["container"] for name, e in executors.items()}


def test_what_may_differ_from_run_to_run_is_a_parameter(compiled):
    job = compiled()
    root = job["pipelineSpec"]["root"]
    assert set(root["inputDefinitions"]["parameters"]) == NAMES
    values = job["runtimeConfig"]["parameterValues"]
    assert set(values) == NAMES
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/root"
    assert values["input_base"] == "gs://bucket/data"
    assert json.loads(values["input_config"]) == {
        "splits": [{"name": "import", "pattern": "*.csv"}]
    }
    assert (values["range_config"], values["dataset_version"], values["train_args"]) == (
        "",
        "",
        "{}",
    )
    options = {name: values[name] for name in OPTION_NAMES}
    # Trainer and Evaluator need a split eval, so the conversion fails without one.
    assert given_options(options) == replace(ConvertOptions(fail_on=("NO_EVAL",)), confined=True)
    assert json.loads(values["custom_config"]) == TrainingConfig().to_custom_config()
    reached = {
        (task, name)
        for task, spec in root["dag"]["tasks"].items()
        for name, source in spec["inputs"].get("parameters", {}).items()
        if source.get("componentInputParameter") == name
    }
    elsewhere = {**dict.fromkeys(OF_TRAINER, "Trainer"), "eval_config": "Evaluator"}
    assert reached == {(elsewhere.get(name, "AutoMLExampleGen"), name) for name in NAMES}


def test_options_become_parameters(compiled):
    job = compiled(
        *("--pattern", "{YYYY}-{MM}-{DD}/*.csv", "--span", "20455", "--dataset-version", "v3"),
        *("--stored-image-size", "64max", "--split", "60,40,0", "--epochs", "3", "--seed", "7"),
        *("--dropout", "0.5", "--allow", "https,ftp", "--min-score", "0.9", "--threads", "2"),
    )
    values = job["runtimeConfig"]["parameterValues"]
    assert json.loads(values["range_config"])["static_range"]["start_span_number"] == 20455
    assert json.loads(values["input_config"])["splits"][0]["pattern"] == "{YYYY}-{MM}-{DD}/*.csv"
    assert values["dataset_version"] == "v3"
    names = ("image_size", "allow", "seed", "threads")
    assert [values[name] for name in names] == ["64max", "https,ftp", 7, 2]
    assert json.loads(values["output_config"])["split_config"]["splits"] == [
        {"name": "train", "hash_buckets": 60},
        {"name": "eval", "hash_buckets": 40},
    ]
    training = TrainingConfig(epochs=3, dropout=0.5, seed=7)
    assert json.loads(values["custom_config"]) == training.to_custom_config()
    [metric, _] = json.loads(values["eval_config"])["metrics_specs"][0]["metrics"]
    assert metric["threshold"]["value_threshold"]["lower_bound"] == 0.9


def test_machines_stand_in_the_containers(compiled):
    job = compiled(
        *("--machine", "Trainer=8,30,NVIDIA_TESLA_T4:2", "--machine", "AutoMLExampleGen=16,64"),
        *("--trainer-image", "host/recordgen:1-gpu"),
    )
    found = containers(job)
    assert found["Trainer"]["resources"] == {
        "cpuLimit": 8.0,
        "memoryLimit": 30.0,
        "accelerator": {"type": "NVIDIA_TESLA_T4", "count": "2"},
    }
    assert found["AutoMLExampleGen"]["resources"] == {"cpuLimit": 16.0, "memoryLimit": 64.0}
    assert [name for name in found if "resources" not in found[name]] == [
        *("Evaluator", "ExampleValidator", "Pusher", "SchemaGen", "StatisticsGen")
    ]
    assert {found[name]["image"] for name in found if name != "Trainer"} == {"host/recordgen:1"}
    assert found["Trainer"]["image"] == "host/recordgen:1-gpu"


def test_account_network_and_labels_are_in_the_job(compiled):
    job = compiled(
        *("--service-account", ACCOUNT, "--network", "projects/12/global/networks/inner"),
        *("--label", "team=vision", "--label", "cost=lab-2", "--name", "flowers"),
    )
    assert job["serviceAccount"] == ACCOUNT
    assert job["network"] == "projects/12/global/networks/inner"
    assert {"team": "vision", "cost": "lab-2"}.items() <= job["labels"].items()
    assert job["displayName"] == job["pipelineSpec"]["pipelineInfo"]["name"] == "flowers"
    plain = compiled()
    assert not {"serviceAccount", "network"} & set(plain)


def test_images_are_in_the_cache_key_unless_told_otherwise(compiled):
    def driver(job):
        return containers(job)["AutoMLExampleGen"]["lifecycle"]["preCacheCheck"]["command"]

    assert driver(compiled()) == ["python", "-m", "recordgen.examplegen.vertex_driver"]
    of_tfx = "tfx.orchestration.kubeflow.v2.file_based_example_gen.driver"
    assert driver(compiled("--no-fingerprint-images")) == ["python", "-m", of_tfx]


def test_each_beam_step_gets_the_flags_of_dataflow(compiled):
    job = compiled(*DATAFLOW)
    for step in ("AutoMLExampleGen", "StatisticsGen", "Evaluator"):
        assert arguments(job, step)[-len(DATAFLOW) + 1 :] == DATAFLOW[1:]


def arguments(job, step):
    return containers(job)[step]["args"]


def test_without_dataflow_all_steps_run_in_memory(compiled):
    assert arguments(compiled(), "StatisticsGen")[-len(LOCAL_BEAM_ARGS) :] == list(LOCAL_BEAM_ARGS)


def test_submit_sends_what_was_compiled(tmp_path, monkeypatch, capsys):
    write_key(tmp_path / "key.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    path = tmp_path / "job.json"
    with serving() as service:
        given = ["--output", str(path), "--submit", "--endpoint", service.url, "--span", "3"]
        assert vertex.main([*REQUIRED, *given, "--pattern", "{SPAN}/*.csv"]) == 0
    [request] = service.requests
    assert request["body"] == json.loads(path.read_text())
    printed = capsys.readouterr().out
    assert f"compiled   {path}\n" in printed
    assert "submitted  projects/my-project/locations/us-central1/pipelineJobs/recordgen-" in printed


# further arguments, what the error names
WRONG = [
    (["--pipeline-root", "/root"], "--pipeline-root"),
    (["--serving-dir", "gs://"], "--serving-dir"),
    (["--data", "s3://bucket/x"], "--data"),
    (["--machine", "Trainer"], "--machine"),
    (["--machine", "Trainer=8,30,NVIDIA_L4"], "NVIDIA_L4"),
    (["--machine", "Trainer=8,30,NVIDIA_T4", *GPU_IMAGE], "NVIDIA_T4"),
    (["--machine", "Trainer=8,30,NVIDIA_L4:3", *GPU_IMAGE], "--machine Trainer"),
    (["--machine", "Tuner=8,30"], "'Tuner'"),
    (["--span", "3"], "span"),
    (["--epochs", "0"], "epochs"),
    (["--", "--runer=DataflowRunner"], "--runer"),
    (["--", "--runner=DataflowRunner", "--region=us-central1"], "--project"),
]


@pytest.mark.parametrize(("arguments", "named"), WRONG)
def test_a_wrong_setting_is_one_line_and_no_file_is_written(tmp_path, arguments, named, capsys):
    path = tmp_path / "job.json"
    assert vertex.main([*REQUIRED, "--output", str(path), *arguments]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert (line.startswith("error: "), named in line) == (True, True)
    assert not path.exists()
