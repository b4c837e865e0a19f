"""Images are read as the engine reads them."""

from __future__ import annotations

from recordgen.reading.images import ImageReading
from recordgen.reading.kinds import Kind
from recordgen.reading.options import ReadOptions
from recordgen.reading.plan import plan_reading

IMAGES = Kind(options=ReadOptions, plan=plan_reading, reading=ImageReading)
