"""The same input and options give the same bytes in every version."""

import json

import pytest

from recordgen.exports.verifying import verify
from tests.golden import DIGESTS, cases, digests

EXPECTED = json.loads(DIGESTS.read_text())

# Our code alone decides how a killed run is resumed.
CASES = [
    pytest.param(case, marks=pytest.mark.once) if "killed" in case else case for case in cases()
]


@pytest.mark.parametrize("case", CASES)
def test_the_same_bytes_as_ever(case, tmp_path):
    """Shards, dataset.json, rejects and labels keep their bytes; see tests/golden.py.

    Records have the digests that dataset.json says.
    """
    assert digests(case, tmp_path / "case") == EXPECTED[case]
    assert not verify(str(tmp_path / "case/out")).differences


def test_each_digest_has_a_case():
    """No digest is kept of a case that is gone."""
    assert EXPECTED.keys() == cases().keys()
