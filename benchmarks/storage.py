"""The cost of converting from and reading in remote storage: time, processor time and requests.

    python -m benchmarks.storage --latency-ms 40 --store gs --json

In one run, against this program's own server (in its own process), which answers every request
after ``--latency-ms``, a listing page after ten times as long, and knows only the part of the
protocol that conversions and readers use:

    one          requests size and bytes of one image after the other, and does nothing else
    ours         recordgen.convert of the images, from the import file to the commit
    disk         the same conversion of the same images on a disk
    fingerprint  the look-ups of AutoMLExampleGen before each run (if TFX is installed)
    read_1, read_32, read_128  recordgen.source of records of 20 kB in random order, so many
                 together, as a DataLoader asks for a batch
    read_threads the same records in batches by 16 threads, as Grain asks for prefetched ones

Rates are images or records per second in the fastest round; ``cpu`` is processor time for each in
the cheapest; ``requests`` are for one round. ``one`` uses fewer images, as its rate does not depend
on their number.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import multiprocessing
import os
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import web

STORES = ("gs", "s3", "http")

# Latency of a listing page relative to other requests: an estimate.
PAGE_LATENCIES = 10

RECORDS, RECORD_BYTES, THREADS = 4000, 20_000, 16
TOGETHER = (1, 32, 128)

CONTENDERS = (
    *("one", "ours", "disk", "fingerprint"),
    *(f"read_{count}" for count in TOGETHER),
    "read_threads",
)


def photo(side: int) -> bytes:
    """Return a JPEG of blurred noise."""
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (side // 4, side // 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).resize((side, side)).save(out, "JPEG", quality=90)
    return out.getvalue()


# --- the server -------------------------------------------------------------------------------


def serve(root: Path, latency_seconds: float, ready: Connection) -> None:
    """Answer like Google's storage, S3 and web servers for a bucket of files, until killed.

    ``/counted`` returns the numbers of requests since its last call, as JSON.
    """
    from aiohttp import web

    paths = sorted(path for path in root.rglob("*") if path.is_file())
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    counted: Counter[str] = Counter()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/counted":
            numbers = dict(counted)
            counted.clear()
            return web.json_response(numbers)
        is_google = request.path.startswith("/storage/v1/b/")
        if request.path.endswith("/bucket/o") or "list-type" in request.query:
            counted["pages"] += 1
            await asyncio.sleep(PAGE_LATENCIES * latency_seconds)
            return _page(request.query, files, is_google=is_google)
        name = request.path.partition("/bucket/")[2].removeprefix("o/")
        is_look_up = request.method == "HEAD" or (is_google and request.query.get("alt") != "media")
        counted["look-ups" if is_look_up else "reads"] += 1
        await asyncio.sleep(latency_seconds)
        if name not in files:
            return web.json_response({"error": {"code": 404}}, status=404)
        if is_look_up and is_google:
            return web.json_response(_object(name, files[name]))
        return _content(files[name], request.headers.get("Range"))

    async def run() -> None:
        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


def _object(name: str, data: bytes) -> dict[str, str]:
    stamps = dict.fromkeys(("updated", "timeCreated"), "2026-01-01T00:00:00Z")
    known = {"name": name, "size": str(len(data)), "generation": "1", "bucket": "bucket"}
    return {**known, **stamps, "etag": "x"}


def _content(data: bytes, wanted: str | None) -> web.Response:
    """Return a file, or the range of its bytes that a header asks for."""
    from aiohttp import web

    headers = {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"}
    if wanted is None:
        return web.Response(body=data, headers=headers)
    first, last = wanted.removeprefix("bytes=").split("-")
    stop = int(last) + 1 if last else len(data)
    headers["Content-Range"] = f"bytes {first}-{stop - 1}/{len(data)}"
    return web.Response(status=206, body=data[int(first) : stop], headers=headers)


def _page(query: Mapping[str, str], files: Mapping[str, bytes], *, is_google: bool) -> web.Response:
    """Return a page of the bucket's listing, from a name or from the end of the last page on."""
    from aiohttp import web

    names = list(files)
    first = query.get("startOffset" if is_google else "start-after", "")
    token = query.get("pageToken" if is_google else "continuation-token")
    start = int(token or next((n for n, name in enumerate(names) if name >= first), len(names)))
    end = min(start + 1000, len(names))
    page = names[start:end]
    if is_google:
        more = {"nextPageToken": str(end)} if end < len(names) else {}
        return web.json_response({"items": [_object(name, files[name]) for name in page], **more})
    marks = "<ETag>&quot;1&quot;</ETag><LastModified>2026-11-21T00:00:00.000Z</LastModified>"
    contents = "".join(
        f"<Contents><Key>{name}</Key><Size>{len(files[name])}</Size>{marks}</Contents>"
        for name in page
    )
    if end < len(names):
        contents += f"<NextContinuationToken>{end}</NextContinuationToken>"
    return web.Response(
        text=f"<ListBucketResult>{contents}</ListBucketResult>", content_type="application/xml"
    )


@contextmanager
def served(root: Path, latency_seconds: float) -> Iterator[str]:
    """Run the server; yield its URL."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(root, latency_seconds, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()


def counted(url: str) -> dict[str, int]:
    """Return the number of requests since the last call."""
    with urllib.request.urlopen(f"{url}/counted") as answer:
        found: dict[str, int] = json.load(answer)
        return found


# --- contenders: each works on a list of paths or of numbers of records -----------------------


def look_at_each(paths: Sequence[str]) -> None:
    """Request one image after the other."""
    from recordgen import storage

    for path in paths:
        storage.info(path)
        storage.read_bytes(path)


def convert_all(paths: Sequence[str]) -> None:
    """Convert the images."""
    from recordgen.conversion.api import convert

    with import_file(paths) as source:
        result = convert(source, f"{source}-out", allow="http")
    if result.dataset.examples != len(paths):
        raise SystemExit(f"{result.dataset.examples} of {len(paths)} images were converted")


def take_fingerprint(paths: Sequence[str]) -> None:
    """Look up the versions of the images, as before each run of a pipeline."""
    from recordgen.conversion.fingerprint import image_fingerprint
    from recordgen.formats.import_file import ImportFile
    from recordgen.options import ConvertOptions

    with import_file(paths) as source:
        options = ConvertOptions(task="image_classification", allow=("http",))
        image_fingerprint([ImportFile(source)], options)


@contextmanager
def import_file(paths: Sequence[str]) -> Iterator[str]:
    """Write an import file of the images; yield its path."""
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        source = os.path.join(folder, "labels.csv")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f"TRAIN,{path},{number % 10}\n" for number, path in enumerate(paths))
        yield source


def read_together(numbers: Sequence[int], place: str, together: int) -> None:
    """Read records, so many at a time."""
    import recordgen

    source = recordgen.source(place, "train")
    for at in range(0, len(numbers), together):
        source.__getitems__(numbers[at : at + together])


def read_batches(numbers: Sequence[int], place: str) -> None:
    """Read all records in batches by threads."""
    import recordgen

    for _ in recordgen.source(place, "train").batches(32, seed=len(numbers), threads=THREADS):
        pass


def write_data(folder: Path, rows: int, side: int) -> list[str]:
    """Write images and a dataset of records; return the names of the images."""
    import numpy as np

    import recordgen

    body = photo(side)
    names = [f"{number:07d}.jpg" for number in range(rows)]
    for name in names:
        (folder / name).write_bytes(body)
    data = np.random.default_rng(0).bytes(RECORD_BYTES)
    records = ({"number": number, "data": data} for number in range(RECORDS))
    recordgen.write(records, folder / "out", shards=4)
    return names


def contenders(
    names: Sequence[str], bucket: str, folder: Path
) -> dict[str, tuple[Callable[..., None], Sequence[Any]]]:
    """Return the contenders by name, each with what it works on."""
    import numpy as np

    far, near = [f"{bucket}/{name}" for name in names], [f"{folder}/{name}" for name in names]
    order = np.random.default_rng(0).permutation(RECORDS).tolist()
    work: dict[str, tuple[Callable[..., None], Sequence[Any]]] = {
        "one": (look_at_each, far[: max(20, len(far) // 40)]),
        "ours": (convert_all, far),
        "disk": (convert_all, near),
    }
    if find_spec("tfx"):
        work["fingerprint"] = (take_fingerprint, far)
    for count in TOGETHER:
        read = partial(read_together, place=f"{bucket}/out", together=count)
        work[f"read_{count}"] = (read, order[: max(200, 20 * count)])
    work["read_threads"] = (partial(read_batches, place=f"{bucket}/out"), order)
    return work


def measured(work: Callable[..., None], items: Sequence[Any]) -> tuple[float, float]:
    """Return items per second, and milliseconds of processor time per item."""
    before, started = os.times(), time.perf_counter()
    work(items)
    seconds, after = time.perf_counter() - started, os.times()
    cpu = sum(after[:4]) - sum(before[:4])  # user, system, and the same of ended children
    return len(items) / seconds, 1000 * cpu / len(items)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=STORES, default="gs")
    parser.add_argument("--latency-ms", type=float, default=40)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--side", type=int, default=128, help="pixels of an image")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as made:
        names = write_data(Path(made), args.rows, args.side)
        with served(Path(made), args.latency_ms / 1000) as url:
            os.environ.update(
                STORAGE_EMULATOR_HOST=url,
                AWS_ENDPOINT_URL=url,
                AWS_ACCESS_KEY_ID="key",
                AWS_SECRET_ACCESS_KEY="secret",
                AWS_DEFAULT_REGION="us-east-1",
            )
            bucket = f"{url}/bucket" if args.store == "http" else f"{args.store}://bucket"
            work = contenders(names, bucket, Path(made))
            work = {name: work[name] for name in args.only if name in work}
            for function, items in work.values():
                function(items[:100])  # load libraries and find credentials
            counted(url)
            rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
            requests = {}
            for _ in range(args.rounds):
                for name, (function, items) in work.items():
                    rounds[name].append(measured(function, items))
                    requests[name] = counted(url)
    rates = {name: max(rate for rate, _ in found) for name, found in rounds.items()}
    cpu = {name: min(cpu for _, cpu in found) for name, found in rounds.items()}
    if args.json:
        figures = {"per_second": rates, "cpu_ms": cpu, "requests": requests}
        print(json.dumps({"store": args.store, "latency_ms": args.latency_ms, **figures}, indent=2))
        return
    print(f"{args.store}, {args.latency_ms:g} ms, {args.rows} images")
    for name, rate in rates.items():
        of_one = f"  {rate / rates['one']:6.1f} × one" if "one" in rates else ""
        print(f"{name:12} {rate:8.1f}/s {cpu[name]:8.3f} ms cpu {requests[name]}{of_one}")
    if {"ours", "disk"} <= {*cpu}:
        print(f"cpu of ours / disk: {cpu['ours'] / cpu['disk']:.2f}")


if __name__ == "__main__":
    main()
