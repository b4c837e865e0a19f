"""Renders the result of a comparison as one HTML page; all values from the data are escaped."""

from __future__ import annotations

from functools import partial

from recordgen import storage
from recordgen.comparing import wording
from recordgen.comparing.differences import Differences
from recordgen.report.page import page_template

_ROWS_SHOWN = 50
_LABELS_SHOWN = 30
_OPTIONS_SHOWN = 100


def write_page(differences: Differences, to: str) -> None:
    """Write the page. Args: to: path or URL of the file. Raises: StorageError."""
    storage.write_text(storage.normal(to), to_html(differences))


def to_html(differences: Differences) -> str:
    """Return a self-contained page with all counts and the first rows of each kind.

    It reads the records of shown rows that have no uri.
    """
    old_names, new_names = wording.shown_names(differences, _ROWS_SHOWN)
    splits = dict.fromkeys((*differences.old.splits, *differences.new.splits))
    vocabulary = differences.vocabulary
    template = page_template(
        __package__,
        labels=wording.labels_words,
        value=wording.value_words,
        distance=wording.distance_words,
    )
    return template.render(
        found=differences,
        splits=splits,
        old_names=old_names,
        new_names=new_names,
        leak_words=wording.LEAKS,
        words=partial(wording.change_words, task=differences.new.task),
        kind_word=partial(wording.kind_word, task=differences.new.task),
        vocabulary=[] if vocabulary is None else wording.vocabulary_words(vocabulary),
        rows_shown=_ROWS_SHOWN,
        labels_shown=_LABELS_SHOWN,
        options_shown=_OPTIONS_SHOWN,
    )
