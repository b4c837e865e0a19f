"""``python -m pipelines.submit``: start a compiled job on Vertex AI Pipelines, without TFX.

The job comes from ``pipelines.vertex``, or is any package compiled by kfp, such as the package of
``pipelines.kubeflow``. A package holds only the steps, with their caching and retries: account,
network, labels, key and pipeline root are set when it is started.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import yaml

from pipelines.terminal import run_main
from recordgen import storage
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import RecordgenError, SourceError, UsageError, did_you_mean
from recordgen.options import OPTIONS, make_options, without_unset
from recordgen.training.config import TRAINING_OPTIONS, TrainingConfig

#: Parameters of a job of ``pipelines.vertex``, as JSON: the settings of the training, and the
#: Evaluator's metrics and thresholds.
CUSTOM_CONFIG = "custom_config"
EVAL_CONFIG = "eval_config"

_POLICY = "PIPELINE_FAILURE_POLICY_FAIL_"


class SubmitError(RecordgenError):
    """Vertex AI was not reached, or refused the job."""


def check_url(option: str, url: str) -> None:
    """Check that the service can reach ``url``. Raises: UsageError."""
    if not url.startswith("gs://") or not url.removeprefix("gs://").strip("/"):
        raise UsageError(f"{option} must be a folder in a bucket, gs://BUCKET/… (got {url!r})")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of project and region, and of :func:`in_run`."""
    add = parser.add_argument
    add("--project", required=True, help="Google Cloud project")
    add("--region", required=True, help="where it runs, such as us-central1")
    add("--endpoint", metavar="URL", help="URL of the service; default: the region's")
    add("--service-account", help="account of all steps, an e-mail address")
    add("--network", help="peered network, projects/NUMBER/global/networks/NAME")
    add("--kms-key", metavar="KEY", help="your own key for all data that the run stores (CMEK)")
    add("--label", action="append", default=[], metavar="NAME=VALUE", help="label of the job")
    add("--no-caching", action="store_true", help="repeat each step; default: as compiled")
    add("--retries", type=int, metavar="N", help="retries of a failed step; default: as compiled")
    add("--failure-policy", choices=("fast", "slow"), help="fast: start no step after a failure")


def in_run(job: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Return ``job`` with the options of a run; options that are not given do not change it."""
    changed = copy.deepcopy(dict(job))
    changed.setdefault("labels", {}).update(label.partition("=")[::2] for label in args.label)
    if args.service_account is not None:
        changed["serviceAccount"] = args.service_account
    if args.network is not None:
        changed["network"] = args.network
    if args.kms_key is not None:
        changed["encryptionSpec"] = {"kmsKeyName": args.kms_key}
    if args.failure_policy is not None:
        changed["runtimeConfig"]["failurePolicy"] = f"{_POLICY}{args.failure_policy.upper()}"
    for task in _container_tasks(changed["pipelineSpec"]):
        if args.no_caching:
            task["cachingOptions"] = {}
        if args.retries is not None:
            delays = {"backoffDuration": "30s", "backoffFactor": 2.0, "backoffMaxDuration": "3600s"}
            task["retryPolicy"] = {"maxRetryCount": args.retries, **delays}
    return changed


def _container_tasks(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tasks that start a container, including conditional ones."""
    components = spec.get("components", {})
    for component in (spec["root"], *components.values()):
        for task in component.get("dag", {}).get("tasks", {}).values():
            if "executorLabel" in components[task["componentRef"]["name"]]:
                yield task


def read_job(path: str) -> dict[str, Any]:
    """Read a job of ``pipelines.vertex``, or a package of kfp as a job.

    Raises: SourceError: there is no such file; UsageError: it is neither a job nor a package.
    """
    try:
        text = storage.read_text(path)
        # A second document of a package is only for open-source Kubeflow.
        is_json = text.startswith("{")
        read: Any = json.loads(text) if is_json else next(yaml.safe_load_all(text), None)
        if "pipelineSpec" not in read:
            read = {
                "displayName": read["pipelineInfo"]["name"],
                "pipelineSpec": read,
                "runtimeConfig": {
                    "parameterValues": {},
                    "gcsOutputDirectory": read.get("defaultPipelineRoot", ""),
                },
            }
        _ = read["pipelineSpec"]["pipelineInfo"]["name"], read["runtimeConfig"]["parameterValues"]
        return dict(read)
    except FileNotFoundError as exc:
        raise SourceError(
            f"{path}: no such file; write it with python -m pipelines.vertex --output, or with "
            f"python -m pipelines.kubeflow --output"
        ) from exc
    except (ValueError, TypeError, KeyError, yaml.YAMLError) as exc:
        raise UsageError(
            f"{path}: neither a job of pipelines.vertex nor a package of kfp: {exc!r}"
        ) from exc


def with_parameters(job: Mapping[str, Any], given: Sequence[str]) -> dict[str, Any]:
    """Return ``job`` with parameters such as ``["epochs=3"]``.

    In a job of ``pipelines.vertex``, the settings of the training and ``min_score`` have names,
    too: they are inside of ``custom_config`` and ``eval_config``.

    Raises: UsageError: a name is unknown, or a value is not allowed.
    """
    declared = job["pipelineSpec"]["root"].get("inputDefinitions", {}).get("parameters", {})
    values = dict(job["runtimeConfig"]["parameterValues"])
    # The name image_size is the conversion's; the training's is in its message.
    own = [name for name in TRAINING_OPTIONS if name not in OPTIONS or name == "seed"]
    inside = (*own, "min_score") if CUSTOM_CONFIG in values else ()
    known = tuple(dict.fromkeys((*declared, *inside)))
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            hint = did_you_mean(name, known, f"; the names are {', '.join(known)}")
            raise UsageError(f"--parameter must be NAME=VALUE (got {text!r}){hint}")
        if name in declared:
            is_text = declared[name]["parameterType"] == "STRING"
            values[name] = value if is_text else _decoded(name, value)
        if name in inside:
            is_text = name in TRAINING_OPTIONS and TRAINING_OPTIONS[name].kind is str
            settings[name] = value if is_text else _decoded(name, value)
    if inside:
        _set_inside(values, settings)
    return {**job, "runtimeConfig": {**job["runtimeConfig"], "parameterValues": values}}


def _set_inside(values: dict[str, Any], settings: dict[str, Any]) -> None:
    """Write settings into the JSON parameters of a job, and check options and settings."""
    names = [name for name in values if name.endswith(("_config", "_args")) and values[name]]
    messages = {name: _decoded(name, values[name]) for name in names}
    for name, message in messages.items():
        if not isinstance(message, dict):
            raise UsageError(f"{name} must be a JSON object (got {values[name]!r})")
    if "min_score" in settings:
        measured = messages[EVAL_CONFIG]
        [measure, *_] = measured["metrics_specs"][0]["metrics"]
        measure["threshold"]["value_threshold"]["lower_bound"] = settings.pop("min_score")
        values[EVAL_CONFIG] = json.dumps(measured)
    training = messages.get(CUSTOM_CONFIG, {}) | settings
    checked = TrainingConfig.from_custom_config(without_unset(training, TRAINING_OPTIONS))
    values[CUSTOM_CONFIG] = json.dumps(checked.to_custom_config())
    # Numbers in a job's file are doubles.
    options = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name in OPTIONS
        if (value := values.get(name)) is not None
    }
    make_options(without_unset(options, OPTIONS))


def _decoded(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as exc:
        raise UsageError(f"{name} must be JSON, such as a number or a list (got {text!r})") from exc


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

    if not re.fullmatch(r"[a-z0-9-]+", region):  # it becomes part of the service's address
        raise UsageError(f"--region must be a region such as us-central1 (got {region!r})")
    message = aiplatform_v1.PipelineJob()
    try:
        json_format.ParseDict(job, aiplatform_v1.PipelineJob.pb(message))
    except json_format.ParseError as exc:
        raise UsageError(f"not a job of pipelines.vertex: {exc}") from exc
    name = job["pipelineSpec"]["pipelineInfo"]["name"]
    url = endpoint or f"https://{region}-aiplatform.googleapis.com"
    try:
        client = aiplatform_v1.PipelineServiceClient(
            transport="rest", client_options={"api_endpoint": url}
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
    console = "https://console.cloud.google.com/vertex-ai/locations"
    run = taken.name.rsplit("/", 1)[-1]
    print(f"console    {console}/{region}/pipelines/runs/{run}?project={project}")


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
    add(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the job; may be repeated. For a job of pipelines.vertex also a "
        "setting of the training, or min_score",
    )
    args = parser.parse_args(argv)

    def run() -> None:
        job = in_run(with_parameters(read_job(args.job), args.parameter), args)
        runtime = job["runtimeConfig"]
        runtime["gcsOutputDirectory"] = args.pipeline_root or runtime["gcsOutputDirectory"]
        check_url("--pipeline-root", runtime["gcsOutputDirectory"])
        quiet_libraries()
        submit_job(job, project=args.project, region=args.region, endpoint=args.endpoint)

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
