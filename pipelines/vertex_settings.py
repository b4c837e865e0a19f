"""Settings of runs on Vertex AI and Dataflow: images, machines, accounts, networks, retries."""

from __future__ import annotations

import argparse
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.parameters import below, check_url
from recordgen.errors import UsageError

# The forms that the service allows, so that a mistake is reported before anything is sent. The
# service appends the time of the run to the name.
_FORMS = {
    "name": (
        r"[a-z][a-z0-9-]{0,110}",
        "at most 111 lower-case letters, digits and dashes, beginning with a letter",
    ),
    "region": (r"[a-z]+-[a-z]+\d+", "a region such as us-central1"),
    "service-account": (r"[^@\s]+@[^@\s]+", "an e-mail address"),
    "network": (
        r"projects/\d+/global/networks/[a-z0-9-]+",
        "projects/NUMBER/global/networks/NAME",
    ),
    "label": (
        r"([a-z][a-z0-9_-]{0,62})=([a-z0-9_-]{0,63})",
        "NAME=VALUE, each at most 63 lower-case letters, digits, - and _",
    ),
    "kms-key": (
        r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
    "machine": (
        r"(?P<step>\w+)=(?P<cpus>\d+(\.\d+)?),(?P<memory>\d+(\.\d+)?)"
        r"(,(?P<accelerator>[A-Z][A-Z0-9_]+)(:(?P<count>\d+))?)?",
        "STEP=CPUS,MEMORY_GB or STEP=CPUS,MEMORY_GB,ACCELERATOR[:COUNT], such as "
        "Trainer=8,30,NVIDIA_TESLA_T4",
    ),
}


_FAILURE_POLICIES = {
    "slow": "PIPELINE_FAILURE_POLICY_FAIL_SLOW",
    "fast": "PIPELINE_FAILURE_POLICY_FAIL_FAST",
}


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of project and region, and of :class:`RunSettings`."""
    add = parser.add_argument
    add("--project", required=True, help="Google Cloud project")
    add("--region", required=True, help="where it runs, such as us-central1")
    add("--endpoint", metavar="URL", help="URL of the service; default: the region's")
    add("--service-account", help="account of all steps, an e-mail address")
    add("--network", help="peered network, projects/NUMBER/global/networks/NAME")
    add("--kms-key", metavar="KEY", help="your own key for all data that the run stores (CMEK)")
    add(
        "--label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="label of jobs; may be repeated",
    )
    add("--no-caching", action="store_true", help="repeat each step; default: as compiled")
    add("--retries", type=int, metavar="N", help="retries of a failed step; default: as compiled")
    add(
        "--failure-policy",
        choices=_FAILURE_POLICIES,
        help="fast: start no further step after a failure; default: slow",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run that are not compiled.

    ``caching`` and ``retries`` override the compiled values in all steps.

    Attributes:
        service_account: the account of the steps and of Dataflow's workers; None for the default.
        network: the peered network of the steps, or None.
        kms_key: the key that encrypts all data of the run; None for Google's key.
        labels: labels of the job and of Dataflow's jobs.
        caching: False if no step's result comes from the cache; True for the compiled values.
        retries: how often a failed step is tried again; None for the compiled values.
        failure_policy: the service's name of a policy; None for slow.
    """

    service_account: str | None = None
    network: str | None = None
    kms_key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    caching: bool = True
    retries: int | None = None
    failure_policy: str | None = None

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> RunSettings:
        """Check and decode the options of :func:`add_run_options`. Raises: UsageError."""
        for name in ("service-account", "network", "kms-key"):
            if (text := getattr(args, name.replace("-", "_"))) is not None:
                check_form(name, text)
        if args.retries is not None and args.retries < 0:
            raise UsageError(f"--retries must be at least 0 (got {args.retries})")
        return cls(
            service_account=args.service_account,
            network=args.network,
            kms_key=args.kms_key,
            labels={match[1]: match[2] for match in (check_form("label", t) for t in args.label)},
            caching=not args.no_caching,
            retries=args.retries,
            failure_policy=_FAILURE_POLICIES.get(args.failure_policy),
        )

    def in_job(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``job`` with these settings; settings that are None do not change it."""
        changed = copy.deepcopy(dict(job))
        if self.labels:
            changed["labels"] = {**job.get("labels", {}), **self.labels}
        if self.service_account is not None:
            changed["serviceAccount"] = self.service_account
        if self.network is not None:
            changed["network"] = self.network
        if self.kms_key is not None:
            changed["encryptionSpec"] = {"kmsKeyName": self.kms_key}
        if self.failure_policy is not None:
            changed["runtimeConfig"]["failurePolicy"] = self.failure_policy
        for task in _container_tasks(changed["pipelineSpec"]):
            if not self.caching:
                task["cachingOptions"] = {}
            if self.retries is not None:
                task["retryPolicy"] = {
                    "maxRetryCount": self.retries,
                    "backoffDuration": "30s",
                    "backoffFactor": 2.0,
                    "backoffMaxDuration": "3600s",
                }
        return changed


def _container_tasks(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tasks that start a container, including conditional ones."""
    components = spec.get("components", {})
    for component in (spec["root"], *components.values()):
        for task in component.get("dag", {}).get("tasks", {}).values():
            if "executorLabel" in components[task["componentRef"]["name"]]:
                yield task


def check_form(option: str, text: str) -> re.Match[str]:
    """Match an option's value with its form. Raises: UsageError if it does not match."""
    pattern, form = _FORMS[option]
    match = re.fullmatch(pattern, text)
    if match is None:
        raise UsageError(f"--{option} must be {form} (got {text!r})")
    return match


def to_machine(text: str) -> tuple[str, dict[str, Any]]:
    """``Trainer=8,30,NVIDIA_TESLA_T4:2`` → the step and its resources in Vertex AI's format.

    Raises: UsageError.
    """
    match = check_form("machine", text)
    count = match["count"] or "1"
    for name, number in (("cpus", match["cpus"]), ("memory", match["memory"]), ("count", count)):
        if not float(number):
            raise UsageError(f"{name} of a machine must be above 0 (got {text!r})")
    resources: dict[str, Any] = {
        "cpuLimit": float(match["cpus"]),
        "memoryLimit": float(match["memory"]),
    }
    if match["accelerator"] is not None:
        resources["accelerator"] = {"type": match["accelerator"], "count": str(int(count))}
    return match["step"], resources


def dataflow_flags(args: argparse.Namespace, run: RunSettings) -> tuple[str, ...] | None:
    """Return Beam's flags for Dataflow; None if Beam runs in the containers.

    Raises: UsageError.
    """
    given = {
        name: value
        for name, value in vars(args).items()
        if name.startswith("dataflow_") and value is not None
    }
    if not given:
        return None
    if not args.dataflow_image:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{names} needs --dataflow-image, the image of Dataflow's workers")
    temp_location = args.dataflow_temp_location or below(args.pipeline_root, "dataflow")
    check_url("--dataflow-temp-location", temp_location)
    workers = args.dataflow_max_workers
    if workers is not None and workers < 1:
        raise UsageError(f"--dataflow-max-workers must be at least 1 (got {workers})")
    flags = {
        "runner": "DataflowRunner",
        "project": args.project,
        "region": args.region,
        "temp_location": temp_location,
        "sdk_container_image": args.dataflow_image,
        "service_account_email": run.service_account,
        "dataflow_kms_key": run.kms_key,
        "worker_machine_type": args.dataflow_machine_type,
        "max_num_workers": workers,
        "subnetwork": args.dataflow_subnetwork,
    }
    return (
        *(f"--{name}={value}" for name, value in flags.items() if value is not None),
        *(f"--label={name}={value}" for name, value in run.labels.items()),
    )
