"""The arguments of a training without TFX: what TFX's Trainer passes as ``FnArgs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from recordgen import storage
from recordgen.core.dataset.manifest import read_dataset, split_dir
from recordgen.core.dataset.splits import EVAL, TRAIN


def training_arguments(
    roots: Sequence[str], settings: Mapping[str, Any], **folders: str | None
) -> SimpleNamespace:
    """Return the arguments for ``run_fn``.

    Args:
        roots: folders or URLs of the datasets, which are read as one.
        settings: the ``custom_config``.
        **folders: ``serving_model_dir``, ``model_run_dir`` and ``base_model``.

    Raises: SourceError: there is no dataset.
    """
    evaluated = [root for root in roots if EVAL in read_dataset(root).splits]
    return SimpleNamespace(
        train_files=[_pattern(root, TRAIN) for root in roots],
        eval_files=[_pattern(root, EVAL) for root in evaluated],
        train_steps=None,
        eval_steps=None,
        custom_config=settings,
        **folders,
    )


def _pattern(root: str, split: str) -> str:
    return storage.join(root, split_dir(split), "*")
