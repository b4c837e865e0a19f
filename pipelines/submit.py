"""``python -m pipelines.submit``: start a compiled job on Vertex AI Pipelines, without TFX.

The job comes from ``pipelines.vertex``, or is any package compiled by kfp, such as the package of
``pipelines.kubeflow``. A package holds only the steps, with their caching and retries: account,
network, labels, key and pipeline root are set when it is started.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import yaml

from pipelines.parameters import (
    ARGUMENTS,
    NAMES,
    add_parameter_options,
    check_parameters,
    check_url,
    given_parameters,
    parse_parameters,
    with_settings,
)
from pipelines.terminal import run_main
from pipelines.vertex_settings import RunSettings, add_run_options, check_form
from recordgen import storage
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import RecordgenError, SourceError, UsageError

_ROOT = "defaultPipelineRoot"

_KINDS: dict[str, Any] = {
    "STRING": str,
    "NUMBER_INTEGER": int,
    "NUMBER_DOUBLE": (int, float),
    "BOOLEAN": bool,
    "LIST": list,
    "STRUCT": dict,
}


class SubmitError(RecordgenError):
    """Vertex AI was not reached, or refused the job."""


def read_job(path: str) -> dict[str, Any]:
    """Read a job of ``pipelines.vertex``, or a package of kfp as a job.

    Raises:
        SourceError: there is no such file.
        UsageError: it is neither a job nor a package.
    """
    try:
        read = _parse(storage.read_text(path))
        if "pipelineSpec" not in read and "pipelineInfo" in read:
            name = read["pipelineInfo"]["name"]
            runtime = {"parameterValues": {}, "gcsOutputDirectory": read.get(_ROOT, "")}
            read = {"displayName": name, "pipelineSpec": read, "runtimeConfig": runtime}
        given = read["runtimeConfig"]["parameterValues"]
        if not isinstance(read["pipelineSpec"]["pipelineInfo"]["name"], str):
            raise TypeError("its name is not text")
    except FileNotFoundError as exc:
        raise SourceError(
            f"{path}: no such file; write it with python -m pipelines.vertex --output, or with "
            f"python -m pipelines.kubeflow --output"
        ) from exc
    except (ValueError, TypeError, KeyError, yaml.YAMLError) as exc:
        raise UsageError(
            f"{path}: neither a job of pipelines.vertex nor a package of kfp: {exc!r}"
        ) from exc
    if not is_package(read) and (missing := set(NAMES) - set(given)):
        raise UsageError(
            f"{path}: not a job of pipelines.vertex: it has no parameter "
            f"{', '.join(sorted(missing))}"
        )
    return read


def _parse(text: str) -> dict[str, Any]:
    # A second document of a package is only for open-source Kubeflow.
    is_yaml = not text.lstrip().startswith(("{", "["))
    found = next(yaml.safe_load_all(text), None) if is_yaml else json.loads(text)
    if not isinstance(found, dict):
        raise TypeError("it is not a mapping")
    return found


def is_package(job: Mapping[str, Any]) -> bool:
    """Return whether kfp, not TFX, compiled a job."""
    return str(job["pipelineSpec"].get("sdkVersion", "")).startswith("kfp")


def with_parameters(job: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Return ``job`` with the runtime parameters on the command line. Raises: UsageError."""
    runtime = dict(job["runtimeConfig"])
    if is_package(job):
        runtime["parameterValues"] = package_parameters(job["pipelineSpec"], args)
    else:
        values = with_settings(runtime["parameterValues"], given_parameters(args))
        check_parameters(values)
        runtime["parameterValues"] = values
    if args.pipeline_root is not None:
        runtime["gcsOutputDirectory"] = args.pipeline_root
    check_url("--pipeline-root", runtime["gcsOutputDirectory"])
    return {**job, "runtimeConfig": runtime}


def package_parameters(spec: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Return the values of a package's parameters from ``--parameter``.

    Raises:
        UsageError: a parameter is unknown or missing, or has a value of another type.
    """
    for name in ARGUMENTS:
        if getattr(args, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is for jobs of pipelines.vertex; for a package, use "
                f"--parameter NAME=VALUE"
            )
    declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    values: dict[str, Any] = {}
    for name, text in parse_parameters(args.parameter, declared).items():
        kinds = _KINDS[declared[name]["parameterType"]]
        try:
            value = text if kinds is str else json.loads(text)
        except ValueError:
            value = None
        # In Python, a bool is an int.
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise UsageError(
                f"parameter {name} must be a {declared[name]['parameterType']} as JSON (got "
                f"{text!r})"
            )
        values[name] = value
    missing = [
        name
        for name, item in declared.items()
        if name not in values and "defaultValue" not in item and not item.get("isOptional")
    ]
    if missing:
        raise UsageError(f"this package needs --parameter {'=… --parameter '.join(missing)}=…")
    return values


def submit_job(
    job: Mapping[str, Any], *, project: str, region: str, endpoint: str | None = None
) -> None:
    """Start a job, and print its name and its page in the console.

    It calls ``POST https://REGION-aiplatform.googleapis.com/v1/…/pipelineJobs``; ``endpoint``
    replaces the URL of the service.

    Raises:
        UsageError: the job is invalid, or the client's package is not installed.
        SubmitError: there are no credentials, or the service was not reached or refused the job.
    """
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import aiplatform_v1
    except ImportError as exc:
        raise UsageError(
            f"submitting needs a package that is not installed ({exc}): "
            "pip install '.[vertex]' in the repository"
        ) from exc
    from google.protobuf import json_format
    from requests import RequestException

    message = aiplatform_v1.PipelineJob()
    try:
        json_format.ParseDict(job, aiplatform_v1.PipelineJob.pb(message))
    except json_format.ParseError as exc:
        raise UsageError(f"not a job of pipelines.vertex: {exc}") from exc
    name = job["pipelineSpec"]["pipelineInfo"]["name"]
    try:
        client = aiplatform_v1.PipelineServiceClient(
            transport="rest",
            client_options={
                "api_endpoint": endpoint or f"https://{region}-aiplatform.googleapis.com"
            },
        )
        taken = client.create_pipeline_job(
            parent=f"projects/{project}/locations/{region}",
            pipeline_job=message,
            pipeline_job_id=f"{name}-{datetime.now(timezone.utc):%Y%m%d%H%M%S}",
        )
    except GoogleAuthError as exc:
        raise SubmitError(
            f"no usable credentials: {_first_line(exc)}; run gcloud auth application-default "
            f"login, or name a key file in GOOGLE_APPLICATION_CREDENTIALS"
        ) from exc
    except (GoogleAPIError, RequestException) as exc:
        raise SubmitError(f"Vertex AI did not accept the job: {_first_line(exc)}") from exc
    print(f"submitted  {taken.name}")
    print(f"console    {console_url(taken.name)}")


def console_url(name: str) -> str:
    """Return the console's page for a job."""
    _, project, _, region, _, job = name.split("/")
    return (
        f"https://console.cloud.google.com/vertex-ai/locations/{region}/pipelines/runs/{job}"
        f"?project={project}"
    )


def _first_line(exc: Exception) -> str:
    return str(exc).strip().split("\n", 1)[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.submit",
        description="Start a job that pipelines.vertex compiled, or a package that kfp compiled, "
        "with the given runtime parameters.",
    )
    add = parser.add_argument
    add("job", help="output file of python -m pipelines.vertex or pipelines.kubeflow")
    add("--pipeline-root", metavar="URL", help="gs:// folder for artifacts; default: as compiled")
    add_run_options(parser)
    add_parameter_options(parser, data_required=False)
    args = parser.parse_args(argv)

    def run() -> None:
        check_form("region", args.region)
        job = RunSettings.from_args(args).in_job(with_parameters(read_job(args.job), args))
        quiet_libraries()
        submit_job(job, project=args.project, region=args.region, endpoint=args.endpoint)

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
