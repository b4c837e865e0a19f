"""What the demos learn from: what writes a sample of each task that has a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipelines import digits, reviews
from pipelines.clips import write_clips
from pipelines.meters import write_meters
from pipelines.travels import write_travels
from pipelines.wines import write_wines
from recordgen.tasks import Declared, Tabular, TextEntities, VideoClassification

#: By task: takes the folder and how many examples, None for all of the demo's; returns what to
#: import.
WRITERS: Mapping[str, Callable[[str, int | None], str]] = {
    **digits.WRITERS,
    TextEntities.name: write_travels,
    **reviews.WRITERS,
    Tabular.name: write_wines,
    VideoClassification.name: write_clips,
    Declared.name: write_meters,
}
