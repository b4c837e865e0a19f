"""The Kubeflow steps in their container: in kfp's local runs, and with a launcher's folders."""

import json
import os
from contextlib import suppress

import pytest
from docker.errors import DockerException
from kfp import dsl, local

from pipelines.component import load_step
from pipelines.samples.digits import write_digits
from recordgen.core.dataset.manifest import read_dataset
from tests.steps import command_of, executor_input

pytestmark = pytest.mark.container


@pytest.fixture
def local_root(engine, tmp_path, monkeypatch):
    """Let calls of components run in containers; return the folder that containers see."""
    reason = "this kfp cannot run steps with optional artifacts"
    pytest.importorskip("kfp", minversion="2.17", reason=reason)
    monkeypatch.setenv("DOCKER_HOST", engine.docker_host)
    # Each container waits until kfp has its log.
    entrypoint = ["sh", "-c", '"$@"; code=$?; sleep 3; exit $code', "sh"]
    user = f"{os.getuid()}:{os.getgid()}"
    local.init(local.DockerRunner(user=user, entrypoint=entrypoint), pipeline_root=str(tmp_path))
    return tmp_path


def test_a_failed_step_logs_our_message(engine, local_root, capsys):
    """The log of the container has the reason, and there is no dataset."""
    source = local_root / "labels.csv"
    source.write_text("TRAIN,nowhere.png,a\n")
    outputs = {}
    # If the container is gone before kfp asks for its exit code, kfp reports success.
    with suppress(RuntimeError, DockerException):
        outputs = load_step("convert", engine.image)(source=str(source)).outputs
    assert outputs == {}
    assert not list(local_root.rglob("dataset.json"))
    assert "rejected 1 of 1 row" in capsys.readouterr().out


def test_through_a_launchers_folder(engine, tmp_path):
    """A step reads and writes the folder of KFP's launcher in place of the URL."""
    folder = tmp_path / "minio/bucket"
    write_digits(str(folder / "made/data"), 100)
    step = load_step("convert_artifact", engine.image)
    inputs = {"source": "minio://bucket/made/data"}
    invocation = executor_input(step, "minio://bucket/root", tmp_path / "kfp", inputs, {})
    *command, _ = command_of(step)
    (tmp_path / "kfp/outputs").mkdir(parents=True)
    mounts = {tmp_path / "minio": "/minio", tmp_path / "kfp": tmp_path / "kfp"}
    how = {"mounts": mounts, "user": f"{os.getuid()}:{os.getgid()}"}
    done = engine.run(command=[*command, json.dumps(invocation)], **how)
    assert done.returncode == 0, done.stderr
    assert read_dataset(str(folder / "root/dataset")).examples == 100
    page = (folder / "root/dataset/report.html").read_bytes()
    assert (folder / "root/report").read_bytes() == page
    written = json.loads((tmp_path / "kfp/outputs/executor_output.json").read_text())
    [dataset] = written["artifacts"]["dataset"]["artifacts"]
    assert dataset["uri"] == "minio://bucket/root/dataset"


@pytest.mark.slow
def test_the_pipeline_runs_in_containers(engine, local_root):
    """Conversion, statistics, training and evaluation hand on their artifacts."""
    source = write_digits(str(local_root / "data"), 400)
    training = {"image_size": [16, 16], "epochs": 12, "learning_rate": 0.003}
    names = ("convert", "statistics", "train", "evaluate")
    step = {name: load_step(name, engine.image) for name in names}

    def pipeline(source):
        dataset = step["convert"](source=source).outputs["dataset"]
        step["statistics"](dataset=dataset)
        model = step["train"](dataset=dataset, **training).outputs["model"]
        return step["evaluate"](dataset=dataset, model=model).outputs["score"]

    # Evaluated, because kfp cannot read postponed annotations.
    pipeline.__annotations__ = {"source": str, "return": float}
    assert float(dsl.pipeline(name="digits")(pipeline)(source=source).output) >= 0.9
    [run] = local_root.glob("digits-*")
    made = {path.relative_to(run).as_posix() for path in run.glob("*/*")}
    described = {"convert/dataset", "convert/report", "statistics/statistics", "statistics/schema"}
    assert described | {"train/model", "evaluate/executor_output.json"} <= made
    for page in local_root.rglob("report"):
        assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html")
    assert {path.stat().st_uid for path in local_root.rglob("*")} == {os.getuid()}
