"""Records of texts → batches of texts, or of ids, and labels."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen import eval_dataset, input_fn, load, steps_per_epoch
from recordgen.errors import UsageError
from recordgen.reading.words import learn_words
from tests.conftest import convert_lines

# the bits of n are the labels of text n
NAMES = ("good", "bad", "late")


def write(folder, task, said):
    """Convert eight texts in train and three in eval; ``said(n)`` gives the fields after text n."""
    lines = [f"TRAIN,text {n} {'x ' * n},{said(n)}" for n in range(8)]
    lines += [f"VALIDATION,unseen {n},{said(n)}" for n in range(1, 4)]
    return convert_lines(folder, lines, task=task)


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """Texts of two labels; the first text has none."""
    folder = tmp_path_factory.mktemp("topics")
    return write(folder, "text_classification", lambda n: NAMES[n % 2] if n else "")


def pairs(dataset):
    """Return {number of a text: its label}."""
    return {
        int(text.split()[1]): label.tolist()
        for texts, labels in dataset.as_numpy_iterator()
        for text, label in zip(texts, labels, strict=True)
    }


def test_each_labelled_text_is_read_once_with_its_number(topics):
    """Every reading function gives the same texts and numbers."""
    labels = read_labels(topics)
    assert labels == ("bad", "good")
    expected = {n: labels.index(NAMES[n % 2]) for n in range(1, 8)}
    dataset = eval_dataset(topics, split="train", batch_size=4)
    assert pairs(dataset) == expected
    assert dataset.cardinality() == 2
    train = input_fn(topics, batch_size=4)
    assert train.element_spec == (tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int64))
    assert steps_per_epoch(topics, 4) == 2
    assert pairs(load(topics, batch_size=4)["train"]) == expected
    every = eval_dataset(topics, split="train", label_mode=None, columns=["source_id"])
    [(texts, extras)] = list(every)
    assert len(texts) == len(set(extras["source_id"].numpy())) == 8


def read_labels(output):
    return recordgen.read_dataset(output).labels


# options, labels of the texts that are read
LABEL_OPTIONS = [
    ({"only": ["good"]}, {2: 1, 4: 1, 6: 1}),
    ({"vocabulary": ["good", "bad"], "only": ["bad"]}, {1: 1, 3: 1, 5: 1, 7: 1}),
    ({"label_mode": "categorical", "only": ["good"]}, {n: [0.0, 1.0] for n in (2, 4, 6)}),
    ({"only": lambda found: tf.strings.regex_full_match(found["text"], r"text 2.*")}, {2: 1}),
]


@pytest.mark.parametrize(("options", "expected"), LABEL_OPTIONS)
def test_options_of_labels_mean_the_same_as_for_images(topics, options, expected):
    """only, vocabulary, label mode and predicates choose and number texts."""
    assert pairs(eval_dataset(topics, split="train", **options)) == expected


def test_all_labels_of_a_text_are_a_multi_hot_row(tmp_path):
    """In the order of class names; unlabelled texts are skipped."""

    def said(number):
        return ",".join(name for bit, name in enumerate(NAMES) if number >> bit & 1)

    several = write(tmp_path, "text_multi_label", said)
    assert read_labels(several) == ("bad", "good", "late")
    found = pairs(eval_dataset(several, split="train"))
    assert found == {n: [n >> 1 & 1, n & 1, n >> 2 & 1] for n in range(1, 8)}
    assert steps_per_epoch(several, 3, split="train") == 3
    with pytest.raises(UsageError, match="weights"):
        input_fn(several, batch_size=2, weights="balanced")


def test_labels_of_sentiments_are_the_sentiments(tmp_path):
    """A sentiment is its own number, in every split."""
    output = write(tmp_path, "text_sentiment", lambda n: n % 5)
    assert pairs(eval_dataset(output, split="train")) == {n: n % 5 for n in range(8)}
    assert pairs(eval_dataset(output)) == {1: 1, 2: 2, 3: 3}


def test_characters_are_words_in_scripts_without_blanks(tmp_path):
    """A Keras layer with our split has characters as words, also saved and loaded."""
    texts = tf.constant(["服务很好。", "ดีมาก ok", "服务不好!", "とても悪い"])
    layer = learn_words(tf.data.Dataset.from_tensors(texts), 100)
    words = layer.get_vocabulary()
    assert set(words[2:5]) == {"好", "服", "务"}
    assert set(words[5:]) == {*"很。มากา不とても悪い", "ดี", "ok"}
    keras.Sequential([keras.Input((), dtype="string"), layer]).save(tmp_path / "a.keras")
    custom = {"split_words": recordgen.reading.split_words}
    loaded = keras.models.load_model(tmp_path / "a.keras", custom_objects=custom)
    np.testing.assert_array_equal(loaded(texts), layer(texts))


def test_a_keras_file_loads_without_recordgen_for_texts_with_blanks(tmp_path):
    """Words between blanks are split by Keras alone, so no custom object is needed."""
    texts = tf.constant(["text 1 x", "x unseen"])
    layer = learn_words(tf.data.Dataset.from_tensors(texts[:1]), 100)
    keras.Sequential([keras.Input((), dtype="string"), layer]).save(tmp_path / "a.keras")
    again = keras.models.load_model(tmp_path / "a.keras")
    np.testing.assert_array_equal(again(texts), layer(texts))
