"""What a large COCO document costs beside a CSV of the same boxes: processor time and memory.

    python -m benchmarks.coco

Writes 118,000 tiny images, a document of their boxes with polygons (500 MB, as in COCO 2017) and a
CSV of the boxes, and plans each in a process of its own: detection, preview, reading and planning,
without imports. Peak memory is the proportional set size of the process and its descendants.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from benchmarks.boxes import WRITERS
from benchmarks.memory import run_apart
from benchmarks.rows import make_images

IMAGES = 118_000
FORMATS = ("csv", "coco")


def _plan(source: str, rows: int) -> float:
    """Return the processor time of a plan."""
    from recordgen.conversion.api import plan

    started = _cpu_seconds()
    found = plan(source, check="none", lint="-ALL").rows
    seconds = _cpu_seconds() - started
    if found < rows:
        raise RuntimeError(f"{found} of {rows} images were planned")
    return seconds


def _cpu_seconds() -> float:
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        root = Path(folder)
        names = [os.path.relpath(path, root) for path in make_images(root, args.images)]
        for name in FORMATS:
            source = WRITERS[name](root, names)
            documents = {"csv": "boxes.csv", "coco": "instances.json"}
            document = root / documents[name]
            size = document.stat().st_size / 1e6
            seconds, peak_mb = run_apart(
                _plan, str(document) if name == "csv" else source, args.images
            )
            result[name] = {"document_mb": size, "cpu_s": seconds, "peak_mb": peak_mb}
            document.unlink()
    if args.json:
        print(json.dumps(result, indent=2))
        return
    for name, found in result.items():
        print(
            f"{name:4s}  {found['document_mb']:4,.0f} MB  {found['cpu_s']:5.1f} CPU s  "
            f"{found['peak_mb']:5,.0f} MB of memory"
        )


if __name__ == "__main__":
    main()
