"""What reads the rows of an import file, as tasks declare it in ``readers``: one for each format.

Every reader takes the path, the task, what gets notes of changed rows, and what options say about
columns. It gives a Row for each usable line and a Reject for each other one, and raises SourceError
for a file that is missing or no such file, StorageError where storage failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from recordgen.rows import Adjustments, Reject, Row
from recordgen.sources import (
    automl_csv,
    automl_jsonl,
    declared_rows,
    image_folder,
    iob,
    text_csv,
    video_lists,
)
from recordgen.sources.header import Given
from recordgen.sources.lines import open_lines
from recordgen.tasks.task import Task

#: (path, task, adjusted, given) → rows
ReadRows = Callable[[str, Task, Adjustments, Given], Iterator[Row | Reject]]


def _in_lines(parse: Callable[..., Iterator[Row | Reject]]) -> ReadRows:
    """Return what reads a file whose lines ``parse`` takes."""

    def read(path: str, task: Task, adjusted: Adjustments, given: Given) -> Iterator[Row | Reject]:
        with open_lines(path) as lines:
            yield from parse(lines, source=path, task=task, adjusted=adjusted, given=given)

    return read


#: CSV: ``[ML_USE],PATH`` and the fields that the task's ``from_fields`` takes.
read_paths = _in_lines(automl_csv.parse_lines)
#: CSV: ``[ML_USE],TEXT`` and the same; the text may also be the path of its file.
read_texts = _in_lines(text_csv.parse_lines)
#: CSV: the columns of a declared schema.
read_declared = _in_lines(declared_rows.parse_lines)
#: CSV: segments of videos.
read_videos = _in_lines(video_lists.parse_lines)
#: JSON Lines: objects that the task's ``from_record`` takes.
read_json = _in_lines(automl_jsonl.parse_lines)


def read_folder(
    path: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[Row | Reject]:
    """Read a folder of images by label."""
    del task, adjusted, given
    return image_folder.read_folder(path)


def read_sentences(
    path: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[Row | Reject]:
    """Read sentences with a file of tags beside them."""
    del given
    return iob.read_sentences(path, task, adjusted)
