"""Known names of columns in headers of import files.

Image URI   →  image_uri, a column of paths
label_2     →  label, a column of labels
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recordgen.tables.roles import LABEL_COLUMNS

# Weak names: they mean the split or the path only if the header has no stronger name for it.
_PERHAPS_SPLIT = frozenset({"set", "subset", "partition"})
_PERHAPS_PATH = frozenset({"image_id", "id_code"})

SPLIT_COLUMNS = _PERHAPS_SPLIT | {"split", "ml_use", "mluse", "dataset_split", "data_split"}
#: Names of columns that number splits or folds: 0, 1, 2.
NUMBERED_COLUMNS = SPLIT_COLUMNS | {"fold", "folds", "kfold", "k_fold", "fold_id", "fold_number"}
PATH_COLUMNS = _PERHAPS_PATH | frozenset(
    {"image_uri", "imagegcsuri", "gcs_file_path", "gcs_path", "gcs_uri", "uri", "path", "url"}
    | {"image_url", "image_path", "img_path", "file_path", "filepath", "filename", "file_name"}
    | {"file", "image", "image_name", "image_file", "img", "img_name", "filepaths", "filenames"}
    | {"imageuri", "imageurl", "imagepath", "imagename", "imagefile"}
    | {"video_uri", "videogcsuri", "video_url", "video_path", "video", "video_name", "video_file"}
)
TEXT_COLUMNS = frozenset(
    {"text", "content", "text_content", "textcontent", "sentence", "review", "comment", "document"}
    | {"message", "body", "utterance", "tweet", "text_snippet"}
)
#: Columns of paths to text files.
TEXT_FILE_COLUMNS = frozenset(
    {"text_gcs_uri", "textgcsuri", "text_uri", "text_file", "text_path", "gcs_file_path"}
    | {"gcs_path", "gcs_uri", "uri", "path", "url", "file_path", "filepath", "filename"}
    | {"file_name", "file"}
)

#: Names that occur only in headers, for any task.
KNOWN_COLUMNS = PATH_COLUMNS | SPLIT_COLUMNS | TEXT_COLUMNS | LABEL_COLUMNS | {"sentiment"}

#: The index of a missing column, beyond every field.
NOWHERE = 1 << 30


def column_name(header_field: str) -> str:
    """Return a field of a header in the spelling of known names: ``Image URI`` → ``image_uri``."""
    return re.sub(r"_\d+$", "", header_field.strip().lower().replace(" ", "_"))


def names_without_blanks(names: Iterable[Any]) -> list[str]:
    """Return names of columns as options have them: without blanks, of any kind, around them."""
    return [str(name).strip() for name in names]


def keys_without_blanks(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with :func:`names_without_blanks`, unless two would become the same."""
    found = dict(zip(names_without_blanks(record), record.values(), strict=True))
    return found if len(found) == len(record) else record


def find_columns(header: Sequence[str], names: Iterable[str]) -> list[int]:
    """Return the indices of the columns that have one of several known names."""
    known = frozenset(names)
    return [index for index, name in enumerate(header) if column_name(name) in known]


def find_split(header: Sequence[str]) -> int:
    """Return the index of the split's column, or :data:`NOWHERE`."""
    return _surest(header, SPLIT_COLUMNS, _PERHAPS_SPLIT)


def find_path(header: Sequence[str], names: frozenset[str] = PATH_COLUMNS) -> int:
    """Return the index of the path's column, or :data:`NOWHERE`."""
    return _surest(header, names, _PERHAPS_PATH)


def _surest(header: Sequence[str], names: frozenset[str], perhaps: frozenset[str]) -> int:
    for known in (names - perhaps, names & perhaps):
        if found := find_columns(header, known):
            return found[0]
    return NOWHERE


def same_named(header: Sequence[str], indices: Sequence[int]) -> Sequence[int]:
    """Return the columns with the same name as the first of them: ``label_1``, ``label_2``."""
    names = [column_name(header[index]) for index in indices]
    return [index for index, name in zip(indices, names, strict=True) if name == names[0]]
