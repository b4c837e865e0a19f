"""What goes to workers: decoded settings and the task, and no options."""

import pickle

import pytest

from recordgen.conversion.api import conversion_of
from recordgen.formats.source import open_source
from recordgen.options import make_options
from tests.golden import NEEDED, ROOT, SAMPLES


@pytest.mark.parametrize("sample", SAMPLES)
def test_workers_get_what_the_launcher_has_without_options(sample):
    """Tasks, readers and stores can be pickled; rows are the same on the other side."""
    path, options = ROOT / "examples" / SAMPLES[sample], make_options(NEEDED.get(sample, {}))
    source, options = open_source(str(path), options)
    made = conversion_of(options)
    data = pickle.dumps(made)
    assert b"ConvertOptions" not in data
    there = pickle.loads(data)
    for name in ("splits", "labels", "shards", "payloads", "store", "threads", "recorded"):
        assert getattr(there, name) == getattr(made, name)
    for part in source.parts():
        assert list(there.reader.read_part(part)) == list(made.reader.read_part(part))
