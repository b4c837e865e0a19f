"""A ``run_fn`` that trains as Recordgen's own does, without what takes most of its time."""

import json
from pathlib import Path

from recordgen.training.config import TrainingConfig


def run_fn(fn_args):
    """Train without an evaluation; write in place of a model which examples were read."""
    from recordgen.training.run import fit

    fn_args.eval_files = []
    fitting, _ = fit(fn_args, TrainingConfig.from_custom_config(fn_args.custom_config))
    root = fitting.trainer.root
    found = {
        "roots": [root] if isinstance(root, str) else root,
        "steps": int(fitting.models.trained.optimizer.iterations),
    }
    folder = Path(fn_args.serving_model_dir)
    folder.mkdir(parents=True)
    (folder / "fitted.json").write_text(json.dumps(found))
