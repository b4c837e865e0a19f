"""Vocabularies: the number of each label, in a new dataset and in one that grows."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.core.dataset import vocabulary
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.dataset.vocabulary import Vocabulary, build_vocabulary, join_names, with_seen
from recordgen.errors import DataError, SourceError, UsageError
from tests.conftest import convert_lines, stored_examples


def numbers(count):
    """Return the vocabulary of the whole numbers below ``count``."""
    return Vocabulary("integer", tuple(map(str, range(count))))


# labels, mode, vocabulary
VOCABULARIES = [
    (["dog", "cat", "dog"], "auto", Vocabulary("text", ("cat", "dog"))),
    (["0", "3"], "auto", numbers(4)),
    (["10", "9"], "text", Vocabulary("text", ("10", "9"))),
    (["0", "01"], "auto", Vocabulary("text", ("0", "01"))),
    (["1", "-1"], "auto", Vocabulary("text", ("-1", "1"))),
    (["1", "cat"], "auto", Vocabulary("text", ("1", "cat"))),
    (["1", "\u0663"], "auto", Vocabulary("text", ("1", "\u0663"))),  # an Arabic 3
    (["1" * 19, "1"], "auto", Vocabulary("text", ("1", "1" * 19))),  # more than 18 digits
    (["999"], "auto", numbers(1000)),
    # Ten numbers per label in use.
    ([*map(str, range(100)), "1009"], "auto", numbers(1010)),
    (["1000"], "integer", numbers(1001)),
    ([], "auto", Vocabulary("text", ())),
    ([], "integer", Vocabulary("text", ())),
]


@pytest.mark.parametrize(("labels", "mode", "expected"), VOCABULARIES)
def test_text_is_sorted_and_whole_numbers_keep_their_value(labels, mode, expected):
    """Unless they are sparse."""
    found = build_vocabulary(labels, mode)
    assert found == expected
    assert [found.names[found.index(label)] for label in labels] == labels


SPARSE = [["80331", "10115"], ["1000"], [*map(str, range(100)), "1010"]]


@pytest.mark.parametrize("labels", SPARSE, ids=range(len(SPARSE)))
def test_sparse_numbers_become_text_with_a_warning(labels):
    """The option keeps them."""
    found, largest = build_vocabulary(labels), max(labels, key=int)
    assert (found.kind, found.names) == ("text", tuple(sorted(labels)))
    [warning] = found.warnings
    assert re.search(rf" {len(labels)} .* {largest}\b.*labels=integer", warning)
    assert build_vocabulary(labels, "integer").index(largest) == int(largest)


def test_forced_numbers_refuse_other_and_huge_labels():
    """The error names the option."""
    with pytest.raises(DataError, match=r"labels=integer .*'cat'.*labels=text"):
        build_vocabulary(["1", "cat"], "integer")
    with pytest.raises(DataError, match=r"10000000: labels=integer .*10000001 .*labels=text"):
        build_vocabulary(["10000000"], "integer")
    with pytest.raises(UsageError, match=r"labels .*auto, text, integer, none .*'number'"):
        build_vocabulary(["1"], "number")


def test_rows_without_labels_refuse_a_label():
    """``labels=none`` is a promise."""
    assert build_vocabulary([], "none") == Vocabulary("text", ())
    with pytest.raises(DataError, match=r"labels=none.*'a', 'b'"):
        build_vocabulary(["b", "a"], "none")


def test_labels_that_only_payloads_show_follow_the_planned_ones():
    """Planned labels keep their numbers."""
    planned = Vocabulary("text", ("b", "c"))
    assert with_seen(planned, ["c", "b"]) is planned
    assert with_seen(planned, ["c", "a"]) == Vocabulary("text", ("b", "c", "a"))
    assert with_seen(Vocabulary("text", ()), ["3"]) == numbers(4)


def test_vocabularies_join_from_the_largest():
    """The order in which they are given matters only if none extends the other."""
    assert join_names([("dog",), ("bee", "cat"), ("zoo", "bee")]) == ("bee", "cat", "zoo", "dog")
    assert join_names([("a",), ("c", "a", "b"), ("d", "b")]) == ("c", "a", "b", "d")
    assert join_names([("d", "b"), ("a",), ("c", "a", "b")]) == ("c", "a", "b", "d")
    assert join_names([("b",), ("a",)]) == ("b", "a")


LABELS = st.sets(st.text("abc", min_size=1, max_size=3), max_size=9)


@given(LABELS, LABELS)
def test_numbers_of_labels_stay(old, new):
    """New labels follow in order."""
    known = Vocabulary("text", tuple(sorted(old)))
    expected = Vocabulary("text", (*sorted(old), *sorted(new - old)))
    assert vocabulary.extend_vocabulary(known, new) == expected


# known whole numbers, new labels, the number of names afterwards
WHOLE_NUMBERS = [
    (10, [], 10),
    (10, ["3"], 10),
    (10, ["12", "11"], 13),
    (10, ["999"], 1000),
    (5000, ["12"], 5000),
    (5000, ["5000"], 5001),
    # Ten numbers per label in use, including known labels.
    (200, ["2009"], 2010),
    (200, ["5", "2008"], 2009),
]


@pytest.mark.parametrize(("known", "new", "size"), WHOLE_NUMBERS)
def test_whole_numbers_stay_themselves(known, new, size):
    """The vocabulary grows to the largest."""
    assert vocabulary.extend_vocabulary(numbers(known), new) == numbers(size)


# known whole numbers, new labels, what the message names
REFUSED = [
    (10, ["1000"], " 9, .* 1000 "),
    (200, ["2010"], " 199, .* 2010 "),
    (5000, ["50011"], " 4999, .* 50011 "),
    (10, ["cat"], "'cat'"),
    (10, ["11", "07"], "'07'"),
]


@pytest.mark.parametrize(("known", "new", "words"), REFUSED)
def test_a_label_that_does_not_go_with_numbers_is_refused(known, new, words):
    """The error names both remedies."""
    with pytest.raises(DataError, match=f"{words}.*--append and --vocabulary"):
        vocabulary.extend_vocabulary(numbers(known), new)


# the text of labels.txt, its vocabulary
FILES = [
    ("dog\ncat\n", Vocabulary("text", ("dog", "cat"))),
    ("\ufeffdog\r\nhot dog", Vocabulary("text", ("dog", "hot dog"))),
    ("0\n1\n", numbers(2)),
    ("1\n0\n", Vocabulary("text", ("1", "0"))),
]


@pytest.mark.parametrize(("text", "expected"), FILES, ids=["text", "Windows", "numbers", "mixed"])
def test_each_line_of_a_file_is_a_label_with_its_index(text, expected):
    """Also with a byte order mark."""
    assert vocabulary.parse_labels(text, "labels.txt") == expected


# text, where
NO_VOCABULARIES = [
    ("", "labels.txt: "),
    ("a\n\nb\n", "labels.txt:2: "),
    ("a\nb\na\n", "labels.txt:3: .*'a'.* 1;"),
]


@pytest.mark.parametrize(("text", "where"), NO_VOCABULARIES, ids=["empty", "gap", "twice"])
def test_a_file_that_is_no_vocabulary_is_an_error_with_its_line(text, where):
    """Gaps and repetitions are."""
    with pytest.raises(DataError, match=where):
        vocabulary.parse_labels(text, "labels.txt")


def test_numbers_stay_from_one_output_to_the_next(tmp_path):
    """By folder, labels.txt or dataset.json."""

    def converted(name, *labels, **options):
        rows = [f"TRAIN,{number} words on {label},{label}" for number, label in enumerate(labels)]
        more = {"task": "text_classification", "lint": "-ALL", **options}
        return read_dataset(convert_lines(tmp_path, rows, name, source=f"{name}.csv", **more))

    assert converted("one", "cat", "bee").labels == ("bee", "cat")
    for place in map(tmp_path.joinpath, ("one", "one/labels.txt", "one/dataset.json")):
        name = f"two-{place.stem}"
        two = converted(name, "dog", "ape", "cat", vocabulary=str(place))
        assert two.labels == ("bee", "cat", "ape", "dog")
        assert two.options["vocabulary"] == str(place)
        [record] = [r for _, r in stored_examples(tmp_path / name) if r["class/text"] == [b"cat"]]
        assert record["class/label"] == [1]
    assert read_dataset(str(tmp_path / "one")).options["vocabulary"] == ""
    # A dataset that continues another vocabulary can be appended to.
    grown = converted("two-one", "elk", append=True)
    assert grown.labels == ("bee", "cat", "ape", "dog", "elk")
    with pytest.raises(UsageError, match=r"vocabulary .*'.*one.*'.*'.*two'"):
        converted("two-one", "elk", append=True, vocabulary="two")
    with pytest.raises(UsageError, match=r"vocabulary.*labels=text"):
        converted("no", "a", vocabulary="x", labels="text")
    with pytest.raises(SourceError, match=r"none: .*labels\.txt"):
        converted("no", "a", vocabulary=str(tmp_path / "none"))
    with pytest.raises(UsageError, match="vocabulary=x"):
        convert_lines(tmp_path, ["a,b", "1.5,2", "2.5,3"], "t", task="tabular", vocabulary="x")
