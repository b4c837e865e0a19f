"""Samples that are converted once, for the tests of all exports."""

from functools import cache

import pytest

import recordgen
from tests.golden import NEEDED, ROOT, SAMPLES

# All kinds of features: scalars, lists, images, gaps in tables, whole texts, no labels.
KINDS = (
    *("image_classification", "object_detection", "raw", "text_entities", "tabular"),
    *("video_classification", "declared"),
)

MORE = {"raw": {"encode": "raw"}, "tabular": {"columns": "target=cultivar"}}


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """Return a function that returns the output of a sample; ``raw``: boxes on raw pixels."""
    root = tmp_path_factory.mktemp("samples")

    @cache
    def output_of(name):
        source = ROOT / "examples" / SAMPLES.get(name, SAMPLES["object_detection"])
        recordgen.convert(str(source), root / name, **MORE.get(name, NEEDED.get(name, {})))
        return root / name

    return output_of
