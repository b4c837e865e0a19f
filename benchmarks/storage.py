"""How much faster many requests at once are than one at a time, from a storage that is far away.

    python -m benchmarks.storage --latency-ms 40 --store gs --json

In one run, against a server of this program's own (in a process of its own) that answers every
request after ``--latency-ms`` and speaks as much of the protocol as a conversion asks:

    one   asks for size and bytes of one image after the other, and does nothing else
    ours  recordgen.convert of the images, from the import file to the commit

Rates are images per second. ``one`` runs over fewer images, as its rate does not depend on them.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

STORES = ("gs", "s3", "http")


def photo(side: int) -> bytes:
    """Return a JPEG of blurred noise."""
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (side // 4, side // 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).resize((side, side)).save(out, "JPEG", quality=90)
    return out.getvalue()


def serve(body: bytes, latency_seconds: float, ready: Connection) -> None:
    """Answer reads of any object as Google's storage, S3 and web servers do, until killed."""
    from aiohttp import web

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(latency_seconds)
        if request.path.startswith("/storage/v1/b/"):
            return web.json_response(
                {"name": "object", "size": str(len(body)), "generation": "1", "bucket": "bucket"}
            )
        headers = {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"}
        return web.Response(body=body, headers=headers)

    async def run() -> None:
        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def served(body: bytes, latency_seconds: float) -> Iterator[str]:
    """Run the server; gives its URL."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(body, latency_seconds, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()


def one(paths: list[str]) -> float:
    """Return the rate of asking for one image after the other."""
    from recordgen import storage

    started = time.perf_counter()
    for path in paths:
        storage.info(path)
        storage.read_bytes(path)
    return len(paths) / (time.perf_counter() - started)


def ours(paths: list[str]) -> float:
    """Return the rate of a whole conversion."""
    from recordgen.conversion.api import convert

    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        source = os.path.join(folder, "labels.csv")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f"TRAIN,{path},{number % 10}\n" for number, path in enumerate(paths))
        result = convert(source, os.path.join(folder, "out"), allow_scheme="http")
    if result.dataset.examples != len(paths):
        raise SystemExit(f"{result.dataset.examples} of {len(paths)} images were converted")
    return len(paths) / result.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=STORES, default="gs")
    parser.add_argument("--latency-ms", type=float, default=40)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--side", type=int, default=128, help="pixels of an image")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    body = photo(args.side)
    with served(body, args.latency_ms / 1000) as url:
        os.environ.update(
            STORAGE_EMULATOR_HOST=url,
            AWS_ENDPOINT_URL=url,
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY="secret",
            AWS_DEFAULT_REGION="us-east-1",
        )
        root = f"{url}/bucket" if args.store == "http" else f"{args.store}://bucket"
        paths = [f"{root}/{number:06d}.jpg" for number in range(args.rows)]
        one(paths[:2])  # libraries are loaded, credentials found
        ours(paths[:100])
        rates: dict[str, list[float]] = {"one": [], "ours": []}
        for _ in range(args.rounds):
            rates["one"].append(one(paths[: max(20, args.rows // 40)]))
            rates["ours"].append(ours(paths))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    result = {
        "store": args.store,
        "latency_ms": args.latency_ms,
        "rows": args.rows,
        "image_bytes": len(body),
        "images_per_second": {name: round(rate, 1) for name, rate in medians.items()},
        "rounds": {name: [round(rate, 1) for rate in values] for name, values in rates.items()},
        "ratio": round(medians["ours"] / medians["one"], 1),
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{args.store}, {args.latency_ms:g} ms, {args.rows} images of {len(body)} bytes")
    for name, rate in medians.items():
        print(f"{name:5} {rate:8.1f} images/s")
    print(f"ratio {result['ratio']:8.1f}")


if __name__ == "__main__":
    main()
