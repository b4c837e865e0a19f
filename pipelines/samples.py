"""Which sample is for which task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipelines import digits, reviews

#: What writes a task's sample: it takes a folder and the number of examples, and returns the path
#: of the import file.
WRITERS: Mapping[str, Callable[[str, int | None], str]] = {**digits.WRITERS, **reviews.WRITERS}
