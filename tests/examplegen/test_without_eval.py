"""An import file with TRAIN rows only, in a pipeline with TFX's own Trainer."""

from pathlib import Path

import pytest
from tfx import v1 as tfx

from pipelines.metadata import Metadata
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import LintError
from recordgen.examplegen import AutoMLExampleGen

COUNT = 40


def steps(folder, **options):
    example_gen = AutoMLExampleGen(str(folder), task="text_classification", **options)
    trainer = tfx.components.Trainer(
        run_fn="recordgen.training.run_fn",
        examples=example_gen.outputs["examples"],
        custom_config={"batch_size": 8, "epochs": 1},
        train_args=tfx.proto.TrainArgs(num_steps=1),
        eval_args=tfx.proto.EvalArgs(),
    )
    return example_gen, trainer


@pytest.mark.slow
def test_the_conversion_fails_unless_a_share_of_train_becomes_eval(tmp_path, run_tfx):
    """The plan of the rows fails, so no text is converted for a Trainer that cannot run."""
    data, work = tmp_path / "data", tmp_path / "work"
    data.mkdir()
    rows = [f"TRAIN,{number} is {label},{label}\n" for number in range(COUNT) for label in "ab"]
    (data / "a.csv").write_text("".join(rows))
    with pytest.raises(LintError, match=r"eval_from=train:10"):
        run_tfx(work, *steps(data))
    executions = Metadata(str(work / "metadata.db")).latest_run()
    assert [(each.component, each.state) for each in executions] == [("AutoMLExampleGen", "FAILED")]

    found = run_tfx(work, *steps(data, eval_from="train:20"))
    uris = {
        artifact.type: artifact.uri for e in found.latest_run() for artifact in found.outputs(e)
    }
    dataset = read_dataset(uris["Examples"])
    assert 0 < dataset.splits["eval"].examples < dataset.splits["train"].examples
    assert dataset.examples == 2 * COUNT
    assert Path(uris["Model"], "Format-Serving/saved_model.pb").exists()
