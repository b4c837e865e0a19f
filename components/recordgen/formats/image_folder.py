"""A folder of images by label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recordgen.formats import folder_rows
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.listing import Listing
from recordgen.tasks import ImageClassification

if TYPE_CHECKING:
    from recordgen.core.rows.row import Adjustments
    from recordgen.core.task.task import Task
    from recordgen.formats.header import Given
    from recordgen.formats.import_file import ImportFile


class ImageFolder(Format):
    """``<split>/<label>/<file>``, or ``<label>/<file>``."""

    name = "folder"
    how_to_label = "put the images of each class into a folder of its name, or write a CSV"
    heading = "Folders"

    def detect(self, listing: Listing) -> Evidence | None:
        if listing.only:
            return None
        reason = f"{listing.root}: a folder of images"
        return Evidence(reason, ImageClassification.name, is_weak=True)

    def accepts(self, task: type[Task]) -> bool:
        return task.name == ImageClassification.name

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        return folder_rows.read_folder(Listing.around(file), task, adjusted)

    def roles(self, files: Sequence[ImportFile]) -> Sequence[tuple[str, str]]:
        found = (folder_rows.roles_in(Listing.around(file)) for file in files)
        return [item for roles in found for item in roles.items()]
