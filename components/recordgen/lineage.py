"""Where datasets and models come from: events for OpenLineage, and a file inside each model.

Events report the start and the end of a conversion or training to a service.

    START                        job recordgen.convert.digits: inputs: the import files, output
    COMPLETE | FAIL | ABORT      the output, of a conversion with version, schema and counts

OpenLineage's own settings give the destination: ``OPENLINEAGE_URL``, other variables of its client,
or ``openlineage.yml``. Without any of them nothing is imported. A service that does not answer and
a wrong setting cause only a warning.

Names of datasets: "Dataset Naming", openlineage.io/docs/spec/naming.

    MODEL/assets.extra/lineage.json   {"dataset": {"digest": "3f…", "rows": 1800, …}, "split": …}

SavedModel reserves ``assets.extra`` for users' files; servers ignore them and copies keep them. So
a pushed model can be traced to its import files without a metadata store; the digest identifies the
dataset, wherever it is.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from recordgen import storage
from recordgen.core.dataset.manifest import Dataset, built
from recordgen.messages.masking import masked, without_secrets
from recordgen.version import __version__

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

PRODUCER = f"urn:recordgen:{__version__}"

_NAMESPACE = "OPENLINEAGE_NAMESPACE"
_JOB_NAME = "OPENLINEAGE_JOB_NAME"
_PARENT = "OPENLINEAGE_PARENT_ID"
_DISABLED = "OPENLINEAGE_DISABLED"
SETTINGS = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG")
_TRANSPORT = "OPENLINEAGE__TRANSPORT"
CONFIG_FILE = "openlineage.yml"

# Time to wait at the end of a run for pending events.
_CLOSE_SECONDS = 10.0

_log = logging.getLogger(__name__)


def is_configured(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether OpenLineage's own settings give a destination for events."""
    if environ.get(_DISABLED, "").strip().lower() == "true":
        return False
    given = (name for name in environ if name in SETTINGS or name.startswith(_TRANSPORT))
    if any(map(environ.get, given)):
        return True
    folders = (os.getcwd(), os.path.expanduser("~/.openlineage"))
    return any(os.path.isfile(os.path.join(folder, CONFIG_FILE)) for folder in folders)


class Facets(NamedTuple):
    """The facets of an output and of its run, of OpenLineage's classes, by name."""

    dataset: Mapping[str, Any] = {}
    output: Mapping[str, Any] = {}
    run: Mapping[str, Any] = {}


@dataclass(frozen=True)
class RunEvents:
    """The events of a run of ``job``, from ``inputs`` to ``output``; no client, no events."""

    client: OpenLineageClient | None
    job: str
    inputs: Sequence[str]
    output: str
    run_id: str = field(default_factory=lambda: str(uuid4()))

    def emit(
        self, state: str, facets: Callable[[], Facets] = Facets, error: BaseException | None = None
    ) -> bool:
        """Send a state of the run, such as COMPLETE, and return whether it was sent.

        If it was not, a warning gives the reason.
        """
        if self.client is None:
            return False
        try:
            self.client.emit(self._event(state, facets(), error))
        except Exception as exc:  # noqa: BLE001 -- no error of a transport may end the run
            _warn(f"the event {state} was not sent: {type(exc).__name__}: {exc}")
            return False
        return True

    def _event(self, state: str, facets: Facets, error: BaseException | None) -> Any:
        from openlineage.client import event_v2
        from openlineage.client.facet_v2 import error_message_run

        run_facets = dict(facets.run)
        if error is not None:
            run_facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=masked(f"{type(error).__name__}: {error}"),
                programmingLanguage="PYTHON",
                producer=PRODUCER,
            )
        inputs = [
            event_v2.InputDataset(*dataset_id(path))
            for path in self.inputs
            if storage.is_known(path) and path != "DataFrame"
        ]
        output = event_v2.OutputDataset(
            *dataset_id(self.output), facets=facets.dataset, outputFacets=facets.output
        )
        if parent := _parent():
            run_facets["parent"] = parent
        return event_v2.RunEvent(
            eventType=event_v2.RunState[state],
            eventTime=datetime.now(timezone.utc).isoformat(),
            run=event_v2.Run(runId=self.run_id, facets=run_facets),
            job=event_v2.Job(
                namespace=os.environ.get(_NAMESPACE) or "default",
                name=os.environ.get(_JOB_NAME) or self.job,
            ),
            inputs=inputs,
            outputs=[output],
            producer=PRODUCER,
        )


@contextmanager
def run_events(job: str, inputs: Sequence[str], output: str) -> Iterator[RunEvents]:
    """Send START now and, if the block raises, FAIL or ABORT; the block sends COMPLETE.

    ``OPENLINEAGE_JOB_NAME`` replaces ``job``.
    """
    client = _client()
    events = RunEvents(client, job, inputs, output)
    events.emit("START")
    try:
        yield events
    except BaseException as exc:
        is_failure = isinstance(exc, Exception)  # a KeyboardInterrupt is not
        events.emit("FAIL" if is_failure else "ABORT", error=exc)
        raise
    finally:
        if client is not None:  # transports may send in the background
            client.close(_CLOSE_SECONDS)


def conversion_events(source: Sequence[str], output: str) -> AbstractContextManager[RunEvents]:
    """Return the events of a conversion of import files, as they were given."""
    return run_events(f"recordgen.convert.{source_name(source) or 'rows'}", source, output)


def source_name(source: Sequence[str]) -> str:
    """Return the name of the first import file; empty if there is none.

    ``["gs://b/pets/labels.csv"]`` → ``labels``; ``["gs://b/pets/"]`` → ``pets``
    """
    first = next(iter(source), "").rstrip("/")
    stem = posixpath.basename(first).partition(".")[0]
    return stem if stem.strip("*?[]") else ""


def _parent() -> Any:
    """Return the facet of the run that started this one, which ``OPENLINEAGE_PARENT_ID`` names.

    Airflow's ``lineage_parent_id`` macro gives it: ``NAMESPACE/JOB/RUN``. None without one.
    """
    said = os.environ.get(_PARENT)
    if not said:
        return None
    parts = said.rsplit("/", 2)
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{_PARENT} must be NAMESPACE/JOB/RUN (got {said!r:.80})")
    from openlineage.client.facet_v2 import parent_run

    namespace, job, run = parts
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=run),
        job=parent_run.Job(namespace=namespace, name=job),
        producer=PRODUCER,
    )


def _client() -> OpenLineageClient | None:
    """Return the configured client; None without settings, or if they are wrong."""
    if not is_configured():
        return None
    try:
        from openlineage.client import OpenLineageClient
    except ImportError:
        _warn(
            "OpenLineage is configured, but its client is not installed: no events are sent; "
            f"pip install '.[openlineage]', or set {_DISABLED}=true"
        )
        return None
    try:
        return OpenLineageClient()
    except Exception as exc:  # noqa: BLE001 -- a wrong setting may raise anything
        _warn(f"OpenLineage's settings cannot be used: {type(exc).__name__}: {exc}")
        return None


def dataset_id(path: str) -> tuple[str, str]:
    """Return the namespace and name that OpenLineage gives a file or folder.

    ``gs://bucket/a/b`` → ``("gs://bucket", "a/b")``; ``b/c`` → ``("file", "/cwd/b/c")``
    """
    if storage.is_local(path):
        return "file", storage.absolute(path)
    scheme, _, rest = without_secrets(path).partition("://")
    place, _, name = rest.partition("/")
    return f"{scheme}://{place}", name.strip("/") or "/"


def _warn(message: str) -> None:
    _log.warning("%s", masked(message))


def dataset_name(dataset: Dataset) -> str:
    """Return a name for a dataset: the name of its first import file, or its task."""
    return source_name(dataset.source) or dataset.task


# --- models --------------------------------------------------------------------------------------


LINEAGE_FILE = "assets.extra/lineage.json"

#: The value of ``format`` in the file.
FORMAT = "recordgen-lineage/1"

_PACKAGES = ("tensorflow", "keras", "numpy", "tfx")

# Variables that say what runs: our own, and for the commit those of GitHub, GitLab and Cloud Build.
_SAID = {
    "image": ("RECORDGEN_IMAGE",),
    "commit": ("RECORDGEN_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "COMMIT_SHA"),
}


@dataclass(frozen=True, slots=True)
class DatasetLineage:
    """The origin of a dataset."""

    # Its absolute path, or its URL without secrets; a tuple if several datasets were read as one.
    uri: str | tuple[str, ...]
    digest: str  # see Dataset, also for all below
    task: str
    rows: int  # rows of the import files
    rejects: int
    splits: Mapping[str, int]  # examples by split
    label_count: int
    source: tuple[str, ...]  # the import files as they were given
    seed: int  # the seed of order and splits
    options: Mapping[str, Any]  # the options that affect the output
    recordgen_version: str  # the version that wrote the dataset

    @classmethod
    def of(cls, uri: str | tuple[str, ...], dataset: Dataset) -> DatasetLineage:
        """Return the lineage of the dataset at ``uri``."""
        return cls(
            uri=_absolute(uri) if isinstance(uri, str) else tuple(map(_absolute, uri)),
            digest=dataset.digest,
            task=dataset.task,
            rows=dataset.rows.read - dataset.rows.existing,  # read in earlier runs
            rejects=dataset.rows.rejects,
            splits={name: split.examples for name, split in dataset.splits.items()},
            label_count=len(dataset.labels),
            source=tuple(dataset.source),
            seed=dataset.seed,
            options=dataset.options,
            recordgen_version=dataset.recordgen_version,
        )


@dataclass(frozen=True, slots=True)
class ModelLineage:
    """The training data and settings of a model."""

    dataset: DatasetLineage  # the dataset when the training began
    split: str  # the training split
    settings: Mapping[str, Any]  # the settings of the training
    recordgen_version: str = __version__  # the version that trained the model
    # Versions of what trained it, see software_here.
    software: Mapping[str, str] = field(default_factory=dict)
    # Loss and metrics of the saved weights on split eval; empty if nothing was evaluated.
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """What events and metadata stores say of the model, by name."""
        scores = {f"eval_{name}": score for name, score in self.scores.items()}
        return {"dataset_digest": self.dataset.digest, **scores, **self.settings}

    def to_json(self) -> str:
        """Return the content of ``lineage.json``."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, data: Any) -> ModelLineage:
        """Return the lineage in a parsed file. Raises: KeyError, TypeError, ValueError."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}")
        return built(cls, {name: value for name, value in data.items() if name != "format"})


def _absolute(place: str) -> str:
    return without_secrets(storage.absolute(place))


def software_here(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return versions of Python and packages here, and the container and commit if they are said.

    ``{"python": "3.10.13", "tensorflow": "2.16.2", "keras": "3.3.3", "commit": "3f0c…"}``
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    for name, variables in _SAID.items():
        if value := next((environ[each] for each in variables if environ.get(each)), ""):
            found[name] = without_secrets(value)
    return found


def write_lineage(model: str, lineage: ModelLineage) -> None:
    """Write the lineage into a saved model's folder. Raises: StorageError."""
    storage.write_text(storage.join(model, LINEAGE_FILE), lineage.to_json())
