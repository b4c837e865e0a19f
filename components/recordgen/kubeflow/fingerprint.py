"""``fingerprint``: a text that changes with the data, for the cache of the steps after it."""

from __future__ import annotations

from recordgen.console import logs
from recordgen.conversion.fingerprint import image_fingerprint
from recordgen.formats.import_file import find_import_files
from recordgen.kubeflow.convert import to_options
from recordgen.kubeflow.execution import StepInput, StepOutput


def run(step: StepInput) -> StepOutput:
    """Look up size and time of the import files ``source`` and of all files that they name.

    Raises: RecordgenError: as :func:`recordgen.conversion.fingerprint.image_fingerprint`.
    """
    values = dict(step.parameters)
    files = find_import_files(values.pop("source"))
    found = image_fingerprint(files, to_options(values))
    logs.said(found)
    return StepOutput({"fingerprint": found})
