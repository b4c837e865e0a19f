"""F1 of entities, compared with sets of spans and seqeval; edge cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.tasks.text_entities.tags import Token, spans_of, tag_names
from recordgen.training.measures import EntityAccumulator, entities

NAMES = np.array(tag_names(["city", "date", "person"]))


def counted(truth, predicted):
    """Count texts whose tags have all or nothing of the score."""
    counts = EntityAccumulator(3)
    counts.add(np.asarray(truth), np.eye(len(NAMES), dtype=np.float32)[np.asarray(predicted)])
    return counts


def spans(tags):
    """Return the entities of one text's tags (-1 for padding), as the reader of IOB does."""
    tags = [NAMES[tag] for tag in tags if tag >= 0]
    tokens = [Token(place, place + 1) for place in range(len(tags))]
    return set(spans_of(tokens, tags)[0])


def f1_of(truth, predicted):
    """Return the F1 of all entities, counted text by text in sets."""
    right = true = found = 0
    for one, other in zip(truth, predicted, strict=True):
        wanted, given = spans(one), spans(np.where(one < 0, -1, other))
        right, true, found = right + len(wanted & given), true + len(wanted), found + len(given)
    return 2 * right / (true + found) if true else float("nan")


@given(st.data())
@settings(max_examples=50)
def test_f1_is_that_of_sets_of_spans(data):
    shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8)))
    tags = st.lists(
        st.lists(st.integers(0, 6), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
    truth, predicted = np.array(data.draw(tags)), np.array(data.draw(tags))
    for row, length in enumerate(data.draw(st.tuples(*[st.integers(0, shape[1])] * shape[0]))):
        truth[row, length:] = -1
    whole, parts = counted(truth, predicted), EntityAccumulator(3)
    for row in range(shape[0]):
        parts.merge(counted(truth[row : row + 1], predicted[row : row + 1]))
    np.testing.assert_equal(whole.score(), f1_of(truth, predicted))
    np.testing.assert_equal(parts.score(), whole.score())
    assert entities(truth).tolist() == sorted(
        [text, first, end - 1, NAMES.tolist().index(f"B-{label}") // 2]
        for text, row in enumerate(truth)
        for first, end, label in spans(row)
    )


@pytest.mark.parametrize("seed", range(20))
def test_f1_is_that_of_seqeval(seed):
    seqeval = pytest.importorskip("seqeval.metrics")
    random = np.random.default_rng(seed)
    truth = random.choice(7, (6, 12), p=[0.3, *[0.7 / 6] * 6])
    predicted = np.where(
        random.random(truth.shape) < 0.7, truth, random.integers(0, 7, truth.shape)
    )
    counts = counted(truth, predicted)
    tags = NAMES[truth].tolist(), NAMES[predicted].tolist()
    assert counts.score() == pytest.approx(seqeval.f1_score(*tags))
    by_label = seqeval.f1_score(*tags, average=None)
    assert list(counts.by_label().values()) == pytest.approx(by_label)


# tags of a text, its entities: first and last token, label
TAGS = [
    ([0, 0, 0], []),
    ([1, 2, 2], [(0, 2, 0)]),
    ([1, 1, 2], [(0, 0, 0), (1, 2, 0)]),  # two neighbours
    ([2, 2, 0], [(0, 1, 0)]),  # it begins with I-
    ([1, 4, 4], [(0, 0, 0), (1, 2, 1)]),  # I- of another label
    ([0, 5, 6], [(1, 2, 2)]),  # to the last token
    ([1, 0, 2], [(0, 0, 0), (2, 2, 0)]),
    ([1, 2, -1], [(0, 1, 0)]),
    ([-1, -1, -1], []),
]


def test_an_entity_never_reaches_into_the_next_text():
    expected = [(row, *entity) for row, (_, found) in enumerate(TAGS) for entity in found]
    assert list(map(tuple, entities(np.array([tags for tags, _ in TAGS])).tolist())) == expected


def test_an_entity_is_right_where_it_stands():
    truth = np.array([[1, 2, 0, 0], [0, 0, 0, 5]])
    same_places_of_others = np.array([[0, 0, 0, 5], [1, 2, 0, 0]])
    longer, other_label = truth.copy(), truth.copy()
    longer[0, 2], other_label[0, :2] = 2, (3, 4)
    for predicted, right in (
        (truth, [1, 0, 1]),
        (same_places_of_others, [0, 0, 0]),
        (longer, [0, 0, 1]),
        (other_label, [0, 0, 1]),
    ):
        counts = counted(truth, predicted)
        assert counts.true.tolist() == [1, 0, 1, 0]
        assert counts.right.tolist() == [*right, 0]
        assert counts.found.sum() == 2
        assert counts.true.dtype == counts.found.dtype == np.int64
    # The last label of the first text is not the first label of the second text either.
    counts = counted([[5, 0], [0, 0]], [[0, 0], [1, 0]])
    assert (counts.found.sum(), counts.right.sum()) == (1, 0)


def test_merged_counts_give_the_f1_of_each_label():
    counts = counted([[1, 2, 0, 5, 5]], [[1, 2, 3, 5, 6]])
    assert counts.by_label() == {0: 1.0, 2: 0.0}
    assert counts.score() == 2 * 1 / (3 + 3)
    counts.merge(counted([[5, 0]], [[5, 0]]))
    assert counts.by_label() == {0: 1.0, 2: 2 * 1 / (3 + 2)}
    assert np.isnan(EntityAccumulator(3).score())
    assert EntityAccumulator(3).by_label() == {}
