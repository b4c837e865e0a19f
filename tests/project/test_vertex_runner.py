"""Tests of the emulated Vertex AI Pipelines itself."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.vertex_runner import Attempt, Service, StepFailed, in_buckets, in_order, resolve, steps

STRING = {"parameterType": "STRING"}
THING = {"instanceSchema": "title: tfx.Thing\n"}
CALL = {
    "inputs": {
        "parameterValues": {"name": "a", "count": 2.0},
        "artifacts": {"thing": {"artifacts": [{"uri": "gs://b/thing"}]}},
    },
    "outputs": {"artifacts": {"model": {"artifacts": [{"uri": "gs://b/model"}]}}},
}


@pytest.mark.parametrize(
    ("word", "resolved"),
    [
        # a word of a command line, the resolved word
        ("--flag", "--flag"),
        ("{{$}}", json.dumps(CALL)),
        ("--name={{$.inputs.parameters['name']}}", "--name=a"),
        ('{{$.inputs.parameters["count"]}}', "2.0"),
        ("{{$.inputs.artifacts['thing'].uri}}/x", "gs://b/thing/x"),
        ("{{$.outputs.artifacts['model'].uri}}", "gs://b/model"),
    ],
)
def test_placeholders(word, resolved):
    assert resolve(word, CALL) == resolved


@pytest.mark.parametrize("word", ["{{$.pipeline_google_cloud_location}}", "{{$.inputs}}"])
def test_unknown_placeholders_are_refused(word):
    with pytest.raises(AssertionError, match="an unknown placeholder"):
        resolve(word, CALL)


def test_order_follows_artifacts_and_dependencies():
    artifact = {"taskOutputArtifact": {"producerTask": "b", "outputArtifactKey": "x"}}
    tasks = {
        "a": {"inputs": {"artifacts": {"x": artifact}}},
        "b": {"dependentTasks": ["c"]},
        "c": {},
    }
    assert [name for name, _ in in_order(tasks)] == ["c", "b", "a"]
    with pytest.raises(AssertionError, match="wait for each other"):
        list(in_order({"a": {"dependentTasks": ["b"]}, "b": {"dependentTasks": ["a"]}}))


def make_job(root: Path) -> dict:
    """Return a job of two tasks: ``make`` has a driver, ``use`` reads the output of ``make``."""
    call = ["python", "{{$}}"]
    return {
        "pipelineSpec": {
            "pipelineInfo": {"name": "two"},
            "root": {
                "inputDefinitions": {"parameters": {"who": STRING}},
                "dag": {
                    "tasks": {
                        "use": {
                            "componentRef": {"name": "use"},
                            "cachingOptions": {"enableCache": True},
                            "inputs": {
                                "artifacts": {
                                    "thing": {
                                        "taskOutputArtifact": {
                                            "producerTask": "make",
                                            "outputArtifactKey": "thing",
                                        }
                                    }
                                }
                            },
                        },
                        "make": {
                            "componentRef": {"name": "make"},
                            "cachingOptions": {"enableCache": True},
                            "inputs": {"parameters": {"who": {"componentInputParameter": "who"}}},
                        },
                    }
                },
            },
            "components": {
                "make": {
                    "executorLabel": "make",
                    "inputDefinitions": {"parameters": {"who": STRING}},
                    "outputDefinitions": {"artifacts": {"thing": {"artifactType": THING}}},
                },
                "use": {
                    "executorLabel": "use",
                    "inputDefinitions": {"artifacts": {"thing": {"artifactType": THING}}},
                },
            },
            "deploymentSpec": {
                "executors": {
                    "make": {
                        "container": {
                            "image": "image",
                            "command": ["make"],
                            "args": ["{{$}}"],
                            "lifecycle": {"preCacheCheck": {"command": ["drive"], "args": call}},
                        }
                    },
                    "use": {"container": {"image": "image", "command": ["use"], "args": ["{{$}}"]}},
                }
            },
        },
        "runtimeConfig": {
            "gcsOutputDirectory": str(root),
            "parameterValues": {"who": "me"},
        },
    }


class Containers:
    """Starts "containers" that write given values to their output file."""

    def __init__(self, *, failures: int = 0, fingerprint: str = "1") -> None:
        self.started: list[tuple[str, int]] = []
        self.failures = failures
        self.fingerprint = fingerprint

    def __call__(self, attempt: Attempt) -> CompletedProcess[str]:
        program = attempt.command[0]
        self.started.append((program, attempt.number))
        if program == "make" and self.failures:
            self.failures -= 1
            return CompletedProcess([], 1, "", "out of memory")
        call = json.loads(attempt.command[-1])
        output: dict = {"parameterValues": {}, "artifacts": {}}
        if program == "drive":
            output["parameterValues"]["fingerprint"] = self.fingerprint
        if program == "make":
            values = call["inputs"]["parameterValues"]
            [thing] = call["outputs"]["artifacts"]["thing"]["artifacts"]
            assert thing["type"] == THING
            output["artifacts"]["thing"] = {
                "artifacts": [{"uri": thing["uri"], "metadata": values}]
            }
        if program == "use":
            [thing] = call["inputs"]["artifacts"]["thing"]["artifacts"]
            assert thing["metadata"]["who"]
        path = Path(call["outputs"]["outputFile"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(output))
        return CompletedProcess([], 0, "", "")


def test_a_run(tmp_path):
    """A driver runs first, and its results are parameters; outputs become inputs."""
    containers = Containers()
    runs = Service(containers).run(make_job(tmp_path), {"who": "you"})
    assert containers.started == [("drive", 1), ("make", 1), ("use", 1)]
    thing = runs["make"].artifacts["thing"]
    assert thing["metadata"] == {"who": "you", "fingerprint": "1"}
    assert thing["uri"].startswith(f"{tmp_path}/")


def test_the_cache_asks_the_driver(tmp_path):
    """With the same parameters and fingerprint, only the driver runs again."""
    containers = Containers()
    service = Service(containers)
    service.run(make_job(tmp_path))
    again = service.run(make_job(tmp_path))
    assert steps(again, cached=True) == ["make", "use"]
    containers.fingerprint = "2"
    assert steps(service.run(make_job(tmp_path)), cached=True) == []
    assert [name for name, _ in containers.started].count("drive") == 3


def test_without_drivers(tmp_path):
    """Open-source Kubeflow ignores ``preCacheCheck``."""
    containers = Containers()
    runs = Service(containers, runs_drivers=False).run(make_job(tmp_path))
    assert containers.started == [("make", 1), ("use", 1)]
    assert runs["make"].parameters == {"who": "me"}


def test_a_step_that_fails_ends_the_run(tmp_path):
    containers = Containers(failures=2)
    with pytest.raises(StepFailed, match="out of memory") as caught:
        Service(containers, attempts=2).run(make_job(tmp_path))
    assert caught.value.task == "make"
    assert containers.started == [("drive", 1), ("make", 1), ("make", 2)]


def test_a_step_is_tried_again(tmp_path):
    containers = Containers(failures=1)
    Service(containers, attempts=2).run(make_job(tmp_path))
    assert containers.started[-2:] == [("make", 2), ("use", 1)]


def test_what_it_does_not_know_is_refused(tmp_path):
    job = make_job(tmp_path)
    job["pipelineSpec"]["root"]["dag"]["tasks"]["use"]["triggerPolicy"] = {"condition": "true"}
    with pytest.raises(AssertionError, match=r"use has .*triggerPolicy"):
        Service(Containers()).run(job)


def test_buckets_are_folders(tmp_path):
    moved = in_buckets({"a": ["gs://bucket/x"], "b": "s3://bucket"}, tmp_path)
    assert moved == {"a": [f"{tmp_path}/bucket/x"], "b": "s3://bucket"}
