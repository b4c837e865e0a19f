"""Emulated object stores: gs:// and s3:// behind a slow or faulty proxy."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordgen
from recordgen import parts, storage
from recordgen.cli import main
from recordgen.conversion.api import store_of
from recordgen.core.rows.row import PlannedRow
from recordgen.errors import PayloadError, SourceError, StorageError
from recordgen.exports.report.render import render_report
from recordgen.options import ConvertOptions
from recordgen.payloads import fetching
from recordgen.payloads.fetching import listed_infos
from recordgen.storage import remote
from tests.conftest import encoded, error_of, examples_of, noise, tree_bytes, write_noise
from tests.servers import Proxy, emulated_gcs, emulated_s3, listed_bucket, proxying

# Their requests are those of the other tests, which show what newer clients send.
ONCE = pytest.mark.once

# Requests of each kind are tested with both stores, whole conversions with one of them.
GS, S3 = (pytest.mark.parametrize("store", [name], indirect=True) for name in ("gs", "s3"))

_buckets = count()


@dataclass
class Store:
    """An empty bucket behind a proxy.

    Attributes:
        url: the bucket, such as ``gs://bucket-1``.
        proxy: the proxy in front of it.
    """

    url: str
    proxy: Proxy

    def put(self, name, data):
        url = f"{self.url}/{name}"
        with storage.replacing(url) as file:
            file.write(data)
        return url

    def put_all(self, files):
        """Put objects by name, a few concurrently: emulators cannot take many."""
        scheme, _, bucket = self.url.partition("://")
        fs = fsspec.filesystem(scheme, skip_instance_cache=True)
        fs.pipe({f"{bucket}/{name}": data for name, data in files.items()}, batch_size=8)

    def tree(self, folder):
        """Return every object below a folder with its content."""
        root = f"{self.url}/{folder}/"
        files = storage.list_files(f"{root}**")
        return {file.removeprefix(root): storage.read_bytes(file) for file in files}


@pytest.fixture(scope="module")
def proxies():
    with (
        emulated_gcs() as gcs,
        emulated_s3() as s3,
        proxying(gcs) as before_gcs,
        proxying(s3) as before_s3,
    ):
        yield {"gs": before_gcs, "s3": before_s3}


@pytest.fixture
def new_store(proxies, monkeypatch):
    """Return a function that creates an empty bucket of a scheme."""
    environment = {
        "STORAGE_EMULATOR_HOST": proxies["gs"].url,
        "AWS_ENDPOINT_URL": proxies["s3"].url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "RECORDGEN_STORAGE_ATTEMPTS": "4",
        "RECORDGEN_STORAGE_FIRST_WAIT_SECONDS": "0.01",
        "RECORDGEN_STORAGE_LONGEST_WAIT_SECONDS": "0.05",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def make(scheme):
        store = Store(f"{scheme}://bucket-{next(_buckets)}", proxies[scheme])
        fs = fsspec.filesystem(scheme, skip_instance_cache=True)
        fs.mkdir(store.url.removeprefix(f"{scheme}://"))
        return store

    yield make
    for proxy in proxies.values():
        proxy.reset()


@pytest.fixture(params=["gs", "s3"])
def store(request, new_store):
    return new_store(request.param)


def fill(store, folder, images):
    """Put an import file with relative paths and its images into a folder and a store."""
    write_noise(folder, (f"images/{number}.jpg" for number in range(images)))
    uses = ("TRAIN", "TRAIN", "VALIDATION", "TEST")
    lines = [f"{uses[n % 4]},images/{n}.jpg,{n % 3}\n" for n in range(images)]
    (folder / "labels.csv").write_text("".join(lines))
    if store is not None:
        store.put_all(tree_bytes(folder))
    return str(folder / "labels.csv")


def comparable(tree):
    """Return an output without the parts that name the import file."""
    files = dict(tree)
    files["report.html"] = re.sub(rb"<dt>source</dt><dd>.*?</dd>", b"", tree["report.html"])
    files["dataset.json"] = {**json.loads(tree["dataset.json"]), "source": None}
    files["examples.parquet"] = examples_of(tree)
    lines = map(json.loads, tree.get("lint.jsonl", b"").splitlines())
    files["lint.jsonl"] = [(item["code"], item["line"], item["uri"]) for item in lines]
    return files


@pytest.mark.parametrize(("source", "target"), [("gs", "s3"), ("s3", "gs")])
def test_the_command_gives_what_a_local_run_gives(source, target, new_store, tmp_path):
    """`recordgen convert gs://… s3://…`: the same bytes, and no other files."""
    there, back = new_store(source), new_store(target)
    recordgen.convert(fill(there, tmp_path / "data", 12), tmp_path / "out", shard_mb=0.002)
    words = ["convert", f"{there.url}/labels.csv", f"{back.url}/sets/out", "--shard-mb", "0.002"]
    assert main([*words, "--quiet"]) == 0
    assert comparable(back.tree("sets/out")) == comparable(tree_bytes(tmp_path / "out"))
    assert storage.list_dir(f"{back.url}/sets") == [("out", True)]


@ONCE
@GS
def test_parts_meet_in_a_bucket(store, tmp_path):
    """Plan, workers and a commit that is interrupted once, with only the bucket in common."""
    recordgen.convert(fill(store, tmp_path / "data", 12), tmp_path / "out", shard_mb=0.002)
    output = f"{store.url}/sets/out"
    parts.plan(f"{store.url}/labels.csv", output, 2, shard_mb=0.002)
    for part in (1, 0, 1):
        parts.work(output, part)
    store.proxy.fault = always(503, name="out/records.npy")
    with pytest.raises(StorageError, match=r"records\.npy"):
        parts.commit(output)
    store.proxy.reset()
    assert [parts.commit(output).unchanged for _ in range(2)] == [False, True]
    assert comparable(store.tree("sets/out")) == comparable(tree_bytes(tmp_path / "out"))
    assert storage.list_dir(f"{store.url}/sets") == [("out", True)]


def test_spoilt_answers_lose_nothing(store, tmp_path):
    """Requests fail at first, in one of five ways each: the same bytes and exact counts."""
    local = fill(store, tmp_path / "data", 16)
    expected = recordgen.convert(local, tmp_path / "out", shard_mb=0.01)
    store.proxy.spoil_first(2, 503, 429, 500, "cut", "reset", method="GET")
    result = recordgen.convert(f"{store.url}/labels.csv", tmp_path / "spoilt", shard_mb=0.01)
    assert store.proxy.faults > 30
    assert result.dataset.rows == expected.dataset.rows
    assert comparable(tree_bytes(tmp_path / "spoilt")) == comparable(tree_bytes(tmp_path / "out"))


@ONCE
@S3
def test_a_folder_of_images_in_a_bucket(store, tmp_path):
    """`<split>/<label>/<file>` in a bucket is read as on disk, with the same assigned splits."""
    names = ["train/cat/1.jpg", "val/dog/a b.jpg", "unassigned/cat/3.jpg", "test/4.jpg"]
    write_noise(tmp_path / "photos", names)
    store.put_all({f"photos/{it}": data for it, data in tree_bytes(tmp_path / "photos").items()})
    there = recordgen.convert(f"{store.url}/photos", tmp_path / "there").dataset
    here = recordgen.convert(tmp_path / "photos", tmp_path / "here").dataset
    assert (there.source, here.source) == ((f"{store.url}/photos/",), (f"{tmp_path}/photos/",))
    assert there.digest == here.digest
    assert there.examples == 4


def tar_of(images, folder):
    """Write a tar of images and their labels; return its name."""
    with tarfile.open(folder / "train-0.tar", "w") as tar:
        for at, image in enumerate(images):
            for suffix, data in {"jpg": image, "cls": str(at % 2).encode()}.items():
                info = tarfile.TarInfo(f"{at:04d}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return "train-0.tar"


def parquet_of(images, folder):
    """Write a compressed Parquet file of several row groups; return its name."""
    table = pa.table({"image": images, "label": [at % 2 for at in range(len(images))]})
    pq.write_table(table, folder / "train-0.parquet", row_group_size=8, compression="snappy")
    return "train-0.parquet"


@ONCE
@pytest.mark.parametrize(
    ("store", "pack"), [("gs", tar_of), ("s3", parquet_of)], indirect=["store"]
)
def test_images_in_a_container_are_ranges(store, pack, tmp_path):
    """A container in a bucket is read by requests that are repeated after faults."""
    (tmp_path / "packed").mkdir()
    name = pack([encoded(noise(seed=at), "JPEG") for at in range(32)], tmp_path / "packed")
    store.put_all(tree_bytes(tmp_path / "packed"))
    store.proxy.spoil_first(2, 503, 500, "reset", method="GET")
    recordgen.convert(f"{store.url}/{name}", tmp_path / "there", shard_mb=0.01)
    assert store.proxy.faults > 0
    recordgen.convert(str(tmp_path / "packed" / name), tmp_path / "here", shard_mb=0.01)
    assert shard_bytes(tmp_path / "there") == shard_bytes(tmp_path / "here")


def shard_bytes(output):
    return {path.name: path.read_bytes() for path in output.glob("Split-*/*")}


def test_spoilt_uploads_lose_nothing(store, tmp_path, monkeypatch):
    """Every request of a run fails once, also for parts, commits, copies, listings and deletions.

    Some fail with an error status, others with a reset connection.
    """
    # The default. Four are too few: gcsfs sends five different requests to delete one object.
    monkeypatch.delenv("RECORDGEN_STORAGE_ATTEMPTS")
    # gcsfs waits this long and one more second before each retry.
    monkeypatch.setattr("gcsfs.retry.random", SimpleNamespace(random=lambda: -0.95))
    local = fill(None, tmp_path / "data", 6)
    recordgen.convert(local, tmp_path / "out")
    store.proxy.spoil_first(1, 503, "reset")
    recordgen.convert(local, f"{store.url}/out")
    assert store.proxy.faults > 12
    store.proxy.reset()
    assert comparable(store.tree("out")) == comparable(tree_bytes(tmp_path / "out"))


def test_large_files_are_written_in_parts(store, monkeypatch):
    """A file of several parts, each sent twice, is complete; a discarded file does not appear."""
    monkeypatch.setattr("recordgen.storage.remote.PART_BYTES", 5 << 20)
    store.proxy.spoil_first(1, 503, "reset", method="PUT" if store.url[:2] == "s3" else "GET")
    block = os.urandom(1 << 20)
    with storage.replacing(f"{store.url}/large") as file:
        for _ in range(12):
            file.write(block)
    assert storage.read_bytes(f"{store.url}/large") == block * 12
    assert storage.read_range(f"{store.url}/large", 3, 1 << 20) == block[3:] + block[:3]
    with pytest.raises(StorageError, match=r"/large: .* 12582908 to 12582918, .* 4 bytes"):
        storage.read_range(f"{store.url}/large", (12 << 20) - 4, 10)
    with storage.open_read(f"{store.url}/large") as file:
        assert file.read(1 << 20) == block
        file.seek(-(1 << 20), os.SEEK_END)
        assert file.read() == block

    def give_up():
        with storage.replacing(f"{store.url}/given-up") as file:
            for _ in range(12):
                file.write(block)
            raise KeyError("an error of the caller's")

    with pytest.raises(KeyError):
        give_up()
    assert storage.list_files(f"{store.url}/*") == [f"{store.url}/large"]


def test_files_that_a_glob_matches_have_its_scheme(store):
    """gcs:// stays gcs://, s3a:// stays s3a://: the paths begin as the glob does."""
    store.put_all({f"a/{name}.csv": b"x" for name in "12"})
    alias = store.url.replace("gs://", "gcs://").replace("s3://", "s3a://")
    files = [f"{alias}/a/1.csv", f"{alias}/a/2.csv"]
    assert storage.list_files(f"{alias}/a/?.csv") == files
    assert storage.list_files(f"{alias}/**") == files


def always(fault, *, name, method=""):
    """Inject a fault into all requests for an object."""

    def spoil(request):
        asked = request.path_qs.replace("%2F", "/")
        return fault if name in asked and method in ("", request.method) else None

    return spoil


@pytest.mark.parametrize(
    ("store", "fault"),
    [("gs", 503), ("gs", "cut"), ("s3", 429), ("s3", "reset")],
    indirect=["store"],
)
def test_a_lasting_outage_fails_the_run(store, fault, tmp_path):
    """The error names the object and the attempts; there is no reject and no dataset."""
    fill(store, tmp_path / "data", 8)
    store.proxy.fault = always(fault, name="images/5.jpg", method="GET")
    with pytest.raises(StorageError, match=r"images/5\.jpg: .* 4 times in \d+ s"):
        recordgen.convert(f"{store.url}/labels.csv", tmp_path / "out", max_reject_fraction=1)
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert not (tmp_path / "out" / "rejects.jsonl").exists()


def test_an_outage_while_writing_fails_the_run(new_store, tmp_path):
    """The output contains nothing that looks complete."""
    store = new_store("s3")
    local = fill(None, tmp_path / "data", 8)
    store.proxy.fault = always(503, name="Split-eval", method="PUT")
    with pytest.raises(StorageError, match="Split-eval"):
        recordgen.convert(local, f"{store.url}/out")
    store.proxy.reset()
    assert not storage.is_file(f"{store.url}/out/dataset.json")
    assert not [file for file in storage.list_files(f"{store.url}/**") if "-eval/" in file]


@pytest.mark.parametrize("at_once", [0, 4 << 20])
def test_files_beside_the_shards_wait_for_them(at_once, new_store, monkeypatch, tmp_path):
    """In the bucket or in memory: a run that cannot write one of them leaves no dataset."""
    monkeypatch.setattr("recordgen.storage.paths._BYTES_AT_ONCE", at_once)
    store = new_store("s3")
    local = fill(None, tmp_path / "data", 8)
    recordgen.convert(local, f"{store.url}/out", seed=1)
    store.proxy.fault = always(503, name="out/labels.txt", method="PUT")
    with pytest.raises(StorageError, match=r"labels\.txt"):
        recordgen.convert(local, f"{store.url}/out", overwrite=True)
    assert not storage.is_file(f"{store.url}/out/dataset.json")
    store.proxy.reset()
    assert recordgen.convert(local, f"{store.url}/out", overwrite=True, resume=True).kept_shards
    recordgen.convert(local, tmp_path / "out")
    assert comparable(store.tree("out")) == comparable(tree_bytes(tmp_path / "out"))


def test_a_folder_is_no_file(store):
    """Only an object exists, and no request is needed for more on Google's storage."""
    store.put_all({"a/b": b"x"})
    store.proxy.reset()
    there = [at for at in ("a/b", "a", "b") if storage.is_file(f"{store.url}/{at}")]
    assert there == ["a/b"]
    assert store.proxy.seen.total() == 3 or store.url.startswith("s3")
    for name in ("a/b", "b"):
        storage.remove_file(f"{store.url}/{name}")
    assert storage.list_dir(store.url) == []


def test_an_outage_does_not_look_like_nothing(store, tmp_path):
    """An outage during a listing or look-up is an error, not an empty or missing folder."""
    fill(store, tmp_path / "data", 1)
    store.proxy.fault = lambda request: 503
    for ask in (storage.is_file, storage.list_files, storage.list_dir, storage.size):
        with pytest.raises(StorageError, match="503"):
            ask(f"{store.url}/images")
    with pytest.raises(StorageError, match="503"):
        recordgen.check(f"{store.url}/*.csv")
    store.proxy.fault = lambda request: 403
    for ask in (storage.is_file, storage.list_files, storage.list_dir):
        with pytest.raises(StorageError, match=f"{store.url}/images"):
            ask(f"{store.url}/images")
    store.proxy.reset()
    with pytest.raises(SourceError, match=r"/none/\*\.csv"):
        recordgen.check(f"{store.url}/none/*.csv")


def test_missing_and_forbidden_are_told_apart(store, tmp_path):
    """404 and 403 are rejects with different codes, both when planned and when fetched."""
    fill(store, tmp_path / "data", 8)
    lines = [*(f"TRAIN,images/{n}.jpg,a\n" for n in (0, 5)), "TRAIN,images/none.jpg,a\n"]
    source = store.put("some.csv", "".join(lines).encode())
    store.proxy.fault = always(403, name="images/5.jpg")
    result = recordgen.convert(source, tmp_path / "out", max_reject_fraction=1)
    codes = [(item.line, item.code) for item in result.rejects]
    assert codes == [(2, "permission_denied"), (3, "missing_file")]


def test_wrong_credentials_are_no_rejects(new_store, monkeypatch, tmp_path):
    """If storage rejects our credentials, it is an error, not a dataset without images."""
    store = new_store("s3")
    fill(store, tmp_path / "data", 2)
    local = tmp_path / "far.csv"
    local.write_text(f"TRAIN,{store.url}/images/0.jpg,a\nTRAIN,{store.url}/images/1.jpg,a\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(StorageError, match=r"(?i)credentials"):
        recordgen.convert(str(local), tmp_path / "out", max_reject_fraction=1)


def test_many_are_fetched_at_once(store, tmp_path):
    """20 to 64 requests are concurrent: the first images wait for 20 requests."""
    fill(store, tmp_path / "data", 80)
    store.proxy.gathered = 20
    assert recordgen.convert(f"{store.url}/labels.csv", tmp_path / "out").dataset.examples == 80
    assert 20 <= store.proxy.busiest <= 64


@pytest.mark.parametrize("difference", [-10, 10])
def test_a_replaced_object_is_rejected(store, difference):
    """An object whose size differs from the planned size is a reject, never a part of an image."""
    url = store.put("1.jpg", b"x" * 1000)
    row = PlannedRow(0, "labels.csv", 1, url, None, 1000 + difference, "", assigned=False)
    fetcher = store_of(ConvertOptions()).fetcher([row.uri])
    error = error_of(PayloadError, fetcher.start(row))
    assert (error.code, f"{1000 + difference:,} bytes" in error.message) == ("changed", True)
    assert fetcher.start(row._replace(bytes=1000))() == b"x" * 1000


def test_a_missing_bucket_is_not_made(store, tmp_path):
    """A misspelt output is an error before anything is read."""
    local = fill(None, tmp_path / "data", 1)
    with pytest.raises(StorageError, match=f"{store.url}-misspelt"):
        recordgen.convert(local, f"{store.url}-misspelt/out")


def test_names_are_taken_as_they_are(store):
    """Object names may contain characters that are special in shells, URLs and fsspec."""
    for name in ("a::b", "ä ö/%41.jpg", "[1].jpg", "a#1?x=2", "a+b&c"):
        url = store.put(name, name.encode())
        assert storage.info(url).size == len(name.encode())
        assert storage.read_bytes(url, 100) == name.encode()
    assert storage.read_bytes(storage.resolve("../[1].jpg", f"{store.url}/csv/a.csv")) == b"[1].jpg"


@ONCE
@GS
def test_a_report_costs_a_few_requests(store, tmp_path):
    """The report of a remote dataset needs dataset.json, rejects and the start of a few shards."""
    source = fill(None, tmp_path / "data", 40)
    recordgen.convert(source, f"{store.url}/out", shard_mb=0.002, lint="ALL")
    page = storage.read_text(f"{store.url}/out/report.html")
    store.proxy.reset()
    assert render_report(f"{store.url}/out") == page
    # Five examples of each split, and the examples with findings.
    assert page.count("<img ") == 27
    shards = [path for _, path in store.proxy.seen if "data_tfrecord" in path]
    assert len(set(shards)) <= 30
    # How often gcsfs lists a folder again depends on the order of its threads.
    assert store.proxy.seen.total() < 100


@pytest.mark.parametrize("fault", [503, 429, "cut"])
def test_requests_are_repeated_in_one_place(store, fault):
    """Requests for a hint are not retried; requests for a result are, as often as set."""
    store.put("folder/file", b"x")
    store.proxy.fault = lambda request: fault
    with storage.without_retries(), pytest.raises(StorageError):
        storage.list_dir(f"{store.url}/folder")
    assert store.proxy.faults == 1
    with pytest.raises(StorageError, match=" 4 times"):
        storage.list_dir(f"{store.url}/folder")
    assert store.proxy.faults == 5


def test_a_file_is_looked_up_by_one_request(store):
    """Folders of the same name are not looked up, as listings take longer and cost more."""
    url = store.put("folder/file", b"xyz")
    store.proxy.reset()
    assert storage.size(url) == 3
    assert store.proxy.seen.total() == 1


@ONCE
@GS
def test_an_append_that_fails_while_it_moves_leaves_the_old_dataset(store, tmp_path):
    """Nothing that belongs to the new dataset.json comes before all of its shards."""
    source, out = fill(store, tmp_path, 12), f"{store.url}/out"
    rows = Path(source).read_text().splitlines(keepends=True)
    store.put("some.csv", "".join(rows[:8]).encode())
    recordgen.convert(f"{store.url}/some.csv", out)
    store.proxy.fault = lambda request: (
        403 if "Split-eval" in request.path_qs and ("rewriteTo" in request.path_qs) else None
    )
    with pytest.raises(StorageError):
        recordgen.convert(f"{store.url}/labels.csv", out, append=True)
    assert len(list(recordgen.source(out))) == 4  # in train
    store.proxy.reset()
    result = recordgen.convert(f"{store.url}/labels.csv", out, append=True, resume=True)
    assert (result.dataset.examples, len(list(recordgen.source(out)))) == (12, 6)


def test_a_small_file_is_written_and_moved_by_few_requests(store):
    """One to write it, and one each to copy and to remove it; s3fs looks up its size, too."""
    store.proxy.reset()
    with storage.replacing(f"{store.url}/out/a") as file:
        file.write(b"x")
    storage.move(f"{store.url}/out/a", f"{store.url}/out/b")
    assert store.proxy.seen.total() == (4 if store.url.startswith("s3") else 3)
    assert store.tree("out") == {"b": b"x"}


def test_a_listing_replaces_many_look_ups(store, monkeypatch):
    """Pages agree with look-ups; a few files, or files missing in pages, are looked up singly."""
    monkeypatch.setattr(remote, "PAGE_OBJECTS", 12)
    monkeypatch.setattr(fetching, "SAVED_BY_PAGE", 10)
    store.put_all({f"images/{n:03}.jpg": b"x" * (n % 7) for n in range(40)})
    store.put_all({"images/below/1.jpg": b"x", "images2/1.jpg": b"x", "1.jpg": b"x"})
    paths = [f"{store.url}/images/{n:03}.jpg" for n in range(30)]
    others = [f"{store.url}/1.jpg", f"{store.url}/images/below/1.jpg"]
    store.proxy.reset()
    found = listed_infos([*paths, *others, *paths[:3]])
    # The emulator of Google's storage has one page with all objects.
    assert store.proxy.seen.total() == (3 if store.url.startswith("s3") else 1)
    assert sorted(found) == paths
    for path in (paths[0], paths[11], paths[12], paths[29]):
        assert found[path] == storage.info(path)
    store.proxy.reset()
    assert listed_infos(paths[::10]) == {}
    assert store.proxy.seen.total() == 0


def test_pages_of_google(monkeypatch):
    """Each page names the next one; names that look like a version are skipped."""
    names = [*(f"a b/{n:04}.jpg" for n in range(2100)), "a b/x.jpg#12"]
    with listed_bucket(names, monkeypatch) as asked:
        found = listed_infos(f"gs://bucket/{name}" for name in names)
    assert len(asked) == 3
    assert {item["prefix"] for item in asked} == {"a b/"}
    assert found == {
        f"gs://bucket/{name}": storage.FileInfo(7, f"1{n:04}") for n, name in enumerate(names[:-1])
    }


def test_ranges_of_a_folder(monkeypatch):
    """Pages run from the first to the last needed name; many names are split into ranges."""
    names = [f"a/{n:05}.jpg" for n in range(9000)]
    wanted = [f"gs://bucket/{name}" for name in names[3000:7000]]
    with listed_bucket(names, monkeypatch) as asked:
        assert sorted(listed_infos(wanted)) == wanted
    starts = [item["startOffset"] for item in asked]
    assert sorted(set(starts)) == ["a/03000.jpg", "a/05000.jpg"]


def test_a_listing_with_few_matches_stops(store):
    """If a page contains few needed names, there is no second request; its infos are used."""
    store.put_all({f"{n:04}.jpg": b"x" for n in range(120)})
    paths = [f"{store.url}/{n:04}.jpg" for n in range(20, 220)]
    store.proxy.reset()
    assert sorted(listed_infos(paths)) == paths[:100]
    assert store.proxy.seen.total() == 1


def test_a_listing_fails_as_look_ups_do(store):
    """An outage is an error, a transient fault is not; without permission or folder, look up."""
    store.put_all({f"images/{n:03}.jpg": b"x" for n in range(100)})
    paths = [f"{store.url}/images/{n:03}.jpg" for n in range(100)]
    store.proxy.spoil_first(1, 503)
    assert sorted(listed_infos(paths)) == paths
    store.proxy.fault = lambda request: 503
    with pytest.raises(StorageError, match=" 4 times"):
        listed_infos(paths)
    store.proxy.fault = lambda request: 403
    assert listed_infos(paths) == {}
    store.proxy.reset()
    assert listed_infos([f"{store.url}/none/{n}.jpg" for n in range(100)]) == {}
    assert listed_infos([f"{store.url}-none/{n}.jpg" for n in range(100)]) == {}
    assert store.proxy.seen.total() == 2


def test_one_version_of_an_object(new_store):
    """A URL may name a version; without a version it is the newest."""
    store = new_store("s3")
    fs = fsspec.filesystem("s3", skip_instance_cache=True, version_aware=True)
    fs.make_bucket_versioned(store.url.removeprefix("s3://"))
    url = store.put("file", b"old")
    [version] = fs.object_version_info(url)
    store.put("file", b"newer")
    assert storage.read_bytes(url) == b"newer"
    assert storage.read_bytes(f"{url}?versionId={version['VersionId']}") == b"old"
