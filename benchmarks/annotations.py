"""What annotations of boxes cost as JSON text and as typed columns of Arrow.

    python -m benchmarks.annotations --rows 200000

Each row has one to five boxes. CPU time of one thread, for the stages that an annotation passes:
``make`` the column from the reader's boxes, ``carry`` it through a stream of Arrow as the staging
folder holds it, count the ``labels``, and give each row's ``boxes`` to what makes its example.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recordgen.tasks.object_detection.annotation import Box, Boxes

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_TYPE = pa.list_(
    pa.struct([("label", pa.string()), *((corner, pa.float64()) for corner in _CORNERS)])
)


def rows_of(count: int) -> list[Sequence[Box]]:
    """Return the boxes of ``count`` images."""
    pick = random.Random(0)
    return [
        sorted(
            Box(f"class {pick.randrange(80)}", *sorted(pick.random() for _ in range(4))).stored
            for _ in range(pick.randint(1, 5))
        )
        for _ in range(count)
    ]


def as_text(rows: Sequence[Sequence[Box]]) -> Any:
    """Return the annotations as JSON."""
    return pa.array([Boxes(tuple(boxes)).to_json() for boxes in rows], pa.string())


def as_columns(rows: Sequence[Sequence[Box]]) -> Any:
    """Return the annotations as lists of a struct."""
    offsets, boxes = [0], [box for row in rows for box in row]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    columns = zip(*boxes, strict=True)
    arrays = [
        pa.array(column, kind.type) for column, kind in zip(columns, _TYPE.value_type, strict=True)
    ]
    structs = pa.StructArray.from_arrays(arrays, fields=list(_TYPE.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)


def carried(column: Any) -> Any:
    """Write a column as a stream of Arrow, and read it."""
    sink = pa.BufferOutputStream()
    table = pa.table({"annotation": column})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()["annotation"].combine_chunks()


def labels_of_text(column: Any) -> Counter[str]:
    """Count the images of each label."""
    every = column.to_pylist()
    return Counter(label for text in every for label in {b.label for b in boxes_of(text)})


def labels_of_columns(column: Any) -> Counter[str]:
    """Count the images of each label."""
    names = column.values.field("label").dictionary_encode()
    pairs = pa.table({"row": pc.list_parent_indices(column), "label": names.indices})
    found = pairs.group_by(["row", "label"]).aggregate([])["label"].value_counts().to_pylist()
    words = names.dictionary.to_pylist()
    return Counter({words[item["values"]]: item["counts"] for item in found})


def boxes_of(text: str) -> Sequence[Box]:
    """Return the boxes of an annotation."""
    return Boxes.from_json(text).boxes


def boxes_of_text(column: Any) -> list[Sequence[Box]]:
    """Return the boxes of each row."""
    return [boxes_of(text) for text in column.to_pylist()]


def boxes_of_columns(column: Any) -> list[Sequence[Box]]:
    """Return the boxes of each row."""
    values, ends = column.values, column.offsets.to_pylist()
    parts = [values.field(at).to_pylist() for at in range(values.type.num_fields)]
    boxes = list(map(Box._make, zip(*parts, strict=True)))
    return [tuple(boxes[start:end]) for start, end in pairwise(ends)]


_WAYS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "JSON text": (as_text, carried, labels_of_text, boxes_of_text),
    "list of struct": (as_columns, carried, labels_of_columns, boxes_of_columns),
}


def main() -> None:
    """Measure both ways in turn; print the least CPU time of each stage, in µs per row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    rows = rows_of(args.rows)
    least = {way: [float("inf")] * 4 for way in _WAYS}
    sizes, results = dict[str, int](), dict[str, Any]()
    for _ in range(args.turns):
        for way, (make, carry, labels, boxes) in _WAYS.items():
            times = [time.process_time()]
            column = make(rows)
            times.append(time.process_time())
            column = carry(column)
            times.append(time.process_time())
            counts = labels(column)
            times.append(time.process_time())
            found = boxes(column)
            times.append(time.process_time())
            taken = [end - start for start, end in pairwise(times)]
            least[way] = list(map(min, least[way], taken))
            sizes[way], results[way] = column.nbytes, (counts, found)
    one, other = results.values()
    if one != other:
        raise SystemExit("the two ways differ")
    for way, seconds in least.items():
        each = "  ".join(
            f"{stage} {1e6 * taken / len(rows):5.2f}"
            for stage, taken in zip(("make", "carry", "labels", "boxes"), seconds, strict=True)
        )
        print(f"{way:15}  {each}  µs per row  {sizes[way] / len(rows):4.0f} bytes per row")


if __name__ == "__main__":
    main()
