"""Where and as whom the steps run on Vertex AI and Dataflow: images, machines, accounts."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.parameters import below, check_url
from recordgen.errors import UsageError

# What the service itself allows, so that a mistake is seen before anything is sent. The service
# appends the time of the run to the name.
_FORMS = {
    "name": (
        r"[a-z][a-z0-9-]{0,110}",
        "of lower-case letters, digits and dashes, a letter first, at most 111 of them",
    ),
    "region": (r"[a-z]+-[a-z]+\d+", "a region such as us-central1"),
    "service-account": (r"[^@\s]+@[^@\s]+", "an e-mail address"),
    "network": (
        r"projects/\d+/global/networks/[a-z0-9-]+",
        "projects/NUMBER/global/networks/NAME",
    ),
    "label": (
        r"([a-z][a-z0-9_-]{0,62})=([a-z0-9_-]{0,63})",
        "NAME=VALUE, of lower-case letters, digits, - and _, at most 63 each",
    ),
    "machine": (
        r"(?P<step>\w+)=(?P<cpus>\d+(\.\d+)?),(?P<memory>\d+(\.\d+)?)"
        r"(,(?P<accelerator>[A-Z][A-Z0-9_]+)(:(?P<count>\d+))?)?",
        "STEP=CPUS,MEMORY_GB or STEP=CPUS,MEMORY_GB,ACCELERATOR[:COUNT], such as "
        "Trainer=8,30,NVIDIA_TESLA_T4",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VertexSettings:
    """Where and as whom the steps run.

    Attributes:
        project: the Google Cloud project.
        region: such as ``us-central1``.
        image: the image of all steps.
        trainer_image: the image of the Trainer, such as one with CUDA; None: ``image``.
        machines: resources by step, as Vertex AI's specification has them.
        service_account: the account of the steps and of Dataflow's workers; None: the default.
        network: the peered network of the steps; None: none.
        labels: labels of the job and of Dataflow's jobs.
        beam_args: Beam's flags for Dataflow; None: Beam's work stays in the containers.
    """

    project: str
    region: str
    image: str
    trainer_image: str | None
    machines: Mapping[str, Mapping[str, Any]]
    service_account: str | None
    network: str | None
    labels: Mapping[str, str]
    beam_args: tuple[str, ...] | None

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> VertexSettings:
        """Check and decode the options of ``pipelines.vertex``. Raises: UsageError."""
        for name in ("project", "image"):
            if not getattr(args, name):
                raise UsageError(f"--{name} must not be empty")
        check_form("name", args.name)
        check_form("region", args.region)
        if args.service_account is not None:
            check_form("service-account", args.service_account)
        if args.network is not None:
            check_form("network", args.network)
        labels = {match[1]: match[2] for match in (check_form("label", t) for t in args.label)}
        return cls(
            project=args.project,
            region=args.region,
            image=args.image,
            trainer_image=args.trainer_image,
            machines=dict(map(_machine, args.machine)),
            service_account=args.service_account,
            network=args.network,
            labels=labels,
            beam_args=_dataflow_flags(args, labels),
        )


def check_form(option: str, text: str) -> re.Match[str]:
    """Match an option's value with its form. Raises: UsageError: it has another one."""
    pattern, form = _FORMS[option]
    match = re.fullmatch(pattern, text)
    if match is None:
        raise UsageError(f"--{option} must be {form} (got {text!r})")
    return match


def _machine(text: str) -> tuple[str, dict[str, Any]]:
    """``Trainer=8,30,NVIDIA_TESLA_T4:2`` → the step and its resources. Raises: UsageError."""
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


def _dataflow_flags(args: argparse.Namespace, labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return Beam's flags for Dataflow. Raises: UsageError."""
    given = {
        name: value
        for name, value in vars(args).items()
        if name.startswith("dataflow_") and value is not None
    }
    if not given:
        return None
    if not args.dataflow_image:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{names} needs --dataflow-image: what Dataflow's workers run")
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
        "service_account_email": args.service_account,
        "worker_machine_type": args.dataflow_machine_type,
        "max_num_workers": workers,
        "subnetwork": args.dataflow_subnetwork,
    }
    return (
        *(f"--{name}={value}" for name, value in flags.items() if value is not None),
        *(f"--label={name}={value}" for name, value in labels.items()),
    )
