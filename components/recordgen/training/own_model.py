"""Save a model that another program trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from recordgen.registry import TASKS
from recordgen.training.config import TrainingConfig, check_task
from recordgen.training.inputs import Root, examples_root, read_examples
from recordgen.training.saving import save_for_serving


def save_model(
    model: keras.Model,
    path: str,
    examples: str | Sequence[str],
    split: str,
    settings: Mapping[str, Any],
) -> None:
    """Save a model that another program trained; see :func:`recordgen.training.save`."""
    root: Root = examples if isinstance(examples, str) else tuple(examples)
    if isinstance(root, tuple) and all("/Split-" in pattern for pattern in root):
        root, split = examples_root(root)
    height_and_width = getattr(model, "input_shape", ())[1:3]
    if len(height_and_width) == 2 and None not in height_and_width:
        settings = {"image_size": list(height_and_width), **settings}
    dataset = read_examples(root)
    check_task(dataset.task, root)
    config = TrainingConfig.from_custom_config(settings)
    trainer = TASKS[dataset.task].declared("trainer")(root, split, dataset, config)
    trainer.check()
    save_for_serving(model, path, trainer)
