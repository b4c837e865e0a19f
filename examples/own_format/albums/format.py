"""Albums: pages of images under the label and the split that they share.

album: zero, one          every class, in the order of its number
page: one, train          the label and the split of the images below
digits/1.png
digits/11.png
"""

from __future__ import annotations

from recordgen.errors import SourceError
from recordgen.formats.format import Evidence
from recordgen.formats.pictures import PictureFormat, Problem, image_or_problem
from recordgen.subjects.picture import Picture


class Album(PictureFormat):
    """A ``.album`` file, alone or somewhere below a folder."""

    name = "album"  # as the entry point
    tasks = ("image_classification",)
    has_lines = True

    def detect(self, listing):
        found = listing.candidates(".album")
        if not found:
            return None
        classes = _classes(listing, found[0])
        reason = f"{found[0]} declares {len(classes)} classes"
        return Evidence(reason, self.tasks[0], found, classes)

    def read(self, listing, document):
        classes = _classes(listing, document)
        label = split = None
        with listing.open(document) as file:
            for line, raw in enumerate(file, start=1):
                text = raw.decode("utf-8", "replace").strip()
                if line == 1 or not text:
                    continue
                if text.startswith("page:"):
                    label, _, split = map(str.strip, text.removeprefix("page:").partition(","))
                elif label not in classes:
                    yield Problem(line, f"the class {label!r} is not declared in line 1", text)
                elif isinstance(image := image_or_problem(listing, text, line=line), Problem):
                    yield image
                else:
                    yield Picture(line, image, split or None, labels=[label])


def _classes(listing, document):
    """Return the declared classes. Raises: SourceError: the first line declares none."""
    first = listing.head(document).partition(b"\n")[0].decode("utf-8", "replace")
    word, _, names = first.partition(":")
    if word != "album" or not names.strip():
        raise SourceError(f"{document}:1: expected album: CLASS, CLASS, … (got {first!r:.80})")
    return tuple(name.strip() for name in names.split(","))
