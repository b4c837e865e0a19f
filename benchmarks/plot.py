"""Small plots with logarithmic axes, as SVG text: two lines do not ask for a plotting library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 360, 260  # of one panel, pixels
LEFT, RIGHT, TOP, BOTTOM = 60, 36, 34, 44  # its margins

STYLE = """\
text { font: 12px sans-serif; fill: #333 }
.title { font-weight: bold }
.grid { stroke: #ddd }
.line { stroke: #1f6feb; stroke-width: 2; fill: none }
.point { fill: #1f6feb }"""


@dataclass(frozen=True)
class Panel:
    """One plot: its title, and points (x, y), all above 0 and in the order of x."""

    title: str
    points: Sequence[tuple[float, float]]


def log_log_svg(x_title: str, panels: Sequence[Panel]) -> str:
    """Return an SVG image of panels side by side."""
    width = WIDTH * len(panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" height="{HEIGHT}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        lines += [f'<g transform="translate({number * WIDTH})">', *_panel(x_title, panel), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def _panel(x_title: str, panel: Panel) -> Iterator[str]:
    x_decades = _decades([x for x, _ in panel.points])
    y_decades = _decades([y for _, y in panel.points])
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT

    def x_at(x: float) -> float:
        return LEFT + _share(x, x_decades) * (right - LEFT)

    def y_at(y: float) -> float:
        return bottom - _share(y, y_decades) * (bottom - TOP)

    yield f'<text class="title" x="{LEFT}" y="{TOP - 14}">{panel.title}</text>'
    yield f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_title}</text>'
    for power in x_decades:
        x = x_at(10.0**power)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{_label(power)}</text>'
    for power in y_decades:
        y = y_at(10.0**power)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_label(power)}</text>'
    places = [(x_at(x), y_at(y), y) for x, y in panel.points]
    yield f'<path class="line" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y, _ in places)}"/>'
    for x, y, value in places:
        yield f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        yield f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{_short(value)}</text>'


def _decades(values: Sequence[float]) -> range:
    """Return the powers of ten around ``values``, at least two."""
    low = math.floor(math.log10(min(values)))
    return range(low, max(math.ceil(math.log10(max(values))), low + 1) + 1)


def _share(value: float, decades: range) -> float:
    """Return where a value lies between the first and the last power of ten, 0 to 1."""
    return (math.log10(value) - decades[0]) / (decades[-1] - decades[0])


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _label(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
