"""Labels are names: what is none stops the run, and what the refusal proposes reads it."""

import pytest

import recordgen
from recordgen.core.dataset.vocabulary import LabelForms, check_labels
from recordgen.errors import NotUnderstoodError
from recordgen.formats.label_fields import separated
from tests.conftest import error_of, stored_examples

ONE = LabelForms(several="text_multi_label", is_alone=True)
SEVERAL = LabelForms(several="text_multi_label", is_several=True)
IMAGES = LabelForms(is_alone=True, may_be_unsure=True)
PARTS = LabelForms()  # boxes, spans; rows without fields


def numbers(labels, rows):
    return dict.fromkeys(map(str, labels), rows)


NAMES = [
    dict.fromkeys(("cat", "hot dog", "n01443537", "Golf 1.5 TSI", "C#", "007", "-1", "{{ 7 }}"), 1),
    {"Pepper,_bell": 1, "Pepper,_hot": 1, "tench, Tinca tinca": 1},  # ImageNet, PlantVillage
    {"hot dog": 1, "hot": 1},
    {"train": 3, "car": 1},
    numbers(range(10), 1),
    numbers(range(100), 5),  # CIFAR-100
    numbers(range(1, 1001), 2),  # ImageNet, numbered from 1
    numbers(range(0, 900, 9), 10),
    {},
]

# labels with their rows, the options of the refusal by task of labels
ODD = [
    (["0.25", "cat"], {}),
    (["1e-3", "1.0"], {}),
    (["[cat]", "[cat,dog]"], {"label_separator": ","}),
    (["['a', 'b']"], {"label_separator": ","}),
    (['{"choices": ["cat"]}'], {"label_separator": ","}),
    (["[0, 1]", "[1, 0]"], {}),
    (['[{"transcription": "EXIT", "points": [[5, 6]]}]'], {}),
    (["[(0, 4, 'PER')]"], {}),
    (["[4, 5, 20.5, 30]"], {}),
    (["<loc0100><loc0200> clock"], {}),
    (["clock<loc_100><loc_200>"], {}),
    (["264661 17 265429 33"], {}),
    (["n01629819 5 5 30 30"], {}),
    (["cat|dog"], {"label_separator": "|"}),
    (["cat,dog", "cat", "dog"], {"label_separator": ","}),
    (["a;b", "b;c"], {"label_separator": ";"}),
    (["0", "16", "16 0"], {"label_separator": " "}),
    (["cat/dog", "cat", "dog"], {"label_separator": "/"}),
    (["36,5", "37,5"], {}),
    (["1,3,5", "3,5"], {"label_separator": ","}),
    (["labels/1.txt"], {}),
    (["gs://bucket/1"], {}),
    (["2020-01-31"], {}),
    (["'cat'", "'dog'"], {}),
]


@pytest.mark.parametrize("counts", NAMES)
def test_words_and_whole_numbers_are_names(counts):
    """Names of classes pass, also with signs, numbers and words of ML_USE among others."""
    check_labels(counts, 0, ONE)


@pytest.mark.parametrize(("labels", "options"), ODD)
def test_a_label_that_is_no_name_stops(labels, options):
    """Every task refuses it; only rows that have fields get an option that divides them."""
    counts = dict.fromkeys(labels, 1)
    task = {"task": "text_multi_label"} if options else {}
    for forms, expected in ((ONE, {**task, **options}), (SEVERAL, options), (PARTS, {})):
        error = error_of(NotUnderstoodError, check_labels, counts, 0, forms)
        assert error.options == expected
        assert any(repr(label) in error.shown for label in labels)


DOUBTFUL_LABELS = [
    numbers((17, 42, 20, 51, 84, 33, 29, 60, 71, 12, 13), 1),  # ages
    numbers(range(0, 200, 5), 9),  # scores
    {"TRAIN": 5, "Test": 2},
    {f"a dog on beach {number}": 1 for number in range(10)},  # captions
    {f"id_{number}": 1 for number in range(100)},
]


@pytest.mark.parametrize("counts", DOUBTFUL_LABELS)
def test_labels_that_may_be_amounts_texts_or_splits_stop(counts):
    """They do if a label is all that a row says; boxes of a class may have any number."""
    with pytest.raises(NotUnderstoodError):
        check_labels(counts, 0, ONE)
    check_labels(counts, 0, PARTS)


@pytest.mark.parametrize("counts", [{"-1": 2, "1": 3}, {"-1.0": 2, "0.0": 2, "1.0": 3}])
def test_minus_one_beside_rows_without_a_label_is_in_doubt(counts):
    """It is a class or an uncertain one, as in CheXpert."""
    error = error_of(NotUnderstoodError, check_labels, counts, 4, IMAGES)
    assert "uncertain=0" in str(error)


@pytest.mark.parametrize(
    ("counts", "unlabelled", "forms"),
    [
        ({"-1": 2, "1": 3}, 0, IMAGES),
        ({"0": 2, "1": 3}, 4, IMAGES),
        ({"-1": 2, "cat": 3}, 4, IMAGES),
        ({"-1": 2, "0": 2, "1": 3}, 4, ONE),  # sentiments
        ({"-1": 2, "1": 3}, 4, PARTS),
    ],
)
def test_minus_one_is_a_class_otherwise(counts, unlabelled, forms):
    """All rows have a label, or there are other classes, or the rows are texts or boxes."""
    check_labels(counts, unlabelled, forms)


def test_lists_in_brackets_are_separated():
    """One pair of brackets and quotes goes; a separator in quotes is part of a label."""
    for field in ("cat,dog", "[cat, dog]", "['cat', 'dog']", '["cat","dog"]', "{'cat','dog'}"):
        assert separated([field], ",") == ["cat", "dog"]
    assert separated(["""['a, b', "it's"]"""], ",") == ["a, b", "it's"]
    assert separated(["[]"], ",") == []


@pytest.mark.parametrize("beam_args", [(), ("--runner=DirectRunner",)])
def test_the_options_of_a_refusal_read_the_rows(beam_args, tmp_path):
    """The run stops before anything is written, and the proposed options give the labels."""
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text("text,label\n" + "".join(f"t {n},\"['b', 'a']\"\n" for n in range(9)))
    options = {"task": "text_classification", "beam_args": beam_args}
    error = error_of(NotUnderstoodError, recordgen.convert, path, out, **options)
    assert not any(out.iterdir())
    dataset = recordgen.convert(path, out, **error.options).dataset
    assert (dataset.task, dataset.labels) == ("text_multi_label", ("a", "b"))
    assert len(list(stored_examples(out))) == 9


@pytest.mark.parametrize("confirmed", [{"labels": "text"}, {"vocabulary": "labels.txt"}])
def test_an_option_confirms_labels(confirmed, tmp_path, monkeypatch):
    """labels=text, and a vocabulary that has them, say that labels are names; so does a schema."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("text,label\nsome text,[x]\nother text,[y]\n")
    (tmp_path / "labels.txt").write_text("[x]\n[y]\n")
    options = {"task": "text_classification", **confirmed}
    assert recordgen.convert("a.csv", "out", **options).dataset.labels == ("[x]", "[y]")
    schema = {"text": "text", "label": "label"}
    assert recordgen.convert("a.csv", "out1", schema=schema).dataset.labels == ("[x]", "[y]")
    (tmp_path / "b.csv").write_text("text,label\nmore text,[z]\n")
    with pytest.raises(NotUnderstoodError):
        recordgen.convert("b.csv", "out2", task="text_classification", vocabulary="labels.txt")
