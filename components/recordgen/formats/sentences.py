"""Sentences and their IOB tags, in two files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordgen.formats import iob
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.tasks import TextEntities

if TYPE_CHECKING:
    from recordgen.core.rows.row import Adjustments
    from recordgen.core.task.task import Task
    from recordgen.formats.header import Given
    from recordgen.formats.import_file import ImportFile
    from recordgen.formats.listing import Listing


class Sentences(Format):
    """``sentences.txt`` beside ``labels.txt``, or a folder with such files."""

    name = "iob"
    is_decoded = True
    gives = "entities in texts"
    expects = (
        f"a file of sentences; name it …{iob.SENTENCES}….txt, and the file of tags next to it "
        f"…{iob.LABELS}….txt"
    )

    def detect(self, listing: Listing) -> Evidence | None:
        is_mine = iob.names_sentences(listing.only) if listing.only else self._are_below(listing)
        if not is_mine:
            return None
        where = f"{listing.root.removeprefix('./')}{listing.only}"
        return Evidence(f"{where}: sentences and their tags", TextEntities.name, is_weak=True)

    def accepts(self, task: type[Task]) -> bool:
        return task.name == TextEntities.name

    def _are_below(self, listing: Listing) -> bool:
        return not listing.images and any(map(iob.names_sentences, listing.others))

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        return iob.read_sentences(file, adjusted, given)
