"""The log of a training: Recordgen's own, or TFX's where nobody listens to ours."""

from __future__ import annotations

import logging

_OWN = logging.getLogger("recordgen.training")


def log_info(message: str, *values: object) -> None:
    """Log progress at the level INFO.

    Commands and Kubeflow steps listen to Recordgen's logger. TFX's containers show the messages of
    absl at this level, and no others.
    """
    listened = _OWN if _OWN.isEnabledFor(logging.INFO) else logging.getLogger("absl")
    listened.info(message, *values)
