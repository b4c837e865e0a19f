"""Training as a TFX step: ``Trainer(run_fn="recordgen.training.run_fn")``.

TensorFlow is loaded when training starts, not when a pipeline's definition names its settings.
"""

from __future__ import annotations

from typing import Any

from recordgen.training.config import TrainingConfig

__all__ = ["TrainingConfig", "run_fn"]


def run_fn(fn_args: Any) -> None:
    """Train, and save the model for serving; see :func:`recordgen.training.run.run`.

    Args:
        fn_args: TFX's ``FnArgs``; ``custom_config`` holds the fields of
            :class:`recordgen.training.config.TrainingConfig`.
    """
    from recordgen.training.run import run

    run(fn_args)
