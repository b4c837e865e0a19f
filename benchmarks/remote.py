"""Records per second of ``recordgen.source`` from a store that answers after a while.

    python -m benchmarks.remote [--data OUT] [--delay 0.02] [--json]

OUT is an output of Recordgen; without it, 4,000 records of 20 kB are written. A server in another
process on 127.0.0.1 answers as Google Cloud Storage does, but waits before each answer. Records in
random order are read one at a time, and 32 and 128 at a time, as a ``DataLoader`` asks for a batch;
and in batches by 16 threads, as Grain asks for prefetched ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web

RECORDS, RECORD_BYTES = 4_000, 20_000
TOGETHER = (1, 32, 128)
THREADS = 16


def serve(root: Path, port: Any, delay: float) -> None:
    """Answer requests for the files below a folder; put the server's port into a queue."""
    paths = (path for path in root.rglob("*") if path.is_file())
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}

    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(delay)
        name = request.path.partition("/o/out/")[2]
        data = files.get(name)
        if data is None:
            return web.json_response({"error": {"code": 404}}, status=404)
        if request.query.get("alt") != "media":
            described = {"name": f"out/{name}", "bucket": "bucket", "size": str(len(data))}
            stamps = dict.fromkeys(("updated", "timeCreated"), "2026-01-01T00:00:00Z")
            return web.json_response({**described, **stamps, "generation": "1", "etag": "x"})
        if wanted := request.headers.get("Range"):
            first, last = wanted.removeprefix("bytes=").split("-")
            stop = int(last) + 1 if last else len(data)
            shown = {"Content-Range": f"bytes {first}-{stop - 1}/{len(data)}"}
            return web.Response(status=206, body=data[int(first) : stop], headers=shown)
        return web.Response(body=data)

    async def run() -> None:
        runner = web.ServerRunner(web.Server(answer))  # type: ignore[arg-type]
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.put(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def serving(root: Path, delay: float) -> Iterator[str]:
    """Serve a folder as ``gs://bucket/out`` in another process."""
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    process = context.Process(target=serve, args=(root, port, delay), daemon=True)
    process.start()
    os.environ["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{port.get()}"
    try:
        yield "gs://bucket/out"
    finally:
        process.kill()
        process.join()


def measure(place: str) -> dict[str, dict[str, float]]:
    """Return records per second and CPU milliseconds a record, by the way of asking."""
    import recordgen

    source = recordgen.source(place, "train")
    order = np.random.default_rng(0).permutation(len(source))
    source.__getitems__(order[:8])  # the connection is there
    found = {}
    for together in TOGETHER:
        indexes = order[: 20 * together]
        parts = [indexes[at : at + together] for at in range(0, len(indexes), together)]
        found[f"{together} together"] = _timed(map(source.__getitems__, parts), len(indexes))
    batches = source.batches(32, seed=1, threads=THREADS)
    found[f"batches, {THREADS} threads"] = _timed(batches, len(source))
    return found


def _timed(batches: Iterator[Any], count: int) -> dict[str, float]:
    started, cpu = time.perf_counter(), time.process_time()
    for _ in batches:
        pass
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {"records_per_s": count / seconds, "cpu_ms": cpu / count * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="OUT", help="an output of Recordgen")
    parser.add_argument("--delay", type=float, default=0.02, metavar="SECONDS")
    parser.add_argument("--records", type=int, default=RECORDS, help="records that are written")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as work:
        out = args.data or _written(Path(work) / "out", args.records)
        with serving(out, args.delay) as place:
            found = measure(place)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    for name, each in found.items():
        print(f"{name:20s} {each['records_per_s']:8,.0f} records/s  {each['cpu_ms']:6.2f} ms CPU")


def _written(out: Path, count: int) -> Path:
    import recordgen

    data = np.random.default_rng(0).bytes(RECORD_BYTES)
    recordgen.write(({"number": number, "data": data} for number in range(count)), out, shards=4)
    return out


if __name__ == "__main__":
    main()
