"""``python -m pipelines.kubeflow`` compiles packages for clusters, with every supported kfp."""

import pytest

from pipelines import kubeflow
from pipelines.kubeflow import IMAGE, compile_pipeline, create_pipeline
from pipelines.settings import Machine
from recordgen.options import OPTIONS
from recordgen.training.config import TRAINING_OPTIONS
from recordgen.version import __version__
from tests.steps import content

DEFAULT = "defaultValue"

CONVERT = "convert-images-to-tfrecords"
STEPS = {"fingerprint", CONVERT, "statistics", "train", "evaluate"}

# Settings of a package that several tests share, because compiling one takes seconds.
FULL = {
    "pipeline_root": "minio://mlpipeline/v2/artifacts",
    "serving_dir": "gs://bucket/serving",
    "retries": 3,
    "machines": {"convert": Machine(8, 6), "train": Machine(4, 16, "NVIDIA_TESLA_T4", 2)},
    "train_image": "registry/recordgen:1-gpu",
}


# The steps that look at files, or at a serving folder, that others change.
NOT_CACHED = ("fingerprint", "evaluate", "push")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return a function that compiles the pipeline once for each set of settings."""

    done = {}

    def compile_once(**settings):
        key = repr(settings)
        if key not in done:
            path = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
            compile_pipeline(str(path), **settings)
            done[key] = content(path)
        return done[key]

    return compile_once


@pytest.fixture(scope="module")
def of_command(tmp_path_factory):
    """The package that the command compiles with other settings."""
    path = tmp_path_factory.mktemp("command") / "made/pipeline.yaml"
    arguments = ["--output", str(path), "--name", "flowers", "--pipeline-root", "gs://b/r"]
    arguments += ["--image", "registry/recordgen:1", "--serving-dir", "gs://b/s", "--no-caching"]
    arguments += ["--machine", "train=4,16,nvidia.com/gpu", "--retries", "0"]
    arguments += ["--train-image", "registry/recordgen:1-gpu", "--no-fingerprint"]
    assert kubeflow.main(arguments) == 0
    return content(path)


def tasks_of(specification):
    """Return all tasks, including conditional ones."""
    tasks = dict(specification["root"]["dag"]["tasks"])
    for component in specification["components"].values():
        tasks.update(component.get("dag", {}).get("tasks", {}))
    return {name: task for name, task in tasks.items() if not name.startswith("condition")}


def executors_of(specification):
    executors = specification["deploymentSpec"]["executors"].items()
    return {name.removeprefix("exec-"): item["container"] for name, item in executors}


def test_steps_share_an_image_and_hand_on_dataset_and_model(compiled):
    specification = compiled()
    tasks = specification["root"]["dag"]["tasks"]
    assert set(tasks) == STEPS
    for name in STEPS - {CONVERT, "fingerprint"}:
        given = tasks[name]["inputs"]["artifacts"]["dataset"]["taskOutputArtifact"]
        assert given["producerTask"] == CONVERT
    model = tasks["evaluate"]["inputs"]["artifacts"]["model"]["taskOutputArtifact"]
    assert model == {"outputArtifactKey": "model", "producerTask": "train"}
    for container in executors_of(specification).values():
        assert container["image"] == IMAGE
        assert container["command"][:3] == ["python", "-m", "recordgen.kubeflow"]
        assert container["args"] == ["--executor-input", "{{$}}"]


def test_every_option_is_a_parameter_that_reaches_its_step(compiled):
    specification = compiled()
    parameters = specification["root"]["inputDefinitions"]["parameters"]
    own = {"source", "beam_args", "transfer", "eval_split", "min_score", "min_change"}
    own.add("stored_image_size")
    assert set(parameters) == {*OPTIONS, *TRAINING_OPTIONS, *own}
    assert {name for name, item in parameters.items() if "defaultValue" not in item} == {"source"}
    assert all(item["description"] for item in parameters.values())
    tasks = specification["root"]["dag"]["tasks"]
    for task, names in (
        (CONVERT, {"source", "stored_image_size", *OPTIONS} - {"image_size"}),
        ("fingerprint", {"source", "stored_image_size", *OPTIONS} - {"image_size"}),
        ("train", {*TRAINING_OPTIONS}),
        ("evaluate", {"eval_split", "min_score", "min_change"}),
    ):
        given = tasks[task]["inputs"]["parameters"].values()
        assert names <= {item.get("componentInputParameter") for item in given}


def test_one_parameter_serves_options_of_one_name():
    assert set(OPTIONS) & set(TRAINING_OPTIONS) == {"seed", "image_size"}
    seed = create_pipeline().component_spec.inputs["seed"]
    assert "; in train: decides weights" in seed.description


def test_parameters_are_those_of_the_steps(compiled):
    specification = compiled()
    parameters = specification["root"]["inputDefinitions"]["parameters"]
    passed = set()
    for task in specification["root"]["dag"]["tasks"].values():
        inputs = specification["components"][task["componentRef"]["name"]]["inputDefinitions"]
        for name, given in task["inputs"].get("parameters", {}).items():
            if "componentInputParameter" not in given:
                continue  # an output of another step
            parameter = given["componentInputParameter"]
            if name in ("min_score", "fail_on"):
                passed.add(parameter)
                continue  # its default is the pipeline's own
            known = {key: inputs["parameters"][name].get(key) for key in ("parameterType", DEFAULT)}
            assert {key: parameters[parameter].get(key) for key in known} == known, name
            passed.add(parameter)
    assert set(parameters) == passed
    assert parameters["min_score"]["defaultValue"] == 0.8


def test_pipeline_roots(compiled, of_command):
    packages = (compiled(**FULL), of_command, compiled())
    found = [package.get("defaultPipelineRoot") for package in packages]
    assert found == [FULL["pipeline_root"], "gs://b/r", None]


def test_steps_of_data_and_models_that_others_change_are_not_cached(compiled, of_command):
    specification = compiled(**FULL)
    for name, task in tasks_of(specification).items():
        assert task["retryPolicy"]["maxRetryCount"] == 3
        assert task["retryPolicy"]["backoffDuration"] == "30s"
        assert task["cachingOptions"].get("enableCache", False) is (name not in NOT_CACHED)
    for task in tasks_of(of_command).values():
        assert not task["cachingOptions"].get("enableCache", False)
        assert not task["retryPolicy"].get("maxRetryCount")


def test_only_training_has_an_accelerator(compiled):
    executors = executors_of(compiled(**FULL))
    resources = {name: item.get("resources", {}) for name, item in executors.items()}
    convert = resources["convert-images-to-tfrecords"]
    assert (convert["cpuRequest"], convert["cpuLimit"], convert["memoryLimit"]) == (8, 8, 6)
    assert resources["evaluate"]["memoryLimit"] == 16
    accelerator = resources["train"]["accelerator"]
    assert accelerator.get("resourceType", accelerator.get("type")) == "NVIDIA_TESLA_T4"
    assert accelerator.get("resourceCount", accelerator.get("count")) == "2"
    assert not [name for name in resources if name != "train" and "accelerator" in resources[name]]


def test_only_a_blessed_model_is_pushed(compiled):
    tasks = tasks_of(compiled(**FULL))
    assert set(tasks) == {*STEPS, "push"}
    given = tasks["push"]["inputs"]
    evaluation = given["artifacts"]["evaluation"]["taskOutputArtifact"]
    assert evaluation == {"outputArtifactKey": "metrics", "producerTask": "evaluate"}
    for name in ("push", "evaluate"):
        folder = tasks[name]["inputs"]["parameters"]["serving_dir"]["runtimeValue"]["constant"]
        assert folder == "gs://bucket/serving"
    assert set(tasks_of(compiled())) == STEPS


def test_changed_files_are_a_change_of_the_conversion(compiled, of_command):
    tasks = tasks_of(compiled())
    assert tasks[CONVERT]["inputs"]["parameters"]["dataset_version"]["taskOutputParameter"] == {
        "outputParameterKey": "fingerprint",
        "producerTask": "fingerprint",
    }
    assert "fingerprint" not in tasks_of(of_command)
    assert "dataset_version" in of_command["root"]["inputDefinitions"]["parameters"]


def test_the_command_compiles_with_its_settings(of_command):
    executors = executors_of(of_command)
    images = {name: item["image"] for name, item in executors.items()}
    assert images.pop("train") == "registry/recordgen:1-gpu"
    assert set(images.values()) == {"registry/recordgen:1"}
    assert of_command["pipelineInfo"]["name"] == "flowers"
    assert "accelerator" in executors["train"]["resources"]
    push = tasks_of(of_command)["push"]["inputs"]["parameters"]
    assert push["serving_dir"]["runtimeValue"]["constant"] == "gs://b/s"


# arguments, what the error names
WRONG = [
    (["--output", "p.txt"], "p.txt"),
    (["--machine", "train=many,4"], "--machine"),
    (["--machine", "train=4"], "--machine"),
    (["--machine", "train=0,4"], "--machine"),
    (["--machine", "train=4,4,nvidia.com/gpu"], "nvidia.com/gpu"),
    (["--machine", "tuner=4,4"], "convert, "),
]


@pytest.mark.parametrize(("arguments", "named"), WRONG)
def test_a_wrong_setting_is_one_line_and_no_package_is_written(arguments, named, tmp_path, capsys):
    path = tmp_path / "pipeline.yaml"
    assert kubeflow.main(["--output", str(path), *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert named in line
    assert not path.exists()


def test_image_is_of_this_version():
    assert f"recordgen:{__version__}" == IMAGE
