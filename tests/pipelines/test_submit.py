"""``pipelines.submit``: the request that is sent to Vertex AI, and errors if it is refused."""

import base64
import json
import re

import pytest
import yaml
from kfp import compiler, dsl

from pipelines import submit
from pipelines.component import load_step
from pipelines.kubeflow import compile_pipeline
from recordgen.training import TrainingConfig
from tests.vertex_service import serving, write_key

TYPES = {
    "seed": {"parameterType": "NUMBER_INTEGER"},
    **{
        name: {"parameterType": "STRING"}
        for name in (
            *("input_base", "input_config", "range_config", "dataset_version", "train_args"),
            *("eval_config", "custom_config", "compression", "allow", "image_size"),
        )
    },
}
BOUND = {"value_threshold": {"lower_bound": 0.8}}
JOB = {
    "displayName": "flowers",
    "labels": {"team": "vision"},
    "serviceAccount": "runner@my-project.iam.gserviceaccount.com",
    "pipelineSpec": {
        "pipelineInfo": {"name": "flowers"},
        "schemaVersion": "2.1.0",
        "root": {"inputDefinitions": {"parameters": TYPES}},
    },
    "runtimeConfig": {
        "gcsOutputDirectory": "gs://bucket/root",
        "parameterValues": {
            "input_base": "gs://bucket/data",
            "input_config": '{"splits": [{"name": "import", "pattern": "span-{SPAN}/*.csv"}]}',
            "range_config": "",
            "dataset_version": "",
            "train_args": "{}",
            "eval_config": json.dumps({"metrics_specs": [{"metrics": [{"threshold": BOUND}]}]}),
            "custom_config": json.dumps(TrainingConfig(epochs=4).to_custom_config()),
            "seed": 0,
            "image_size": "",
            "compression": "none",
            "allow": "none",
        },
    },
}


@pytest.fixture
def service():
    with serving() as running:
        yield running


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(JOB))
    return str(path)


@pytest.fixture
def send(service, tmp_path, monkeypatch):
    """Run the command against the emulated service, with the key of a service account."""
    write_key(tmp_path / "key.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))

    def run(*arguments):
        where = ["--project", "my-project", "--region", "us-central1", "--endpoint", service.url]
        return submit.main([*arguments, *where])

    return run


def test_the_job_is_the_body_of_one_request(service, send, job, capsys):
    span = '{"static_range": {"start_span_number": 7, "end_span_number": 7}}'
    given = []
    for setting in (
        *("dataset_version=2026-11", "image_size=64max", "epochs=9", "min_score=0.9", "seed=5"),
        *(f"range_config={span}", 'train_args={"num_steps": 500}'),
    ):
        given += ["--parameter", setting]
    assert send(job, *given) == 0
    [request] = service.requests
    assert request["path"] == "/v1/projects/my-project/locations/us-central1/pipelineJobs"
    assert re.fullmatch(r"flowers-\d{14}", request["query"]["pipelineJobId"])
    values = {
        **JOB["runtimeConfig"]["parameterValues"],
        "range_config": span,
        "seed": 5,
        "train_args": '{"num_steps": 500}',
        "dataset_version": "2026-11",
        "image_size": "64max",
        "custom_config": json.dumps(TrainingConfig(epochs=9, seed=5).to_custom_config()),
        "eval_config": JOB["runtimeConfig"]["parameterValues"]["eval_config"].replace("0.8", "0.9"),
    }
    runtime = {**JOB["runtimeConfig"], "parameterValues": values}
    assert request["body"] == {**JOB, "runtimeConfig": runtime}
    printed = capsys.readouterr().out
    name = f"projects/my-project/locations/us-central1/pipelineJobs/{_job_id(request)}"
    assert f"submitted  {name}\n" in printed
    assert f"/locations/us-central1/pipelines/runs/{_job_id(request)}?project=my-project" in printed


def _job_id(request):
    return request["query"]["pipelineJobId"]


def test_the_request_is_signed(service, send, job):
    assert send(job) == 0
    kind, token = service.requests[0]["headers"]["authorization"].split(" ")
    assert kind == "Bearer"
    claims = token.split(".")[1]
    signed = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert signed["iss"] == "submitter@my-project.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        # the service's answer
        (400, "Invalid machine"),
        (403, "'aiplatform.pipelineJobs.create'"),
        (429, "Quota exceeded"),
        (503, "Try later"),
    ],
)
def test_a_refusal_is_one_line(service, send, job, status, message, capsys):
    service.refusal = (status, message)
    assert send(job) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: Vertex AI did not accept the job: {status} ")
    assert message in error
    assert error.count("\n") == 1


def test_no_connection(job, tmp_path, monkeypatch, capsys):
    write_key(tmp_path / "key.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    where = ["--project", "p", "--region", "us-central1", "--endpoint", "http://127.0.0.1:9"]
    assert submit.main([job, *where]) == 1
    assert capsys.readouterr().err.startswith("error: Vertex AI did not accept the job: ")


def test_no_credentials(job, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    assert submit.main([job, "--project", "p", "--region", "us-central1"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: no usable credentials: ")
    assert "gcloud auth application-default login" in error


# further arguments, the parameter or option that the error names
WRONG_VALUES = [
    (["--parameter", "epoch=3"], "--parameter"),
    (["--parameter", "train_args"], "--parameter"),
    (["--parameter", "epochs=0"], "epochs"),
    (["--parameter", "epochs=many"], "epochs"),
    (["--parameter", "image_size=-1"], "image_size"),
    (["--parameter", "compression=zip"], "compression"),
    (["--parameter", "custom_config={"], "custom_config"),
    (["--parameter", "train_args=5"], "train_args"),
    (["--parameter", "range_config=x"], "range_config"),
    (["--parameter", 'image_size="a"'], "image_size"),
    (["--pipeline-root", "/root"], "--pipeline-root"),
]


@pytest.mark.parametrize(("arguments", "named"), WRONG_VALUES)
def test_a_wrong_value_is_named_and_not_sent(service, send, job, arguments, named, capsys):
    assert send(job, *arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {named} ")
    assert service.requests == []


# the file's text, exit code
NO_JOBS = [(None, 1), ("", 2), ("{", 2), ("a: [", 2), ("[1]", 2), ("{}", 2)]


@pytest.mark.parametrize(("text", "code"), NO_JOBS)
def test_a_file_that_is_no_job_is_named_and_not_sent(service, send, tmp_path, text, code, capsys):
    path = tmp_path / "other.json"
    if text is not None:
        path.write_text(text)
    assert send(str(path)) == code
    assert capsys.readouterr().err.startswith(f"error: {path}: ")
    assert service.requests == []


RUN = [
    *("--service-account", "other@my-project.iam.gserviceaccount.com", "--label", "cost=lab-2"),
    *("--network", "projects/12/global/networks/inner", "--failure-policy", "fast"),
    *("--kms-key", "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"),
]
FAIL_FAST = 2  # the client sends the number of PIPELINE_FAILURE_POLICY_FAIL_FAST
IN_JOB = {
    "serviceAccount": RUN[1],
    "network": RUN[5],
    "encryptionSpec": {"kmsKeyName": RUN[9]},
}


def test_who_runs_it_can_be_given_again(service, send, job):
    assert send(job) == 0
    assert send(job, *RUN, "--pipeline-root", "gs://other/root") == 0
    first, second = (request["body"] for request in service.requests)
    assert first == JOB
    assert second == {
        **JOB,
        **IN_JOB,
        "labels": {"team": "vision", "cost": "lab-2"},
        "runtimeConfig": {
            **JOB["runtimeConfig"],
            "gcsOutputDirectory": "gs://other/root",
            "failurePolicy": FAIL_FAST,
        },
    }


# --- packages of kfp --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package of pipelines.kubeflow."""
    path = tmp_path_factory.mktemp("package") / "p.yaml"
    compile_pipeline(str(path), name="flowers", serving_dir="gs://bucket/serving", retries=3)
    return path


@pytest.fixture(scope="module")
def conditional(tmp_path_factory):
    """A package with a condition."""

    def pipeline(source):
        checked = load_step("check")(source=source)
        with dsl.If(checked.outputs["lint_errors"] == 0):
            load_step("convert")(source=source)

    # Evaluated, because kfp cannot read postponed annotations.
    pipeline.__annotations__ = {"source": str}
    path = tmp_path_factory.mktemp("package") / "p.yaml"
    compiler.Compiler().compile(dsl.pipeline(name="conditional")(pipeline), str(path))
    return path


def tasks_of(spec):
    dags = [spec["root"]["dag"], *(each.get("dag", {}) for each in spec["components"].values())]
    return {name: task for dag in dags for name, task in dag.get("tasks", {}).items()}


def test_a_package_is_sent_with_what_it_does_not_hold(service, send, package):
    values = ["source=gs://bucket/a.csv", "stored_image_size=64max", "shard_mb=12.5", "seed=7"]
    values += ['allow=["https"]', "epochs=3", "model=MobileNetV2", "min_score=0.9"]
    given = [word for value in values for word in ("--parameter", value)]
    assert send(str(package), *given, *RUN, "--pipeline-root", "gs://bucket/root") == 0
    [request] = service.requests
    body = dict(request["body"])
    spec = next(yaml.safe_load_all(package.read_text()))
    assert body.pop("pipelineSpec") == spec
    assert body == {
        **IN_JOB,
        "displayName": "flowers",
        "labels": {"cost": "lab-2"},
        "runtimeConfig": {
            "gcsOutputDirectory": "gs://bucket/root",
            "failurePolicy": FAIL_FAST,
            "parameterValues": {
                "source": "gs://bucket/a.csv",
                "stored_image_size": "64max",
                "shard_mb": 12.5,
                "seed": 7,
                "allow": ["https"],
                "epochs": 3,
                "model": "MobileNetV2",
                "min_score": 0.9,
            },
        },
    }
    policies = [task.get("retryPolicy") for task in tasks_of(spec).values()]
    assert [policy["maxRetryCount"] for policy in policies if policy] == [3] * 6


def test_caching_and_retries_can_be_replaced(service, send, conditional):
    given = ["--parameter", "source=gs://b/a.csv", "--pipeline-root", "gs://bucket/root"]
    assert send(str(conditional), *given, "--no-caching", "--retries", "1") == 0
    tasks = tasks_of(service.requests[0]["body"]["pipelineSpec"])
    assert tasks.keys() > {"check", "condition-1"}
    for name, task in tasks.items():
        if name != "condition-1":
            assert not task["cachingOptions"].get("enableCache")
            assert task["retryPolicy"]["maxRetryCount"] == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--parameter", "sorce=a"], "--parameter"),
        (["--parameter", "lint=LEAK"], "lint"),
        (["--parameter", "source=a.csv"], "--pipeline-root"),
    ],
)
def test_a_wrong_value_for_a_package_is_named_and_not_sent(
    service, send, package, arguments, named, capsys
):
    assert send(str(package), *arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {named} ")
    assert service.requests == []


def test_the_region_is_checked(job, capsys):
    assert submit.main([job, "--project", "p", "--region", "us.evil.example/"]) == 2
    assert capsys.readouterr().err.startswith("error: --region must be a region such as")


def test_a_job_that_the_service_does_not_know(service, send, tmp_path, capsys):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**JOB, "colour": "red"}))
    assert send(str(path)) == 2
    assert "colour" in capsys.readouterr().err
    assert service.requests == []
