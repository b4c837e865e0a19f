"""What Vertex AI and Dataflow are told beside the pipeline: images, machines, accounts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.parameters import check_url
from recordgen.errors import UsageError

# What the service itself allows, so that a mistake is seen before anything is sent.
_PIPELINE_NAME = re.compile(r"[a-z][a-z0-9-]{0,110}")  # the run's time is added to it
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
_NETWORK = re.compile(r"projects/\d+/global/networks/[a-z0-9-]+")
_ACCOUNT = re.compile(r"[^@\s]+@[^@\s]+")
_LABEL = re.compile(r"([a-z][a-z0-9_-]{0,62})=([a-z0-9_-]{0,63})")
_MACHINE = re.compile(
    r"(?P<step>\w+)=(?P<cpus>[\d.]+),(?P<memory_gb>[\d.]+)"
    r"(,(?P<accelerator>[A-Z][A-Z0-9_]+)(:(?P<count>\d+))?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a step needs at least; the service chooses a machine type that has it.

    Attributes:
        cpus: virtual CPUs.
        memory_gb: memory in GB.
        accelerator: such as ``NVIDIA_TESLA_T4``; None: none.
        accelerators: how many of them.
    """

    cpus: float
    memory_gb: float
    accelerator: str | None = None
    accelerators: int = 1

    def __post_init__(self) -> None:
        for name in ("cpus", "memory_gb", "accelerators"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} of a machine must be above 0 (got {getattr(self, name)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataflow:
    """Where Beam's work is done instead of in the step's own container.

    Attributes:
        image: of the workers: the ``dataflow`` target of this repository's Dockerfile.
        temp_location: gs:// folder for Dataflow's own files.
        machine_type: of the workers; None: the service chooses.
        max_workers: at most so many; None: the service chooses.
        subnetwork: the workers' subnetwork, as URL; None: the default one.
    """

    image: str
    temp_location: str
    machine_type: str | None = None
    max_workers: int | None = None
    subnetwork: str | None = None

    def __post_init__(self) -> None:
        if not self.image:
            raise UsageError("--dataflow-image must not be empty")
        check_url("--dataflow-temp-location", self.temp_location)
        if self.max_workers is not None and self.max_workers < 1:
            raise UsageError(f"--dataflow-max-workers must be at least 1 (got {self.max_workers})")


@dataclass(frozen=True, slots=True, kw_only=True)
class VertexSettings:
    """Where and as whom the steps run.

    Attributes:
        project: the Google Cloud project.
        region: such as ``us-central1``.
        image: of all steps.
        trainer_image: of the Trainer, such as one with CUDA; None: ``image``.
        machines: what a step needs, by component; of others, the service's default machine.
        service_account: as which the steps, and Dataflow's workers, run; None: the default one.
        network: the peered network of the steps; None: none.
        labels: of the job, and of Dataflow's jobs.
        dataflow: where Beam's work is done; None: in the steps' own containers.
    """

    project: str
    region: str
    image: str
    trainer_image: str | None = None
    machines: Mapping[str, Machine] = field(default_factory=dict)
    service_account: str | None = None
    network: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    dataflow: Dataflow | None = None

    def __post_init__(self) -> None:
        for name in ("project", "image"):
            if not getattr(self, name):
                raise UsageError(f"--{name} must not be empty")
        check_region(self.region)
        if self.service_account is not None and not _ACCOUNT.fullmatch(self.service_account):
            raise UsageError(
                f"--service-account must be an e-mail address (got {self.service_account!r})"
            )
        if self.network is not None and not _NETWORK.fullmatch(self.network):
            raise UsageError(
                f"--network must be projects/NUMBER/global/networks/NAME (got {self.network!r})"
            )

    def beam_args(self) -> tuple[str, ...] | None:
        """Return Beam's flags for Dataflow; None where Beam's work stays in the containers."""
        if self.dataflow is None:
            return None
        flags = {
            "runner": "DataflowRunner",
            "project": self.project,
            "region": self.region,
            "temp_location": self.dataflow.temp_location,
            "sdk_container_image": self.dataflow.image,
            "service_account_email": self.service_account,
            "worker_machine_type": self.dataflow.machine_type,
            "max_num_workers": self.dataflow.max_workers,
            "subnetwork": self.dataflow.subnetwork,
        }
        return (
            *(f"--{name}={value}" for name, value in flags.items() if value is not None),
            *(f"--label={name}={value}" for name, value in self.labels.items()),
        )


def check_region(region: str) -> None:
    """Check the name of a region, which becomes part of an address. Raises: UsageError."""
    if not _REGION.fullmatch(region):
        raise UsageError(f"--region must be a region such as us-central1 (got {region!r})")


def check_name(name: str) -> None:
    """Check a pipeline's name. Raises: UsageError."""
    if not _PIPELINE_NAME.fullmatch(name):
        raise UsageError(
            f"--name must be of lower-case letters, digits and dashes, a letter first, at most "
            f"111 of them (got {name!r})"
        )


def parse_label(text: str) -> tuple[str, str]:
    """``team=vision`` → ``("team", "vision")``. Raises: UsageError."""
    match = _LABEL.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--label must be NAME=VALUE, of lower-case letters, digits, - and _, at most 63 each "
            f"(got {text!r})"
        )
    return match[1], match[2]


def parse_machine(text: str) -> tuple[str, Machine]:
    """``Trainer=8,30,NVIDIA_TESLA_T4:2`` → the step's name, and what it needs.

    Raises:
        UsageError: it reads otherwise.
    """
    match = _MACHINE.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return match["step"], Machine(
            cpus=float(match["cpus"]),
            memory_gb=float(match["memory_gb"]),
            accelerator=match["accelerator"],
            accelerators=int(match["count"] or 1),
        )
    except UsageError:
        raise
    except ValueError as exc:
        raise UsageError(
            f"--machine must be STEP=CPUS,MEMORY_GB or STEP=CPUS,MEMORY_GB,ACCELERATOR[:COUNT], "
            f"such as Trainer=8,30,NVIDIA_TESLA_T4 (got {text!r})"
        ) from exc
