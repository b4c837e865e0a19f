"""Libraries that were tried instead of our own code, beside it: obstore and faster-coco-eval.

    python -m benchmarks.libraries faults                 obstore after faults of a server
    python -m benchmarks.libraries objects --latency-ms 0 reads, look-ups and listings of S3
    python -m benchmarks.libraries boxes --images 5000    average precision of boxes

No lock has the two libraries: install them into a folder of their own and add it to PYTHONPATH
(``pip install --no-deps --target FOLDER obstore faster-coco-eval``). ``cpu`` is the processor time
of this process alone; the emulated store is another one. docs/adr/0067 has the results.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web

from benchmarks.storage import image_name, photo, served

_REQUESTS = 64  # concurrent, as in a conversion
_HEADERS = {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"}
_KEYS = {"access_key_id": "key", "secret_access_key": "secret"}


# --- obstore after faults ------------------------------------------------------------------------


def faults() -> None:
    """Print what obstore does where docs/storage.md promises something, and how often it asks."""
    from obstore import head
    from obstore.store import GCSStore, HTTPStore, S3Store

    from tests.servers import cut, drip, emulated_gcs, self_signed, serving

    asked: list[str] = []
    elsewhere: list[str] = []
    body = b"x" * 100_000

    async def other(request: web.BaseRequest) -> web.StreamResponse:
        elsewhere.append(request.headers.get("X-Token", "no token"))
        return web.Response(body=b"secrets of the cloud", headers=_HEADERS)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        asked.append(request.raw_path)
        if name.isdigit():
            return web.Response(status=int(name), text="a banner of the server")
        if name == "cut":
            return await cut(request, body)
        if name == "resumed":
            start = int(request.headers.get("Range", "bytes=0-")[6:].split("-")[0])
            return await _half(request, body[start:], start, len(body))
        if name == "drip":
            return await drip(request, len(body))
        if name == "part":
            return web.Response(
                status=206, body=body[:10], headers={"Content-Range": "bytes 0-9/100"}
            )
        if name == "unsized":
            unsized = web.StreamResponse()
            await unsized.prepare(request)
            await unsized.write(body)
            return unsized
        if name == "moved":
            return web.Response(status=302, headers={"Location": f"{private}/token"})
        if "list-type" in request.query:
            return web.Response(
                text=_listing("a/1.jpg", "a//2.jpg"), content_type="application/xml"
            )
        return web.Response(body=body, headers=_HEADERS)

    def tried(case: str, request: Callable[[], object]) -> None:
        asked.clear()
        started = time.monotonic()
        try:
            found = f"ok: {request()!r:.60}"
        except Exception as exc:  # noqa: BLE001 -- the trial is about what a library raises
            found = f"{type(exc).__name__}: {' '.join(str(exc).split())}"
        seconds = time.monotonic() - started
        print(f"{case:22} {len(asked)} requests {seconds:5.1f} s  {found:.230}")

    with serving(other) as private, serving(answer) as url:
        settings = {"allow_http": True, "timeout": "2s", "default_headers": {"X-Token": "mine"}}
        web_server = HTTPStore(url, client_options=settings, retry_config=_retries())
        bucket = S3Store(
            "bucket", endpoint=url, **_KEYS, client_options=settings, retry_config=_retries()
        )
        for status in (404, 410, 403, 401, 451, 418, 408, 425, 429, 500, 501, 503):
            tried(f"http {status}", lambda: len(_read(web_server, str(status))))  # noqa: B023
        for name in ("cut", "resumed", "drip", "part", "unsized", "moved"):
            tried(f"http {name}", lambda: bytes(_read(web_server, name)))  # noqa: B023
        print(f"{'':22} the other server got: {elsewhere}")
        tried("http HEAD refused", lambda: head(web_server, "405"))
        for name in ("a//2.jpg", "a/../2.jpg", "a/", "a.jpg?signature=1"):
            tried(f"name {name}", lambda: len(_read(bucket, name)))  # noqa: B023
            print(f"{'':22} it asked for {asked}")
        tried("listing with a//2.jpg", lambda: list(bucket.list()))
        secret = HTTPStore(
            "http://me:password@127.0.0.1:9/?token=secret",
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        tried("URL with secrets", lambda: len(_read(secret, "a")))
    tried("unknown host", lambda: _read(HTTPStore("https://none.invalid"), "a"))
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(answer, tls=self_signed(Path(folder))) as url,
    ):
        tried("unknown certificate", lambda: _read(_quick(url), "a"))
        os.environ["SSL_CERT_FILE"] = f"{folder}/server.pem"
        tried("SSL_CERT_FILE", lambda: len(_read(_quick(url), "a")))
    with tempfile.TemporaryDirectory() as home, serving(answer) as url:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            os.environ.pop(name, None)
        keys = Path(home, "credentials")
        keys.write_text("[default]\naws_access_key_id = key\naws_secret_access_key = secret\n")
        os.environ["AWS_SHARED_CREDENTIALS_FILE"] = str(keys)
        known = {"client_options": settings, "retry_config": _retries()}
        tried("S3, keys in a file", lambda: _read(S3Store("bucket", endpoint=url, **known), "a"))
        tried("GCS without keys", lambda: _read(GCSStore("bucket", **known), "a"))
    with emulated_gcs() as url:
        gcs = GCSStore("bucket", base_url=url, skip_signature=True, **known)
        tried("emulator of GCS", gcs.list_with_delimiter)
    with serving(answer) as url:
        _read(_quick(url), "a")
        print(f"{'a forked process':22} {_forked(lambda: _read(_quick(url), 'a'))}")


async def _half(request: web.BaseRequest, body: bytes, start: int, size: int) -> web.StreamResponse:
    """Answer with an ETag: with half of the body at first, then with the requested range."""
    if start:
        of_size = {"Content-Range": f"bytes {start}-{size - 1}/{size}"}
        return web.Response(status=206, body=body, headers={**_HEADERS, **of_size})
    answer = web.StreamResponse(headers=_HEADERS)
    answer.content_length = size
    await answer.prepare(request)
    await answer.write(body[: size // 2])
    await asyncio.sleep(0.2)  # until the first half has arrived
    if request.transport is not None:
        request.transport.close()
    return answer


def _quick(url: str) -> Any:
    from obstore.store import HTTPStore

    return HTTPStore(url, client_options={"allow_http": True}, retry_config=_retries())


def _retries() -> dict[str, Any]:
    """Return settings for four attempts without long waits."""
    waits = {"init_backoff": timedelta(milliseconds=10), "max_backoff": timedelta(milliseconds=50)}
    return {
        "max_retries": 3,
        "backoff": {**waits, "base": 2},
        "retry_timeout": timedelta(minutes=1),
    }


def _read(store: Any, name: str) -> bytes:
    return bytes(store.get(name).bytes())


def _listing(*names: str) -> str:
    marks = "<Size>1</Size><ETag>1</ETag><LastModified>2026-11-21T00:00:00.000Z</LastModified>"
    found = "".join(f"<Contents><Key>{name}</Key>{marks}</Contents>" for name in names)
    return f"<ListBucketResult>{found}</ListBucketResult>"


def _forked(request: Callable[[], object]) -> str:
    """Run a request in a forked process for at most five seconds."""
    child = os.fork()
    if not child:
        request()
        os._exit(0)
    for _ in range(50):
        if os.waitpid(child, os.WNOHANG)[0]:
            return "ends"
        time.sleep(0.1)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"


# --- reads and listings --------------------------------------------------------------------------


def objects(rows: int, names: int, latency_ms: float, rounds: int) -> None:
    """Print rates of the storage room and of obstore, in turn."""
    import obstore
    from obstore.store import S3Store

    from recordgen import storage

    body = photo(128)
    wanted = [image_name(number) for number in range(rows)]
    with (
        served(body, max(rows, names), latency_ms / 1000) as url,
        ThreadPoolExecutor(_REQUESTS) as pool,
    ):
        os.environ.update(AWS_ENDPOINT_URL=url, AWS_DEFAULT_REGION="us-east-1")
        os.environ.update({f"AWS_{name.upper()}": value for name, value in _KEYS.items()})
        store = S3Store("bucket", endpoint=url, client_options={"allow_http": True})

        async def gather() -> int:
            free = asyncio.Semaphore(_REQUESTS)

            async def one(name: str) -> int:
                async with free:
                    found = await obstore.get_async(store, name)
                    return len(bytes(await found.bytes_async()))

            return len(await asyncio.gather(*map(one, wanted)))

        def of_all(ask: Callable[[str], object]) -> Callable[[], int]:
            return lambda: sum(1 for _ in pool.map(ask, wanted))

        work: dict[str, Callable[[], int]] = {
            "read, today": of_all(lambda name: storage.read_bytes(f"s3://bucket/{name}")),
            "read, obstore": of_all(lambda name: _read(store, name)),
            "read, obstore async": lambda: asyncio.run(gather()),
            "look up, today": of_all(lambda name: storage.info(f"s3://bucket/{name}")),
            "look up, obstore": of_all(store.head),
        }
        if names:
            pages = storage.list_infos
            work["list, today"] = lambda: sum(map(len, pages("s3://bucket", storage.ANY_REQUEST)))
            work["list, obstore"] = lambda: sum(map(len, store.list(chunk_size=1000)))
        for name, function in work.items():
            if not name.startswith("list"):
                function()  # open connections
        for _ in range(rounds):
            for name, function in work.items():
                _print_cost(name, function)


def _print_cost(name: str, work: Callable[[], int]) -> None:
    peak, cpu, started = _peak_mb(), time.process_time(), time.perf_counter()
    count = work()
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - started
    print(
        f"{name:20} {count:9,} {count / seconds:9,.0f}/s {1000 * cpu / count:8.4f} ms cpu each, "
        f"peak +{_peak_mb() - peak:.0f} MB"
    )


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


# --- average precision ---------------------------------------------------------------------------


def boxes(images: int, rounds: int) -> None:
    """Print processor time and memory of each evaluation, in its own process."""
    for _ in range(rounds):
        for name in _EVALUATIONS:
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.libraries", "boxes"]
            subprocess.run([*command, "--images", str(images), "--by", name], check=True)


def evaluate(images: int, name: str) -> None:
    """Print the cost of one evaluation: 10 true and 100 found boxes in each image, 80 classes."""
    evaluation = _EVALUATIONS[name]
    evaluation(20)  # load libraries
    peak, cpu = _peak_mb(), time.process_time()
    score = evaluation(images)
    cpu = time.process_time() - cpu
    print(f"{name:17} AP {score:.6f} {cpu:6.2f} s cpu, peak +{_peak_mb() - peak:,.0f} MB")


def _made(images: int) -> Iterator[tuple[Any, Any]]:
    """Yield true boxes, float32 [10, 5], and found boxes, float32 [100, 6], of each image."""
    random = np.random.default_rng(0)
    for _ in range(images):
        low = random.random((110, 2), np.float32) * 0.8
        made = np.hstack([low, low + random.random((110, 2), np.float32) * 0.2 + 0.05])
        labels = random.integers(0, 80, 110)
        made[10:20] = made[:10] + random.normal(0, 0.005, (10, 4))
        labels[10:20] = labels[:10]
        true = np.column_stack([made[:10], labels[:10]])
        found = np.column_stack([made[10:], labels[10:], random.random(100)])
        yield true.astype(np.float32), found.astype(np.float32)


def _ours(images: int) -> float:
    from recordgen.training.average_precision import BoxAccumulator

    counts = BoxAccumulator(80)
    for true, found in _made(images):
        counts.add(true[None], found[None])
    return counts.score()


def _with_coco(images: int, new: Callable[[], Any], evaluation_of: Callable[..., Any]) -> float:
    truth, found = new(), []
    annotations: list[dict[str, Any]] = []
    for image, (there, seen) in enumerate(_made(images)):
        for left, top, right, bottom, label in there.tolist():
            size = right - left, bottom - top
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": int(label),
                    "bbox": [left, top, *size],
                    "area": size[0] * size[1],
                    "iscrowd": 0,
                }
            )
        low, high, label, score = seen[:, :2], seen[:, 2:4], seen[:, 4], seen[:, 5]
        found.append(np.column_stack([np.full(len(seen), image), low, high - low, score, label]))
    truth.dataset = {
        "images": [{"id": image} for image in range(images)],
        "annotations": annotations,
        "categories": [{"id": label} for label in range(80)],
    }
    with redirect_stdout(io.StringIO()):  # they print their progress
        truth.createIndex()
        evaluation = evaluation_of(truth, truth.loadRes(np.vstack(found).astype(float)), "bbox")
        evaluation.params.iouThrs = np.array([0.5])
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.params.maxDets = [100]
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"]
    return float(precision[precision > -1].mean())


def _faster(images: int) -> float:
    from faster_coco_eval import COCO, COCOeval_faster

    return _with_coco(images, COCO, COCOeval_faster)


def _pycocotools(images: int) -> float:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    return _with_coco(images, COCO, COCOeval)


_EVALUATIONS = {"BoxAccumulator": _ours, "faster-coco-eval": _faster, "pycocotools": _pycocotools}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("faults", "objects", "boxes"))
    parser.add_argument("--rows", type=int, default=2000, help="objects to read and look up")
    parser.add_argument("--names", type=int, default=0, help="objects to list")
    parser.add_argument("--latency-ms", type=float, default=40)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--by", choices=_EVALUATIONS, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.what == "faults":
        faults()
    elif args.what == "objects":
        objects(args.rows, args.names, args.latency_ms, args.rounds)
    elif args.by:
        evaluate(args.images, args.by)
    else:
        boxes(args.images, args.rounds)


if __name__ == "__main__":
    main()
