"""The cost of an input grows with its size: twice the input, at most 2.5 times the work.

Work is counted, not timed: calls of functions, the peak of allocated memory, and bytes of output.
"""

from __future__ import annotations

import json
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import pytest

import recordgen
from recordgen.cli import main
from recordgen.core.task.annotation import bad_annotation
from recordgen.errors import DataError, NotUnderstoodError, PayloadError, RecordgenError
from recordgen.formats.coco import Coco
from recordgen.formats.listing import Listing
from recordgen.messages import MESSAGE_CHARACTERS, listed
from tests.conftest import peak_of, write_noise
from tests.formats.sources import write_files
from tests.formats.test_coco import box, coco

MOST = 2.5  # times the work for twice the input
ENOUGH = 300  # calls of a function; fewer may be chance


class Work(NamedTuple):
    """What an input costs.

    Attributes:
        calls: calls of functions by name, those written in C included.
        peak: the most memory that Python allocated at once, in bytes.
        written: bytes of all files in the output.
    """

    calls: Mapping[str, int]
    peak: int
    written: int

    def growth_to(self, more):
        """Return how many times as much ``more`` costs, in all and by function."""
        found = {
            "peak": more.peak / self.peak,
            "written": more.written / self.written,
            "calls": sum(more.calls.values()) / sum(self.calls.values()),
        }
        for name, count in more.calls.items():
            if count > ENOUGH:
                found[name] = count / max(1, self.calls.get(name, 0))
        return found


def work_of(call, output):
    """Return what a call costs that writes to ``output``."""
    calls = Counter()

    def count(frame, event, function):
        if event == "call":
            calls[f"{frame.f_code.co_filename}:{frame.f_code.co_name}"] += 1
        elif event == "c_call":
            calls[function.__qualname__] += 1

    tracemalloc.start()
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    written = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    return Work(calls, peak, written)


def operations_of(call):
    """Return how many operations of Python a call takes: loops have no calls."""
    found, before = Counter(), sys.gettrace()

    def trace(frame, event, _):
        frame.f_trace_opcodes = True
        found[event] += 1
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return found["opcode"]


def _labels_of_one_image(n):
    return "".join(f"TRAIN,a.png,label {at}\n" for at in range(n)) + "TRAIN,b.png,x\n"


def _splits_of_one_image(n):
    rows = (f"{('TRAIN', 'TEST')[at % 2]},a.png,cat\n" for at in range(n))
    return "".join(rows) + "TRAIN,b.png,x\n"


def _boxes_of_one_image(n):
    at = [f"{number / n / 2:.6f}" for number in range(n)]
    return "".join(f"TRAIN,a.png,class {x},{x},{x},,,0.9,0.9,,\n" for x in at)


def _bad_boxes_of_one_line(n):
    box = {"displayName": "cat", "xMin": 0.5, "yMin": -1.0, "xMax": 0.6, "yMax": 0.2}
    boxes = [{**box, "xMax": 0.6 + at / n / 4} for at in range(n)]
    return json.dumps({"imageGcsUri": "a.png", "boundingBoxAnnotations": boxes})


def _segments_of_one_video(n):
    return "".join(f"TRAIN,a.mp4,jump,{at},{at + 1}\n" for at in range(n))


def _readings_of_one_text(n):
    return "".join(f"TRAIN,one text,label {at % 9}\n" for at in range(n)) + "TRAIN,other,x\n"


def _wide_table(n):
    columns = [["TRAIN", *(f"{row * at % 7}.5" for at in range(n))] for row in range(12)]
    rows = [["split", *(f"column {at}" for at in range(n))], *columns]
    return "".join(",".join(row) + "\n" for row in rows)


def _long_urls(n):
    return f"TRAIN,a.png,{'a://b:c@?d&' * n}\nTRAIN,b.png,x\n"


# name; options; n; n → the import file
INPUTS = [
    ("labels.csv", {"task": "image_classification"}, 80, _labels_of_one_image),
    ("splits.csv", {"task": "image_classification"}, 80, _splits_of_one_image),
    ("several.csv", {"task": "image_multi_label"}, 80, _labels_of_one_image),
    ("boxes.csv", {"task": "object_detection"}, 80, _boxes_of_one_image),
    ("boxes.jsonl", {"task": "object_detection"}, 80, _bad_boxes_of_one_line),
    ("videos.csv", {"task": "video_classification"}, 80, _segments_of_one_video),
    ("wide.csv", {"task": "tabular"}, 80, _wide_table),
    ("urls.csv", {"task": "image_classification", "labels": "text"}, 300, _long_urls),
    ("texts.csv", {"task": "text_classification"}, 80, _readings_of_one_text),
]


def too_much(folder, call_of, sizes):
    """Return what grows too much from the second to the third size, and how many times.

    The first one loads what is loaded once; ``call_of`` gets a size and the output.
    """
    write_noise(folder, "ab", 8, 8)
    found = []
    for size in sizes:
        output = folder / f"out{size}"
        found.append(work_of(call_of(size, output), output))
    grown = found[1].growth_to(found[2])
    return {name: times for name, times in grown.items() if times > MOST}


@pytest.mark.parametrize(("name", "options", "n", "lines"), INPUTS, ids=[it[0] for it in INPUTS])
def test_twice_the_input_takes_at_most_2_5_times_the_work(name, options, n, lines, tmp_path):
    """Work is calls of functions, memory at its peak, and written bytes; never seconds."""

    def convert(size, output):
        (tmp_path / name).write_text(lines(size))
        more = {"max_reject_fraction": 1, **options}
        return partial(recordgen.convert, tmp_path / name, output, **more)

    assert too_much(tmp_path, convert, (1, n, 2 * n)) == {}


# Commands that read a finished dataset, for boxes and for columns.
DOORS = [
    ("object_detection", _boxes_of_one_image, ["report"]),
    ("object_detection", _boxes_of_one_image, ["convert", "--append", "--task=object_detection"]),
    ("tabular", _wide_table, ["report"]),
]


@pytest.mark.parametrize(("task", "lines", "command"), DOORS, ids=range(len(DOORS)))
def test_twice_the_dataset_takes_at_most_2_5_times_the_work(task, lines, command, tmp_path):
    """For each command that reads one."""

    def run(size, output):
        (tmp_path / "rows.csv").write_text(lines(size))
        recordgen.convert(tmp_path / "rows.csv", output, task=task)
        name, *more = command
        places = [tmp_path / "rows.csv", output] if name == "convert" else [output]
        return partial(main, [name, *map(str, places), *more])

    assert too_much(tmp_path, run, (2, 40, 80)) == {}


def test_advice_considers_some_of_many_keys(tmp_path):
    """Objects of a JSONL file, each of which has a key of its own, are no table of their square."""
    lines = (json.dumps({f"key {number}": number}) for number in range(4_000))
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    check = partial(recordgen.check, str(tmp_path / "a.jsonl"), progress=None)
    _, peak = peak_of(partial(pytest.raises, NotUnderstoodError, check))
    assert peak < 60_000_000


def test_twice_the_categories_take_at_most_two_and_a_half_times_the_operations(tmp_path):
    """Each was once compared with all others, so that 200,000 took hours."""
    found = []
    for size in (150, 300):
        names = [{"id": at, "name": f"{at}", "supercategory": f"{at}"} for at in range(size)]
        image = {"id": 1, "file_name": "a.png"}
        document = coco(image, boxes=[box(1, 1, 0, 0, 4, 4)], categories=names)
        write_files(tmp_path / f"{size}", {"a.json": document})
        found.append(operations_of(partial(Coco().detect, Listing.of(f"{tmp_path}/{size}/"))))
    assert found[1] < MOST * found[0]


def test_messages_are_bounded():
    """Whatever the data contain."""
    assert listed([1, 2]) == "1, 2"
    assert listed(range(1_000)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … (1,000 in all)"
    assert len(listed(["x" * 100_000])) == 80
    for error in (RecordgenError, DataError):
        assert len(str(error("x" * 100_000))) == 5 * MESSAGE_CHARACTERS
    assert len(PayloadError("corrupt", "x" * 100_000).message) == MESSAGE_CHARACTERS
    assert len(bad_annotation("x" * 100_000).message) == MESSAGE_CHARACTERS
