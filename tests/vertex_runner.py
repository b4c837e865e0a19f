"""An emulated Vertex AI Pipelines, which runs a compiled PipelineJob container by container.

It depends only on the job: for each task it resolves the parameters, chooses the uris of outputs,
runs the driver in the container's ``lifecycle.preCacheCheck``, looks into the cache, starts the
container's own command, and reads its output file.
It imports neither TFX nor Recordgen. Features that our jobs do not use (conditions, importers,
resolvers, nested dags) are refused, not skipped.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from zlib import crc32

from tests.conftest import run_python
from tests.containers import Engine
from tests.preloaded import FORK_SERVER, TFX_MODULES, WITH_TFX, Preloaded

Json = dict[str, Any]

PROJECT = "123456789"
_STORE = f"projects/{PROJECT}/locations/us-central1/metadataStores/default/artifacts"


@dataclass(frozen=True)
class Attempt:
    """The start of a container; ``command`` replaces its entry point."""

    task: str
    image: str
    command: tuple[str, ...]


Start = Callable[[Attempt], "CompletedProcess[str]"]


class StepFailed(Exception):
    """A task's container failed; ``log`` is its output."""

    def __init__(self, task: str, log: str) -> None:
        super().__init__(f"{task} failed:\n{log[-4000:]}")
        self.task = task
        self.log = log


@dataclass(frozen=True)
class TaskRun:
    """The result of a task.

    Attributes:
        parameters: its input parameters, including the driver's results.
        artifacts: its outputs as RuntimeArtifacts, by key.
        outputs: its output parameters.
        cached: whether outputs come from an earlier run.
    """

    parameters: Json
    artifacts: dict[str, Json]
    outputs: Json = field(default_factory=dict)
    cached: bool = False
    log: str = ""


@dataclass(frozen=True)
class Run:
    """What the tasks of a run share: the given parameters, the finished tasks, and the folder."""

    given: Mapping[str, Any]
    done: dict[str, TaskRun]
    folder: str


@dataclass
class Service:
    """Vertex AI Pipelines with its cache; ``start`` starts containers."""

    start: Start
    _cache: dict[str, TaskRun] = field(default_factory=dict)
    _runs: int = 0

    def run(
        self, job: Json, parameters: Mapping[str, str] = {}, *, until: str | None = None
    ) -> dict[str, TaskRun]:
        """Run a job, to its end or to the task ``until``, with other values for some parameters.

        Raises:
            StepFailed: a task failed; tasks that need it were not started.
        """
        self._runs += 1
        spec, runtime = job["pipelineSpec"], job["runtimeConfig"]
        given = {**runtime.get("parameterValues", {}), **parameters}
        declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
        assert set(given) == set(declared), f"given {set(given)}, declared {set(declared)}"
        name = spec["pipelineInfo"]["name"]
        run = Run(given, {}, f"{runtime['gcsOutputDirectory']}/{PROJECT}/{name}-{self._runs}")
        for task_name, task in in_order(spec["root"]["dag"]["tasks"]):
            run.done[task_name] = self._run_task(spec, task_name, task, run)
            if task_name == until:
                break
        return run.done

    def _run_task(self, spec: Json, name: str, task: Json, run: Run) -> TaskRun:
        refuse_unknown(name, task)
        component = spec["components"][task["componentRef"]["name"]]
        executor = spec["deploymentSpec"]["executors"][component["executorLabel"]]
        container = executor["container"]
        call = executor_input(name, task, component, run)
        output_file = Path(call["outputs"]["outputFile"])
        log = ""

        driver = container.get("lifecycle", {}).get("preCacheCheck")
        if driver is not None:
            log += self._start(name, container["image"], driver, call)
            call = after_driver(call, json.loads(output_file.read_text()))

        key = cache_key(container, call)
        if task.get("cachingOptions", {}).get("enableCache") and key in self._cache:
            return replace(self._cache[key], cached=True, log=log)
        log += self._start(name, container["image"], container, call)
        output = json.loads(output_file.read_text())
        self._cache[key] = TaskRun(
            parameters=call["inputs"]["parameterValues"],
            artifacts=merged(call["outputs"]["artifacts"], output),
            outputs=output.get("parameterValues", {}),
            log=log,
        )
        return self._cache[key]

    def _start(self, task: str, image: str, container: Json, call: Json) -> str:
        words = [*container["command"], *container.get("args", [])]
        done = self.start(Attempt(task, image, tuple(resolve(word, call) for word in words)))
        if done.returncode:
            raise StepFailed(task, done.stdout + done.stderr)
        return done.stdout + done.stderr


def refuse_unknown(name: str, task: Json) -> None:
    """Refuse a task with features that this runner does not support."""
    known = {"cachingOptions", "componentRef", "dependentTasks", "inputs", "taskInfo"}
    assert set(task) <= known, f"{name} has {set(task) - known}"


def in_order(tasks: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield tasks in an order in which each follows the tasks that it needs."""
    given: set[str] = set()
    while len(given) < len(tasks):
        ready = [n for n in tasks if n not in given and needed(tasks[n]) <= given]
        assert ready, f"tasks wait for each other: {set(tasks) - given}"
        for name in ready:
            given.add(name)
            yield name, tasks[name]


def needed(task: Json) -> set[str]:
    """Return the names of the tasks that ``task`` waits for."""
    artifacts = task.get("inputs", {}).get("artifacts", {}).values()
    producers = {artifact["taskOutputArtifact"]["producerTask"] for artifact in artifacts}
    return producers | set(task.get("dependentTasks", []))


def executor_input(name: str, task: Json, component: Json, run: Run) -> Json:
    """Return the ExecutorInput of a task, as JSON.

    Args:
        name: the task's name.
        task: its PipelineTaskSpec.
        component: its ComponentSpec.
        run: the run that it belongs to.
    """
    inputs, folder = task.get("inputs", {}), f"{run.folder}/{name}"
    declared = component.get("inputDefinitions", {})
    parameters = {
        key: parameter_value(source, run) for key, source in inputs.get("parameters", {}).items()
    }
    assert set(parameters) == set(declared.get("parameters", {})), name
    artifacts = {
        key: {"artifacts": [artifact_of(source, run)]}
        for key, source in inputs.get("artifacts", {}).items()
    }
    assert set(artifacts) == set(declared.get("artifacts", {})), name
    outputs = {}
    for key, made in component.get("outputDefinitions", {}).get("artifacts", {}).items():
        uri, metadata = f"{folder}/{key}", made.get("metadata", {})
        artifact = {"name": f"{_STORE}/{crc32(uri.encode())}", "uri": uri, "metadata": metadata}
        outputs[key] = {"artifacts": [{**artifact, "type": made["artifactType"]}]}
    return {
        "inputs": {"parameterValues": parameters, "artifacts": artifacts},
        "outputs": {"artifacts": outputs, "outputFile": f"{folder}/executor_output.json"},
    }


def parameter_value(source: Json, run: Run) -> Any:
    """Return the value of a task's input parameter."""
    if "componentInputParameter" in source:
        return run.given[source["componentInputParameter"]]
    if "taskOutputParameter" in source:
        output = source["taskOutputParameter"]
        return run.done[output["producerTask"]].outputs[output["outputParameterKey"]]
    return source["runtimeValue"]["constant"]


def artifact_of(source: Json, run: Run) -> Json:
    """Return a task's input artifact."""
    output = source["taskOutputArtifact"]
    return run.done[output["producerTask"]].artifacts[output["outputArtifactKey"]]


def after_driver(call: Json, output: Json) -> Json:
    """Return the ExecutorInput with the results of a driver, from its output file."""
    values = {**call["inputs"]["parameterValues"], **output.get("parameterValues", {})}
    artifacts = {
        key: {"artifacts": [artifact]}
        for key, artifact in merged(call["outputs"]["artifacts"], output).items()
    }
    return {
        "inputs": {**call["inputs"], "parameterValues": values},
        "outputs": {**call["outputs"], "artifacts": artifacts},
    }


def merged(expected: Mapping[str, Json], output: Json) -> dict[str, Json]:
    """Return output artifacts with the metadata set by a container, by key."""
    written = output.get("artifacts", {})
    assert set(written) <= set(expected), f"undeclared outputs: {set(written)}"
    artifacts = {}
    for key, declared in expected.items():
        [artifact] = declared["artifacts"]
        [more] = written.get(key, {}).get("artifacts", [{}])
        assert more.get("uri", artifact["uri"]) == artifact["uri"]
        metadata = {**artifact["metadata"], **more.get("metadata", {})}
        artifacts[key] = {**artifact, "metadata": metadata}
    return artifacts


def cache_key(container: Json, call: Json) -> str:
    """Return a key that is equal for executions with the same results."""
    artifacts = {
        key: [artifact["name"] for artifact in value["artifacts"]]
        for key, value in call["inputs"]["artifacts"].items()
    }
    return json.dumps([container, call["inputs"]["parameterValues"], artifacts], sort_keys=True)


_PLACEHOLDER = re.compile(
    r"\{\{\$(?:\.(?P<side>inputs|outputs)\.(?P<kind>parameters|artifacts)"
    r"\[(?P<quote>['\"])(?P<key>.+?)(?P=quote)\](?:\.(?P<field>\w+))?)?\}\}"
)


def resolve(text: str, call: Json) -> str:
    """Replace the placeholders in a word of a command line.

    ``{{$}}`` → the ExecutorInput as JSON; ``{{$.inputs.parameters['x']}}``,
    ``{{$.inputs.artifacts['x'].uri}}`` and ``{{$.outputs.artifacts['x'].uri}}`` → their values.
    """

    def value(match: re.Match[str]) -> str:
        if match["side"] is None:
            return json.dumps(call)
        if match["kind"] == "parameters":
            assert (match["side"], match["field"]) == ("inputs", None), match[0]
            found = call["inputs"]["parameterValues"][match["key"]]
            return found if isinstance(found, str) else json.dumps(found)
        [artifact] = call[match["side"]]["artifacts"][match["key"]]["artifacts"]
        return str(artifact[match["field"]])

    resolved = _PLACEHOLDER.sub(value, text)
    assert "{{$" not in _PLACEHOLDER.sub("", text), f"an unknown placeholder: {text}"
    return resolved


def in_buckets(job: Json, folder: Path) -> Json:
    """Replace all buckets in ``job`` by a folder: gs://B/x → FOLDER/B/x."""
    moved: Json = json.loads(json.dumps(job).replace("gs://", f"{folder}/"))
    return moved


def natively(environment: Mapping[str, str]) -> Start:
    """Return a function that starts containers as processes of this machine, with this Python."""

    def start(attempt: Attempt) -> CompletedProcess[str]:
        return run_python(*_of_python(attempt), env=environment)

    return start


def preloaded(environment: Mapping[str, str]) -> Start:
    """Return a function that starts containers as local processes that have already loaded TFX."""

    return lambda attempt: WITH_TFX.run(*_of_python(attempt), env=environment)


def _of_python(attempt: Attempt) -> Sequence[str]:
    program, *words = attempt.command
    assert program == "python"
    return words


@contextmanager
def in_one_container(engine: Engine, folder: Path) -> Iterator[Start]:
    """Yield a function that starts containers as processes of one, which has loaded TFX."""
    inside = "/fork_server.py"
    shared = (f"--volume={folder}:{folder}", f"--volume={FORK_SERVER}:{inside}:ro")
    user = f"--user={os.getuid()}:{os.getgid()}"
    with_tfx = Preloaded(
        *TFX_MODULES,
        server=(
            *(engine.program, "run", "--rm", "--interactive", *shared, user),
            *("--entrypoint=python", engine.image, inside),
        ),
        environment=engine.environment,
        folder=folder,
    )
    try:
        yield lambda attempt: with_tfx.run(*_of_python(attempt))
    finally:
        with_tfx.close()


def steps(runs: Mapping[str, TaskRun], *, cached: bool) -> Sequence[str]:
    """Return the names of the tasks whose results came, or did not come, from the cache."""
    return sorted(name for name, run in runs.items() if run.cached is cached)
