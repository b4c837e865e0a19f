"""``push``: copy a model to a server's folder."""

from __future__ import annotations

import shutil
import time

from recordgen import storage
from recordgen.console import logs
from recordgen.errors import SourceError, UsageError
from recordgen.kubeflow.execution import StepInput, StepOutput

# Servers consider a version complete once this file exists.
_LAST_FILE = "saved_model.pb"

#: The step evaluate's verdict: an output, and a key of the metadata of ``metrics``.
BLESSED = "blessed"


def run(step: StepInput) -> StepOutput:
    """Copy the input ``model`` to ``serving_dir/VERSION``; the version is the time in seconds.

    If the input ``evaluation``, the metrics of the step evaluate, does not bless the model, nothing
    is pushed and ``pushed_to`` is empty.

    Raises:
        UsageError: ``serving_dir`` is empty or cannot be written to, or ``evaluation`` is not of
            the step evaluate.
        SourceError: the model is not a SavedModel.
        StorageError: storage failed.
    """
    serving_dir = step.parameters.get("serving_dir")
    if not serving_dir:
        raise UsageError("serving_dir must be a folder or URL to which models are pushed")
    for evaluation in step.artifacts.get("evaluation", ()):
        if BLESSED not in evaluation.metadata:
            raise UsageError(
                f"evaluation must be the output metrics of evaluate ({evaluation.uri})"
            )
        if not evaluation.metadata[BLESSED]:
            logs.said("not pushed: the evaluation does not bless the model")
            return StepOutput({"pushed_to": ""})
    model = step.path("model")
    target = storage.join(storage.normal(serving_dir), str(int(time.time())))
    copy_model(model, target)
    logs.said(f"pushed to {target}")
    return StepOutput({"pushed_to": target})


def newest_version(serving_dir: str) -> list[str]:
    """Return the model in ``serving_dir`` with the highest version; [] if there is none."""
    if not serving_dir:
        return []
    folder = storage.normal(serving_dir)
    try:
        entries = storage.list_dir(folder)
    except FileNotFoundError:
        return []
    versions = sorted((int(name), name) for name, is_folder in entries if name.isdecimal())
    paths = [storage.join(folder, name) for _, name in reversed(versions)]
    # A push that was interrupted has no last file.
    return next(([path] for path in paths if storage.exists(storage.join(path, _LAST_FILE))), [])


def copy_model(model: str, target: str) -> None:
    """Copy a SavedModel; last, the file that marks it as complete. Raises: as :func:`run`."""
    files = {path[len(model) :].lstrip("/"): path for path in storage.list_files(f"{model}/**")}
    if _LAST_FILE not in files:
        raise SourceError(f"{model}: not a SavedModel: there is no {_LAST_FILE}")
    for name in sorted(files, key=lambda name: name == _LAST_FILE):
        with (
            storage.open_read(files[name]) as source,
            storage.replacing(storage.join(target, name)) as copy,
        ):
            shutil.copyfileobj(source, copy)
