"""What ``records.npy`` costs: its bytes, the time to write it, and the time to make it afterwards.

    python -m benchmarks.index [--records 300000] [--json]

Rows of a table, of about 200 bytes, are converted, and such examples are written from Python: the
least work for a record, of which the index is the largest share. The CPU time of what only the
index needs (the length of each record, and the file) is measured within the same run. Then
``recordgen export index`` makes the index again, and other tools' files, the same shards without a
dataset, are opened twice: the first time reads each record's length.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

RECORDS = 300_000
TEXT_BYTES = 150


def measure(work: Path, count: int) -> dict[str, float]:
    """Return the figures of examples that are written into a folder."""
    import recordgen
    from recordgen.core.dataset.index import DTYPE
    from recordgen.core.dataset.manifest import INDEX_FILE
    from recordgen.registry import EXPORTS

    os.environ["XDG_CACHE_HOME"] = str(work / "cache")
    out = work / "out"
    text = "x" * TEXT_BYTES
    table = work / "table.csv"
    table.write_text("ml_use,number,text\n" + f"TRAIN,1,{text}\n" * count)

    def convert() -> None:
        recordgen.convert(str(table), work / "table", task="tabular", lint="none", shard_mb=8)

    def write() -> None:
        rows = ({"number": number, "text": text.encode()} for number in range(count))
        recordgen.write(rows, out, shards=8)

    convert_s, converted_s = _with_index("conversion.work", convert)
    write_s, written_s = _with_index("writing.api", write)
    lengths = np.load(out / INDEX_FILE)
    converted_s += _cpu(lambda: lengths.astype(np.int64).astype(DTYPE).tobytes())
    written_s += _cpu(lambda: _collected(lengths.tolist()))
    exported_s = _cpu(lambda: EXPORTS["index"]().export(str(out), _no_options()))
    for path in out.glob("Split-train/*"):
        shutil.copy(path, work / f"{path.name}.tfrecord")
    pattern = str(work / "*.tfrecord")
    opened_s = [_cpu(lambda: recordgen.source(pattern)) for _ in range(2)]
    return {
        "records": count,
        "bytes_per_record": (out / INDEX_FILE).stat().st_size / count,
        "share_of_convert": converted_s / convert_s,
        "share_of_write": written_s / write_s,
        "export_s_per_million": exported_s / count * 1e6,
        "first_open_s_per_million": opened_s[0] / count * 1e6,
        "second_open_s_per_million": opened_s[1] / count * 1e6,
    }


def _with_index(module: str, work: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds of a run, and those in which it put the index together."""
    from recordgen.core.dataset import index

    spent: list[float] = []

    def write_index(*args: Any) -> Any:
        found: list[Any] = []
        spent.append(_cpu(lambda: found.append(index.write_index(*args))))
        return found[0]

    with mock.patch(f"recordgen.{module}.write_index", write_index):
        return _cpu(work), sum(spent)


def _collected(lengths: list[int]) -> bytes:
    found = array("I")
    for length in lengths:
        found.append(length)
    return found.tobytes()


def _no_options() -> Any:
    from recordgen.exports import ExportOptions

    return ExportOptions()


def _cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as work:
        found = measure(Path(work), args.records)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    for name, figure in found.items():
        print(f"{name:26s} {figure:12,.4g}")


if __name__ == "__main__":
    main()
