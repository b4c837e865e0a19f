"""docs/kubeflow.md: its commands and programs run, and its tables are component.yaml's."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from pipelines import kubeflow
from tests.conftest import COMPONENTS
from tests.servers import serving

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/kubeflow.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Return the commands of all ``sh`` blocks, as words."""
    text = "".join(blocks("sh")).replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines()]


def run(words: list[str], folder: Path) -> None:
    path = os.pathsep.join([str(COMPONENTS), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the page's commands have run, but for those that need containers."""
    folder = tmp_path_factory.mktemp("page")
    for program, *words in commands():
        assert program == "python"
        if "--run-local" not in words:
            run(words, folder)
    return folder


@pytest.fixture
def kfp_api() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Stand in for KFP's API: its URL, and the runs that it was asked to create."""
    runs: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        experiment = {"experiment_id": "1", "display_name": "Default", "namespace": ""}
        what = request.path.rpartition("/")[2]
        if request.method == "POST" and what == "runs":
            runs.append(await request.json())
            return web.json_response({"run_id": "7", "display_name": "run"})
        if what == "experiments":
            listed = {"experiments": [experiment], "total_size": 1}
            return web.json_response(experiment if request.method == "POST" else listed)
        return web.json_response({"multi_user": False} if what == "healthz" else experiment)

    with serving(answer) as url:
        yield url, runs


def test_commands_write_what_the_page_says(folder: Path) -> None:
    """Steps and pipeline are compiled, the digits written."""
    made = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {
        "steps/component.ir.yaml",
        "steps/component.artifact.ir.yaml",
        "recordgen.yaml",
        "work/data/digits.csv",
    } <= made


def test_the_local_run_is_the_one_that_is_tested() -> None:
    """Its options are known; tests/test_kubeflow_containers.py runs it."""
    [words] = [words for words in commands() if "--run-local" in words]
    args = kubeflow.build_parser().parse_args(words[3:])
    assert (args.run_local, args.source) == ("work", "work/data/digits.csv")


@pytest.mark.parametrize("text", [text for text in blocks("python") if "Compiler" in text])
def test_programs_compile(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program of the page that defines a pipeline writes a package."""
    monkeypatch.chdir(folder)
    [name] = re.findall(r'\.compile\(\w+, "(.*?)"\)', text)
    # kfp reads the source of functions: they must come from a file.
    Path("program.py").write_text(text)
    run(["program.py"], folder)
    assert yaml.safe_load((folder / name).read_text())["schemaVersion"] == "2.1.0"


def test_the_package_is_run(
    folder: Path, kfp_api: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client sends the pipeline and its parameters."""
    url, runs = kfp_api
    monkeypatch.chdir(folder)
    [text] = [text for text in blocks("python") if "kfp.Client" in text]
    exec(compile(text.replace("http://localhost:8080", url), "page", "exec"), {})
    [sent] = runs
    given = sent["runtime_config"]["parameters"]
    assert given["source"] == "gs://bucket/flowers/labels.csv"
    assert (given["model"], given["epochs"]) == ("MobileNetV2", 5)
    assert json.dumps(sent["pipeline_spec"]).count("recordgen.kubeflow") == 5


def test_vertex_takes_the_package(folder: Path) -> None:
    """Vertex AI's client reads the same file and its parameters."""
    aiplatform = pytest.importorskip("google.cloud.aiplatform")
    from google.auth.credentials import AnonymousCredentials

    job = aiplatform.PipelineJob(
        display_name="flowers",
        template_path=str(folder / "recordgen.yaml"),
        parameter_values={"source": "gs://bucket/flowers/labels.csv", "epochs": 5},
        project="project",
        location="europe-west4",
        credentials=AnonymousCredentials(),
    )
    made = job.to_dict()
    assert made["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/pipelines"
    assert made["runtimeConfig"]["parameterValues"]["epochs"] == 5


def test_tables_are_those_of_the_step() -> None:
    """Every input stands in the table with its type and default, every output is named."""
    step = yaml.safe_load((ROOT / "component.yaml").read_text(encoding="utf-8"))
    found = re.findall(r"^\| `(\w+)` \| ([\w, ]+?) \| (.*?)\|", PAGE, re.MULTILINE)
    rows = {name: (kind, default.strip()) for name, kind, default in found}
    for item in step["inputs"]:
        kind = "String, or Dataset" if item["name"] == "source" else item["type"]
        assert rows[item["name"]] == (kind, item.get("default", "")), item["name"]
    for item in step["outputs"]:
        assert f"`{item['name']}`" in PAGE
