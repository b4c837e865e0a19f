"""``python -m pipelines.submit``: start a compiled job on Vertex AI Pipelines. Needs no TFX."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from pipelines.parameters import (
    NAMES,
    add_parameter_options,
    check_parameters,
    given_parameters,
)
from pipelines.terminal import run_main
from pipelines.vertex_settings import check_form
from recordgen import storage
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import RecordgenError, SourceError, UsageError


class SubmitError(RecordgenError):
    """Vertex AI was not reached, or refused the job."""


def read_job(path: str) -> dict[str, Any]:
    """Read a job of ``pipelines.vertex``. Raises: SourceError: no such file; UsageError: no job."""
    try:
        job: dict[str, Any] = json.loads(storage.read_text(path))
        given = job["runtimeConfig"]["parameterValues"]
        if not isinstance(job["pipelineSpec"]["pipelineInfo"]["name"], str):
            raise TypeError("its name is not text")
    except FileNotFoundError as exc:
        raise SourceError(
            f"{path}: no such file; python -m pipelines.vertex --output writes it"
        ) from exc
    except (ValueError, TypeError, KeyError) as exc:
        raise UsageError(f"{path}: not a job of pipelines.vertex: {exc!r}") from exc
    if missing := set(NAMES) - set(given):
        raise UsageError(
            f"{path}: not a job of pipelines.vertex: it has no parameter "
            f"{', '.join(sorted(missing))}"
        )
    return job


def with_parameters(job: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return ``job`` with other values of runtime parameters. Raises: UsageError."""
    runtime = job["runtimeConfig"]
    values = {**runtime["parameterValues"], **values}
    check_parameters(values)
    return {**job, "runtimeConfig": {**runtime, "parameterValues": values}}


def submit_job(
    job: Mapping[str, Any], *, project: str, region: str, endpoint: str | None = None
) -> None:
    """Start a job, and print its name and where to look.

    It calls ``POST https://REGION-aiplatform.googleapis.com/v1/…/pipelineJobs``.

    ``endpoint`` is the URL of the service; None: the region's own.

    Raises:
        UsageError: the job is invalid, or the client's package is not installed.
        SubmitError: there are no credentials, or the service was not reached or refused.
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
        raise SubmitError(f"Vertex AI did not take the job: {_first_line(exc)}") from exc
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
        description="Start a job that pipelines.vertex compiled, with other runtime parameters "
        "where some are given.",
    )
    add = parser.add_argument
    add("job", help="the file that python -m pipelines.vertex --output wrote")
    add("--project", required=True, help="Google Cloud project")
    add("--region", required=True, help="where it runs, such as us-central1")
    add("--endpoint", metavar="URL", help="of the service, such as a private one")
    add_parameter_options(parser, data_required=False)
    args = parser.parse_args(argv)

    def run() -> None:
        check_form("region", args.region)
        job = with_parameters(read_job(args.job), given_parameters(args))
        quiet_libraries()
        submit_job(job, project=args.project, region=args.region, endpoint=args.endpoint)

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
