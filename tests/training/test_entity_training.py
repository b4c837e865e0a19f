"""The tokens of requests, and the network for tags; test_trained_models.py trains a model."""

import keras
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.reading.words import split_tokens
from recordgen.tasks.texts.tags import tokenize
from recordgen.tasks.texts.training import build_tagger


@given(
    st.text(
        "aZé9_東々〇京かナー・हिन्दीที่า๒ລຂັខ្មែ៥မြ၅한\u0301.,'-€。❤\ufe0f \t\n\u00a0\u2003\u3000",
        max_size=30,
    )
)
@settings(max_examples=50)
def test_a_request_is_cut_into_tokens_as_records_are(text):
    """In every script."""
    expected = [text[start:end] for start, end in tokenize(text)]
    assert [token.decode() for token in split_tokens(tf.constant([text]))[0].numpy()] == expected


def test_masks_of_the_tagger_have_the_dtype_of_its_layers():
    """Mixed precision trains, and scores are float32."""
    lookup, policy = keras.layers.StringLookup(vocabulary=["in"]), keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = build_tagger(lookup, tags=3, dropout=0.1, seed=0)
    finally:
        keras.config.set_dtype_policy(policy)
    assert model(tf.constant([["in", "Bonn", ""]])).dtype == tf.float32
