"""A source in an object store: ranges of a batch are requested at the same time."""

import fsspec
import numpy as np
import pytest
from aiohttp import web

import recordgen
from recordgen import storage
from tests.conftest import tree_bytes
from tests.servers import emulated_gcs, proxying, serving

COUNT = 200


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    output = tmp_path_factory.mktemp("local") / "out"
    rows = ({"number": n, "values": np.full(n, n)} for n in range(COUNT))
    recordgen.write(rows, output, shards=4)
    return output


@pytest.fixture(scope="module")
def proxy():
    with emulated_gcs() as gcs, proxying(gcs) as found:
        yield found


@pytest.fixture
def bucket(proxy, out, monkeypatch):
    """Return the URL of a copy of the output in a bucket."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
    monkeypatch.setenv("RECORDGEN_STORAGE_FIRST_WAIT_SECONDS", "0.01")
    fs = fsspec.filesystem("gs", skip_instance_cache=True)
    if not fs.exists("bucket"):
        fs.mkdir("bucket")
        for name, data in tree_bytes(out).items():
            storage.write_bytes(f"gs://bucket/out/{name}", data)
    proxy.reset()
    return "gs://bucket/out"


def records_asked(proxy):
    """Return the number of requests for records, without those for dataset.json."""
    return sum(n for (_, path), n in proxy.seen.items() if "dataset.json" not in path)


def numbers(examples):
    return [int(example["number"]) for example in examples]


def test_batches_are_requested_together(bucket, proxy, out):
    """Records of all shards wait for one answer, not for each other."""
    local, source = recordgen.source(out), recordgen.source(bucket)
    proxy.reset()
    chosen = list(range(0, COUNT, 7))
    assert numbers(source.__getitems__(chosen)) == numbers(local[chosen])
    assert proxy.busiest > 2  # one at a time would be 1
    assert records_asked(proxy) == len(chosen)


def test_neighbours_are_one_request(bucket, proxy, out):
    """Records that lie together are fetched together."""
    source = recordgen.source(bucket)
    proxy.reset()
    assert numbers(source[10:190]) == numbers(recordgen.source(out)[10:190])
    assert records_asked(proxy) == 4  # one for each shard


def test_transient_failures_are_retried(bucket, proxy, out):
    """Records are those of a local copy."""
    source = recordgen.source(bucket)
    proxy.spoil_first(1, 503, "reset", "cut", method="GET")
    assert numbers(source[::11]) == numbers(recordgen.source(out)[::11])
    assert proxy.faults


def test_threads_share_a_remote_source(bucket, out):
    """Batches are those of a local source."""
    source = recordgen.source(bucket)
    found = [n for batch in source.batches(16, seed=1, threads=4) for n in batch["number"]]
    local = recordgen.source(out).batches(16, seed=1)
    assert found == [n for batch in local for n in batch["number"]]


def test_files_of_a_web_server_are_copied_once(out, tmp_path, monkeypatch):
    """A second reading asks for nothing but dataset.json."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = []

    async def answer(request):
        asked.append(request.path)
        path = out / request.path.lstrip("/")
        return web.FileResponse(path) if path.is_file() else web.Response(status=404)

    with serving(answer) as url:
        source = recordgen.source(f"{url}/dataset.json")
        assert numbers(source) == numbers(recordgen.source(out))
        asked.clear()
        assert numbers(recordgen.source(f"{url}/dataset.json")) == numbers(source)
    assert not [path for path in asked if "Split-" in path and asked.count(path) > 2]
