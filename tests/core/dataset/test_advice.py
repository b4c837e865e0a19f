"""Warnings about labels and splits of accepted data."""

from collections.abc import Callable

import pytest

import recordgen
from recordgen.cli import main
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.vocabulary import Vocabulary
from tests.checks.facts import examined_of, facts_of, label_findings

MakeCsv = Callable[..., str]

NO_EVAL = (
    "no example is in split eval, which TFX's Trainer and Evaluator need; eval_from=train:10 moves "
    "10 % of train there"
)
UNTRAINED = "1 labels have no image in split train, so no model learns them: 'b'"
UNMEASURED = "1 labels have no image in split eval, so no measure counts them: 'b'"

SHARES = ("IMBALANCE", "LABEL_DRIFT")

# examples by label of each split, labels of the vocabulary, the warnings about both
LABELS = [
    ({"train": {"a": 30, "b": 20}, "eval": {"a": 9, "b": 1}}, ("a", "b"), []),
    ({"train": {"a": 30, "b": 20}, "eval": {"a": 9}}, ("a", "b"), [UNMEASURED]),
    ({"train": {"a": 30}, "eval": {"a": 9, "b": 20}}, ("a", "b"), [UNTRAINED]),
    (
        {"train": {"a": 30}, "eval": {"a": 9}, "test": {"b": 20}},
        ("a", "b"),
        [UNTRAINED, UNMEASURED],
    ),
    # Few examples have another warning, and by chance none may be in eval.
    (
        {"train": {"a": 30, "b": 3}, "eval": {"a": 9}},
        ("a", "b"),
        ["1 labels have fewer than 10 images: 'b'"],
    ),
    # Numbers between the labels of the rows are outputs of a model.
    (
        {"train": {"0": 30, "2": 20}, "eval": {"0": 9, "2": 1}},
        ("0", "1", "2"),
        [
            "the 2 labels are whole numbers up to 2, and stay the numbers of classes: a model has "
            "3 outputs, 1 of them without an example ('1'); use labels=text to number the labels "
            "from 0 to 1, or labels=integer to confirm their numbers"
        ],
    ),
    ({"train": {"a": 30}, "test": {"a": 10}}, ("a",), [NO_EVAL]),
    # Data for prediction or evaluation only.
    ({"test": {"a": 10}}, ("a",), []),
    ({"eval": {"a": 10}}, ("a",), []),
]


@pytest.mark.parametrize(("counts", "labels", "warnings"), LABELS)
def test_a_missing_label_or_split_gives_one_sentence(counts, labels, warnings):
    splits = {
        name: Split(sum(by_label.values()), 0, by_label, ()) for name, by_label in counts.items()
    }
    kind = "integer" if labels[0] == "0" else "text"
    examined = examined_of(facts_of([]), vocabulary=Vocabulary(kind, labels), splits=splits)
    found = label_findings(examined)
    assert [text for code, text in found if code not in SHARES] == warnings


def test_a_class_without_training_examples_is_a_warning_until_an_append(make_csv, tmp_path, capsys):
    lines = [f"{use},{n}.mp4,x" for n, use in enumerate(["TRAIN"] * 12 + ["VALIDATION"] * 3)]
    lines += [f"TEST,{n}.mp4,y" for n in range(20, 32)]
    source, output = make_csv(lines), tmp_path / "out"
    warning = "1 labels have no segment in split train, so no model learns them: 'y'"
    for command in (["check", source], ["convert", source, str(output)]):
        assert main([*command, "-q"]) == 0
        assert f"Warning    {warning}" in capsys.readouterr().out
    assert warning in recordgen.read_dataset(str(output)).warnings
    more = make_csv(["TRAIN,50.mp4,y"], "more.csv")
    assert warning not in recordgen.convert(more, output, append=True).dataset.warnings
