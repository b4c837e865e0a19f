"""``push``: copy a model to a server's folder."""

from __future__ import annotations

import shutil
import time

from recordgen import storage
from recordgen.console import logs
from recordgen.errors import SourceError, UsageError
from recordgen.kubeflow.execution import StepInput, StepOutput, read_place

# Servers consider a version complete once this file exists.
_LAST_FILE = "saved_model.pb"


def run(step: StepInput) -> StepOutput:
    """Copy the input ``model`` to ``serving_dir/VERSION``; the version is the time in seconds.

    Raises:
        UsageError: ``serving_dir`` is empty or cannot be written to.
        SourceError: the model is not a SavedModel.
        StorageError: storage failed.
    """
    serving_dir = step.parameters.get("serving_dir")
    if not serving_dir:
        raise UsageError("serving_dir must be a folder or URL to which models are pushed")
    model = read_place(step.artifacts["model"])
    target = storage.join(storage.normal(serving_dir), str(int(time.time())))
    copy_model(model, target)
    logs.said(f"pushed to {target}")
    return StepOutput({"pushed_to": target})


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
