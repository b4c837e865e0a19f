"""TFX's Trainer, whose Model artifact says what the model learned from.

Custom properties of the artifact: ``dataset_digest``; ``eval_loss`` and the other scores on split
eval, as numbers; and each setting of the training, as text.
"""

from __future__ import annotations

import json
from typing import Any

from tfx import v1 as tfx
from tfx.components.trainer.executor import GenericExecutor
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import Artifact
from tfx.utils import path_utils

from recordgen import storage
from recordgen.lineage import LINEAGE_FILE, ModelLineage


class Executor(GenericExecutor):
    """Trains as TFX's own, and describes the artifact."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Train; see :func:`recordgen.training.run.run`."""
        super().Do(input_dict, output_dict, exec_properties)
        [model] = output_dict["model"]
        file = storage.join(path_utils.serving_model_dir(model.uri), LINEAGE_FILE)
        if not storage.is_file(file):  # a run_fn of its own, which does not save as ours
            return
        lineage = ModelLineage.from_json(json.loads(storage.read_text(file)))
        for name, value in lineage.facts.items():
            if isinstance(value, float) and name not in lineage.settings:
                model.set_float_custom_property(name, value)
            else:
                model.set_string_custom_property(name, str(value))


class Trainer(tfx.components.Trainer):
    """Takes what ``tfx.v1.components.Trainer`` takes."""

    EXECUTOR_SPEC = ExecutorClassSpec(Executor)
