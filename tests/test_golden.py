"""The same input and options give the bytes that they always gave."""

from __future__ import annotations

import json
from pathlib import Path

from tests.golden import DIGESTS, digests


def test_the_same_bytes_as_ever(tmp_path: Path) -> None:
    """Of shards, dataset.json, rejects and labels; tests/golden.py says how to renew digests."""
    expected = json.loads(DIGESTS.read_text())
    found = dict(digests(tmp_path))
    assert found.keys() == expected.keys()
    other = {name: found[name] for name in found if found[name] != expected[name]}
    assert not other, f"{len(other)} of {len(found)} cases give other bytes"
