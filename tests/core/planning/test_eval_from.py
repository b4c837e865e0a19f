"""eval_from moves a share of one split to eval, in every API, and moves nothing else."""

from functools import partial

import pytest

import recordgen
from recordgen.cli import main
from recordgen.conversion.results import as_flags
from recordgen.errors import UsageError
from tests.conftest import stored_examples

# Videos are never opened, so rows need no files.
VIDEOS = {"task": "video_classification"}


def split_of_each(output, feature):
    """Return the split of each example by the value of a feature."""
    found = {}
    for name, values in stored_examples(output):
        [value] = values[feature]
        key = value.decode() if isinstance(value, bytes) else str(value)
        assert found.setdefault(key, name) == name
    return found


def convert(source, output, **options):
    """Convert videos and return the split of each."""
    recordgen.convert(source, output, **{**VIDEOS, **options})
    return split_of_each(output, "video/source_id")


def test_parts_of_a_video_stay_together(make_csv, tmp_path):
    """All move, or none does."""
    lines = [f"TRAIN,{n}.mp4,x,{start},{start + 1}" for n in range(60) for start in range(3)]
    assert len(set(convert(make_csv(lines), tmp_path / "v", eval_from="train:30").values())) == 2


def test_a_moved_example_is_no_conflict_of_append_or_resume(make_csv, tmp_path, out):
    """Rows that name TRAIN stay in eval if an earlier run has moved their example there."""
    lines = [f"TRAIN,{n}.mp4,x,0,1" for n in range(80)]
    source = make_csv(lines)
    old = convert(source, out, eval_from="train:25")
    assert recordgen.convert(source, out, resume=True, eval_from="train:25", **VIDEOS).unchanged
    new = [*lines, *(f"{('TRAIN', '')[n % 2]},{n}.mp4,x,1,2" for n in range(100))]
    # The import file is in another folder, but rows are placed by the folder of the first run.
    (tmp_path / "later").mkdir()
    later = [line.replace(",", ",../", 1) for line in new]
    append = partial(recordgen.convert, output=out, append=True, eval_from="train:25")
    with pytest.raises(UsageError, match=r"split .*'train:100'"):
        append(make_csv(later, "later/b.csv"), split="100")
    lines = [line for line in later if line.startswith("TRAIN")]
    result = append(make_csv(lines, "later/b.csv"))
    assert (result.dataset.rows.existing, result.rejects) == (80, ())
    found = split_of_each(out, "video/source_id")
    assert {uri: found[uri] for uri in old} == old
    assert result.dataset.splits["eval"].examples > len([s for s in old.values() if s == "eval"])
    with pytest.raises(UsageError, match=r"split eval.* 1 other rows"):
        append(make_csv(["VALIDATION,200.mp4,x"], "c.csv"))


def test_a_missing_eval_suggests_the_option(make_csv, tmp_path, stdout_of, json_of, capsys):
    """Splits that are all named get none, others a share of eval."""
    named = make_csv([f"{'TEST' if n % 4 == 0 else 'TRAIN'},{n}.mp4,x" for n in range(80)], "a.csv")
    assert "--eval-from train:10" in stdout_of("check", named, "--task=video_classification")
    # As CIFAR lost its splits: some rows name test, and others are assigned to test, too.
    open_ = make_csv([f"{'TEST' if n % 4 == 0 else ''},{n}.mp4,x" for n in range(80)], "b.csv")
    assert main(["convert", open_, str(tmp_path / "o"), "--task=video_classification"]) == 0
    dataset = recordgen.read_dataset(str(tmp_path / "o"))
    split = dataset.splits["test"]
    assert split.assigned == split.examples - 20 > 0
    [warning] = [text for text in dataset.warnings if "split test" in text]
    assert warning.startswith(f"{split.assigned} of {split.examples} ")
    assert as_flags(warning) in capsys.readouterr().out
    few = make_csv(["TRAIN,1.mp4,x", "TEST,2.mp4,x"], "c.csv")
    command = ["check", few, "-q", "--eval-from=train:0.001", "--task", VIDEOS["task"]]
    assert "eval_from=train:0.001" in json_of(*command)["warnings"][-1]
