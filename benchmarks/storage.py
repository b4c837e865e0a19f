"""The cost of a conversion from remote storage: time, processor time and requests.

    python -m benchmarks.storage --latency-ms 40 --store gs --json

In one run, against this program's own server (in its own process), which answers every request
after ``--latency-ms``, a listing page after ten times as long, and knows only the part of the
protocol that a conversion uses:

    one          requests size and bytes of one image after the other, and does nothing else
    ours         recordgen.convert of the images, from the import file to the commit
    disk         the same conversion of the same images on a disk
    fingerprint  the look-ups of AutoMLExampleGen before each run (if TFX is installed)

Rates are images per second in the fastest round; ``cpu`` is processor time per image in the
cheapest; ``requests`` are for one round. ``one`` uses fewer images, as its rate does not depend on
their number.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

STORES = ("gs", "s3", "http")

# Latency of a listing page relative to other requests: an estimate.
PAGE_LATENCIES = 10


def image_name(number: int) -> str:
    return f"{number:07d}.jpg"


def photo(side: int) -> bytes:
    """Return a JPEG of blurred noise."""
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (side // 4, side // 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).resize((side, side)).save(out, "JPEG", quality=90)
    return out.getvalue()


def serve(body: bytes, rows: int, latency_seconds: float, ready: Connection) -> None:
    """Answer like Google's storage, S3 and web servers for a bucket of images, until killed.

    ``/counted`` returns the numbers of requests since its last call, as JSON.
    """
    from aiohttp import web

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
            return _page(request.query, rows, len(body), is_google=is_google)
        counted["look-ups" if is_google or request.method == "HEAD" else "reads"] += 1
        await asyncio.sleep(latency_seconds)
        if is_google:
            return web.json_response(_object("object", len(body)))
        headers = {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"}
        return web.Response(body=body, headers=headers)

    async def run() -> None:
        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


def _object(name: str, size: int) -> dict[str, str]:
    return {"name": name, "size": str(size), "generation": "1", "bucket": "bucket"}


def _page(query: Mapping[str, str], rows: int, size: int, *, is_google: bool) -> web.Response:
    """Return a page of the bucket's listing, from a name or from the end of the last page on."""
    from aiohttp import web

    first = query.get("startOffset" if is_google else "start-after", "")
    token = query.get("pageToken" if is_google else "continuation-token")
    start = int(token or next((n for n in range(rows) if image_name(n) >= first), rows))
    end = min(start + 1000, rows)
    names = [image_name(number) for number in range(start, end)]
    if is_google:
        more = {"nextPageToken": str(end)} if end < rows else {}
        return web.json_response({"items": [_object(name, size) for name in names], **more})
    marks = f"<Size>{size}</Size><ETag>&quot;1&quot;</ETag>"
    marks += "<LastModified>2026-11-21T00:00:00.000Z</LastModified>"
    contents = "".join(f"<Contents><Key>{name}</Key>{marks}</Contents>" for name in names)
    if end < rows:
        contents += f"<NextContinuationToken>{end}</NextContinuationToken>"
    return web.Response(
        text=f"<ListBucketResult>{contents}</ListBucketResult>", content_type="application/xml"
    )


@contextmanager
def served(body: bytes, rows: int, latency_seconds: float) -> Iterator[str]:
    """Run the server; yield its URL."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(body, rows, latency_seconds, theirs), daemon=True)
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


def look_at_each(paths: list[str]) -> None:
    """Request one image after the other."""
    from recordgen import storage

    for path in paths:
        storage.info(path)
        storage.read_bytes(path)


def convert_all(paths: list[str]) -> None:
    """Convert the images."""
    from recordgen.conversion.api import convert

    with import_file(paths) as source:
        result = convert(source, f"{source}-out", allow="http")
    if result.dataset.examples != len(paths):
        raise SystemExit(f"{result.dataset.examples} of {len(paths)} images were converted")


def take_fingerprint(paths: list[str]) -> None:
    """Look up the versions of the images, as before each run of a pipeline."""
    from recordgen.conversion.fingerprint import image_fingerprint
    from recordgen.formats.import_file import ImportFile
    from recordgen.options import ConvertOptions

    with import_file(paths) as source:
        options = ConvertOptions(task="image_classification", allow=("http",))
        image_fingerprint([ImportFile(source)], options)


@contextmanager
def import_file(paths: list[str]) -> Iterator[str]:
    """Write an import file of the images; yield its path."""
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        source = os.path.join(folder, "labels.csv")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f"TRAIN,{path},{number % 10}\n" for number, path in enumerate(paths))
        yield source


def measured(work: Callable[[list[str]], None], paths: list[str]) -> tuple[float, float]:
    """Return images per second, and milliseconds of processor time per image."""
    before, started = os.times(), time.perf_counter()
    work(paths)
    seconds, after = time.perf_counter() - started, os.times()
    cpu = sum(after[:4]) - sum(before[:4])  # user, system, and the same of ended children
    return len(paths) / seconds, 1000 * cpu / len(paths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=STORES, default="gs")
    parser.add_argument("--latency-ms", type=float, default=40)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--side", type=int, default=128, help="pixels of an image")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("one", "ours", "disk", "fingerprint"), action="append")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    body = photo(args.side)
    with (
        served(body, args.rows, args.latency_ms / 1000) as url,
        tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder,
    ):
        os.environ.update(
            STORAGE_EMULATOR_HOST=url,
            AWS_ENDPOINT_URL=url,
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY="secret",
            AWS_DEFAULT_REGION="us-east-1",
        )
        root = f"{url}/bucket" if args.store == "http" else f"{args.store}://bucket"
        names = [image_name(number) for number in range(args.rows)]
        far, near = [f"{root}/{name}" for name in names], [f"{folder}/{name}" for name in names]
        work = {
            "one": (look_at_each, far[: max(20, args.rows // 40)]),
            "ours": (convert_all, far),
            "disk": (convert_all, near),
        }
        if find_spec("tfx"):
            work["fingerprint"] = (take_fingerprint, far)
        work = {name: work[name] for name in args.only or work}
        for path in near if "disk" in work else ():
            with open(path, "wb") as file:
                file.write(body)
        for function, paths in work.values():
            function(paths[:100])  # load libraries and find credentials
        counted(url)
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
        requests = {}
        for _ in range(args.rounds):
            for name, (function, paths) in work.items():
                rounds[name].append(measured(function, paths))
                requests[name] = counted(url)
    rates = {name: max(rate for rate, _ in found) for name, found in rounds.items()}
    cpu = {name: min(cpu for _, cpu in found) for name, found in rounds.items()}
    result = {
        "store": args.store,
        "latency_ms": args.latency_ms,
        "rows": args.rows,
        "image_bytes": len(body),
        "images_per_second": {name: round(rate, 1) for name, rate in rates.items()},
        "cpu_ms_per_image": {name: round(each, 3) for name, each in cpu.items()},
        "requests": requests,
    }
    if not args.only:
        result["ratio"] = round(rates["ours"] / rates["one"], 1)
        result["cpu_ratio"] = round(cpu["ours"] / cpu["disk"], 2)
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{args.store}, {args.latency_ms:g} ms, {args.rows} images of {len(body)} bytes")
    for name, rate in rates.items():
        print(f"{name:11} {rate:8.1f} images/s {cpu[name]:8.3f} ms cpu {requests[name]}")
    print(
        f"ratio       {result['ratio']:8.1f} images/s {result['cpu_ratio']:8.2f} cpu, ours / disk"
    )


if __name__ == "__main__":
    main()
