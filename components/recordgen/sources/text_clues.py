"""What the lines of a CSV file of texts say of their task, and that they can be meant so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from recordgen.errors import SourceError
from recordgen.rows import Row
from recordgen.sources import text_csv
from recordgen.sources.automl_csv import column_name
from recordgen.sources.clue import Clue
from recordgen.tasks import TextClassification, TextMultiLabel, TextSentiment
from recordgen.tasks.text_sentiment import MAX_SENTIMENT
from recordgen.tasks.text_task import TextSaid

_SENTIMENT_COLUMN = "sentiment"

# Of texts under a header, so many names of files are no chance.
_SHARE_OF_FILES = 0.5

# Names of classes have fewer words, and of several words do not end as sentences do.
_WORDS_OF_A_SENTENCE = 6
_ENDS = (".", "!", "?", "\u2026")
_CLOSING = " \"')\u201d\u2019"
_SHARE_OF_PARTS = 0.5


class _TextFields(TextMultiLabel):
    """Keeps all fields behind the text as they are."""

    def from_fields(self, fields: Sequence[str], adjusted: Counter[str]) -> str | None:
        return TextSaid(None, list(fields) or None).encode()


def of_texts(lines: Sequence[bytes], path: str, header: Sequence[str]) -> Iterator[Clue]:
    """Yield the clues of lines of texts.

    Args:
        lines: the first ones of a file.
        path: that file.
        header: the names of its columns, or none.

    Raises:
        SourceError: a column of texts holds names of images; or labels are parts of texts.
    """
    rows = [
        (row, TextSaid.decode(row.annotation))
        for row in text_csv.parse_lines(lines, source=path, task=_TextFields(), adjusted=Counter())
        if isinstance(row, Row)
    ]
    if header:
        _check_texts(rows, header)
    else:
        _check_commas(rows, lines)
    labels = [label for _, (_, said) in rows for label in said or [] if label]
    # Classes may be whole numbers, too, if a header calls them so.
    named = any(column_name(name) == _SENTIMENT_COLUMN for name in header)
    may_be = (named or not header) and bool(labels) and all(map(_is_sentiment, labels))
    # AutoML has it so; of classes that are called by numbers, the user is told what to say.
    note = "" if named else f"; --task {TextClassification.name} if such numbers are classes"
    for row, (_, said) in rows:
        where, count = f"{path}:{row.line}", sum(map(bool, said or []))
        if count > 1:
            yield Clue(TextMultiLabel.name, f"{where} has a text and {count} labels")
        elif may_be and count:
            yield Clue(
                TextSentiment.name, f"{where} has a text and its sentiment{note}", is_sure=named
            )
        else:
            yield Clue(TextClassification.name, f"{where} has a text", tells=bool(count))


def _check_texts(rows: Sequence[tuple[Row, TextSaid]], header: Sequence[str]) -> None:
    """Check that a column of texts does not hold names of images. Raises: SourceError."""
    files = [row for row, (text, _) in rows if text_csv.is_media(row.uri if text is None else text)]
    if files and len(files) >= _SHARE_OF_FILES * len(rows):
        raise SourceError(
            f"{files[0].source}:{files[0].line}: the header names a column of texts "
            f"({','.join(header)}), and it holds the names of images or videos; name it image_uri, "
            f"or video_uri"
        )


def _check_commas(rows: Sequence[tuple[Row, TextSaid]], lines: Sequence[bytes]) -> None:
    """Check that labels are no parts of texts whose commas nobody quoted. Raises: SourceError."""
    behind: dict[str, set[str]] = {}
    for row, (_, said) in rows:
        for label in said or []:
            behind.setdefault(label, set()).add(row.uri)
    # A class is behind several texts, a part of a text behind its own.
    once = {label for label, texts in behind.items() if len(texts) == 1}
    quoted = sum("," in (text or "") for _, (text, _) in rows)
    for least in (1, 2):  # of all lines with a label, and of those with several
        labelled = [
            (row, text, said)
            for row, (text, said) in rows
            if said is not None and sum(map(bool, said)) >= least
        ]
        parts = [
            (row, part)
            for row, text, said in labelled
            if "," not in (text or "")
            and (part := _part_of_text(filter(once.__contains__, said)))
            and f'"{part}"'.encode() not in lines[row.line - 1]
        ]
        if len(parts) <= quoted:  # who quotes some texts quotes all that need it
            continue
        if parts and len(parts) >= _SHARE_OF_PARTS * len(labelled):
            row, part = parts[0]
            raise SourceError(
                f"{row.source}:{row.line}: the label {part!r:.60} reads as part of a text; quote "
                f"texts that hold commas, and write labels behind them; if it is a label, a header "
                f"such as split,text,label says so"
            )


def _part_of_text(labels: Iterable[str]) -> str:
    """Return the first label that is a sentence, or its end; "" if there is none."""
    return next(filter(_is_sentence, labels), "")


def _is_sentence(label: str) -> bool:
    words = len(label.split())
    ends = label.rstrip(_CLOSING).endswith(_ENDS)
    return words >= _WORDS_OF_A_SENTENCE or (words > 1 and ends)


def _is_sentiment(label: str) -> bool:
    return label.isdecimal() and label.isascii() and int(label) <= MAX_SENTIMENT
