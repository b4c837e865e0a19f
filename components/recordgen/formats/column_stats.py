"""Statistics of the columns of a table, collected over all of its rows in blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.dataset.splits import ML_USE_WORDS, PUBLISHED_WORDS
from recordgen.core.facts.kept_rows import fits_one
from recordgen.core.records.numbers import FORMS, NUMBER
from recordgen.formats.column_names import SPLIT_COLUMNS, column_name
from recordgen.formats.csv_records import Item
from recordgen.rejects import Reject
from recordgen.tables.examples import (
    are_markers,
    decimals,
    parse,
    trimmed,
    whole_numbers,
    without_markers,
)

# Least share of ML_USE words in a column with a known name. Rows with misspelt words are rejected:
# if they made the column a feature, a model would see the split.
_SPLIT_SHARE = 0.75

# A column with another name holds the split only beyond doubt: nearly all of its values are ML_USE
# words, and enough of its fields are filled.
_UNNAMED_SPLIT_SHARE = 0.95
_UNNAMED_SPLIT_FILLED = 0.5

# Most lines and characters that are parsed together; the last line may exceed the characters.
_BLOCK_LINES = 20_000
_BLOCK_CHARACTERS = 16 << 20

#: Most different whole numbers that are taken for classes, unless the option says what they are.
MAX_CLASSES = 20

#: From and to this many different whole numbers, the choice may well be wrong.
DOUBTFUL = MAX_CLASSES // 2 + 1, 2 * MAX_CLASSES

# If this share of a text column's values are numbers, the other values look like mistakes.
_NUMBER_SHARE = 0.9

# Float32 represents all whole numbers up to this one.
_MAX_EXACT = float(1 << 24)

# Whole numbers as programs write them, also in columns of fractions.
_WHOLE = r"^[+-]?[0-9]+(\.0*)?$"


@dataclass
class ColumnStats:
    """Statistics of a column's fields, collected over rows in any order.

    Attributes:
        rows: number of fields.
        values: number of fields that are not empty.
        filled: number of fields that contain more than blanks.
        markers: how often fields mean a missing value, by their text.
        numbers: number of fields that are numbers, as programs or people write them.
        is_whole: all filled fields are markers, or whole numbers of 64 bits as programs write them.
        is_decimal: all filled fields are markers, or float32 numbers without needless leading
            zeros.
        has_fraction: one of the numbers has a point or an exponent.
        words: number of ML_USE words.
        published: number of ML_USE words that Vertex AI publishes.
        distinct: the different whole numbers, also written as 1.0; None if there are many, or
            fractions.
        texts: the different values of a column of text; None if there are many.
        misfits: number of fields that are neither numbers nor markers; None if there are clearly
            many.
        misfit: the first of them.
        inexact: the first whole number that float32 cannot represent; else empty.
    """

    rows: int = 0
    values: int = 0
    filled: int = 0
    markers: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    is_whole: bool = True
    is_decimal: bool = True
    has_fraction: bool = False
    words: int = 0
    published: int = 0
    distinct: set[int] | None = field(default_factory=set)
    texts: set[str] | None = field(default_factory=set)
    misfits: int | None = 0
    misfit: str = ""
    inexact: str = ""

    def has_gaps(self, dtype: str) -> bool:
        """Return whether a row has no value, if the column has this dtype."""
        markers = 0 if dtype == "bytes" else self.markers.total()
        return self.filled - markers < self.rows

    @property
    def dtype(self) -> str:
        if self.numbers and self.is_whole:
            return "int64"
        # Whole numbers that do not fit into 64 bits are keys, so they stay text.
        return "float32" if self.is_decimal and self.has_fraction else "bytes"

    def is_split(self, name: str) -> bool:
        """Return whether a column of this name holds the split."""
        if column_name(name) in SPLIT_COLUMNS:
            return self.words > 0 and self.words >= _SPLIT_SHARE * self.values
        is_filled = self.values >= _UNNAMED_SPLIT_FILLED * self.rows
        # A column that contains only "valid", or only "dev", may well be a feature.
        return self.published > 0 and is_filled and self.words >= _UNNAMED_SPLIT_SHARE * self.values

    @property
    def odd(self) -> str:
        """A value that is not a number although nearly all others are; else empty."""
        is_odd = self.misfits and self.misfits <= (1 - _NUMBER_SHARE) * self.values
        return self.misfit if is_odd else ""


def add_records(items: Iterable[Item], stats: Sequence[ColumnStats]) -> None:
    """Add the records that have a field for every column to the columns' statistics."""
    records = (item for item in items if not isinstance(item, Reject))
    whole = (item.without(item.of_other_widths(len(stats))).texts for item in records)
    for lines in in_blocks(whole):
        columns = parse(pa.array(lines, pa.string()), len(stats), range(len(stats)))
        for item, texts in zip(stats, columns, strict=True):
            item.rows += len(texts)
            if texts.null_count < len(texts):
                _add_column(item, texts)


def in_blocks(parts: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Yield lines in blocks of about :data:`_BLOCK_LINES`, which bounds memory."""
    block: list[str] = []
    size = 0
    for lines in parts:
        block += lines
        size += sum(map(len, lines))
        if len(block) >= _BLOCK_LINES or size >= _BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _add_column(item: ColumnStats, texts: Any) -> None:
    item.values += len(texts) - texts.null_count
    bare = trimmed(texts)
    item.filled += len(bare) - bare.null_count
    if item.is_decimal:
        if _are_numbers(item, bare):
            return
        without = without_markers(bare)
        if without.null_count > bare.null_count and _are_numbers(item, without):
            found = pc.value_counts(bare)
            _add_markers(item, found.field("values"), found.field("counts").to_numpy())
            return
    item.is_whole, item.is_decimal, item.distinct = False, False, None
    found = pc.value_counts(texts.drop_null())
    values, counts = trimmed(found.field("values")), found.field("counts").to_numpy()
    _add_markers(item, values, counts)
    if item.texts is not None:
        item.texts.update(values.slice(0, MAX_CLASSES + 1).drop_null().to_pylist())
        item.texts = item.texts if len(item.texts) <= MAX_CLASSES else None
    lower = pc.utf8_lower(values)
    item.words += int(counts[np.asarray(pc.is_in(lower, pa.array(ML_USE_WORDS)))].sum())
    item.published += int(counts[np.asarray(pc.is_in(lower, pa.array(PUBLISHED_WORDS)))].sum())
    _count_misfits(item, values, counts)


def _add_markers(item: ColumnStats, values: Any, counts: Any) -> None:
    """Count the trimmed texts that mean missing numbers; ``counts`` is how often each occurs."""
    for at in np.flatnonzero(np.asarray(are_markers(values))):
        item.markers[values[int(at)].as_py()] += int(counts[at])


def _add_distinct(item: ColumnStats, numbers: Any) -> None:
    if item.distinct is None:
        return
    found = pc.unique(numbers).drop_null().to_pylist()
    item.distinct.update(int(number) for number in found if int(number) == number)
    if len(item.distinct) > DOUBTFUL[1] or any(int(number) != number for number in found):
        item.distinct = None


def _are_numbers(item: ColumnStats, texts: Any) -> bool:
    """Return whether trimmed texts are all numbers, and if so add them to the statistics."""
    if item.is_whole and (whole := whole_numbers(texts)) is not None:
        item.numbers += len(whole) - whole.null_count
        item.inexact = item.inexact or _inexact(whole, texts)
        _add_distinct(item, whole)
        return True
    if (numbers := decimals(texts)) is None:
        return False
    item.numbers += len(numbers) - numbers.null_count
    item.is_whole = False
    _add_distinct(item, numbers)
    item.inexact = item.inexact or _inexact(numbers, texts)
    item.is_decimal = not _any_match(texts, r"^[+-]?0[0-9]")
    item.has_fraction = item.has_fraction or _any_match(texts, "[.eE]")
    return True


def _inexact(numbers: Any, texts: Any) -> str:
    """Return the text of the first whole number that float32 cannot represent, else ""."""
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    if np.abs(values).max(initial=0) <= _MAX_EXACT:
        return ""
    lost = texts.filter(pa.array(values.astype(np.float32) != values))
    whole = lost.filter(pc.match_substring_regex(lost, _WHOLE))
    return str(whole[0].as_py()) if len(whole) else ""


def _any_match(texts: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _count_misfits(item: ColumnStats, values: Any, counts: Any) -> None:
    """Count the trimmed texts that are not numbers; ``counts`` is how often each occurs."""
    if item.misfits is None:
        return
    is_number = fits_one(values, NUMBER)
    is_written = np.any([is_number, *(fits_one(values, form) for form in FORMS.values())], axis=0)
    is_odd = ~is_number & ~np.asarray(are_markers(values)) & np.asarray(values.is_valid())
    if is_odd.any() and not item.misfits:
        item.misfit = str(values[int(np.argmax(is_odd))].as_py())
    item.misfits += int(counts[is_odd].sum())
    item.numbers += int(counts[is_written].sum())
    # The column is clearly text: stop counting, there will be no hint about odd values.
    if item.misfits > _BLOCK_LINES and item.misfits * 2 > item.values:
        item.misfits = None
