"""Tests with PyTorch, Grain, JAX, Keras and datasets, which scripts/trainers runs."""

import os
from importlib.util import find_spec

import pytest

import recordgen
from recordgen.samples import write_photos
from tests.tested import pytest_terminal_summary as pytest_terminal_summary  # a hook

# Copies are local: Hugging Face's libraries need not ask the hub.
os.environ["HF_HUB_OFFLINE"] = "1"

# The project's own environments have none of these packages.
collect_ignore_glob = [] if find_spec("torch") and find_spec("grain") else ["test_*.py"]


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Return an output of 600 drawn flowers of two kinds."""
    folder = tmp_path_factory.mktemp("photos")
    write_photos(folder / "photos", 600)
    recordgen.convert(str(folder / "photos"), folder / "out", shard_mb=0.1)
    return str(folder / "out")


@pytest.fixture(scope="session")
def numbers(tmp_path_factory):
    """Return an output of 1,000 examples in four shards, each with its number."""
    out = tmp_path_factory.mktemp("numbers") / "out"
    recordgen.write(({"number": n} for n in range(1000)), out, shards=4)
    return str(out)
