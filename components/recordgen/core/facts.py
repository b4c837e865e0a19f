"""The facts about examples that tasks have, and that checks need."""

from __future__ import annotations

#: Format, height, width, channels and colours of one image in each example.
IMAGES = "images"
#: One text in each example.
TEXTS = "texts"
#: Measures of pixels or words: workers examine each payload, which takes time.
MEASURES = "measures"
#: Boxes in the annotation.
BOXES = "boxes"
#: A part of a video in each example.
SEGMENTS = "segments"
#: Rows of a table, a sample of which is kept.
ROWS = "rows"
#: The payloads themselves: the check opens them.
PAYLOADS = "payloads"
