"""The export ``report``: ``report.html``, also for a dataset that is about to be committed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.manifest import REPORT_FILE
from recordgen.exports.export import FileExport
from recordgen.exports.output import Output
from recordgen.exports.report.contents import COLUMNS, contents_of
from recordgen.exports.report.finding_groups import groups_of, places_of, rows_of
from recordgen.exports.report.page import FINDINGS_SHOWN, REJECTS_SHOWN, to_html
from recordgen.exports.report.sampling import read_shown

# Examples that charts show.
_CHARTED = 1_000_000


class Report(FileExport):
    """``report.html``, which every conversion writes."""

    file = REPORT_FILE

    def text(self, output: Output) -> str:
        dataset, findings = output.dataset, output.findings(FINDINGS_SHOWN)
        facts, near = _some_examples(output, findings)
        places = places_of(findings, near)
        records = read_shown(dataset, output.path_of, list(dict.fromkeys(places.values())))
        return to_html(
            dataset,
            output.rejects(REJECTS_SHOWN),
            examples=records.examples,
            groups=groups_of(findings, dataset, places, records.at),
            contents=contents_of(dataset, facts, records.sample),
        )


def _some_examples(output: Output, findings: Sequence[LintFinding]) -> tuple[Any, Any]:
    """Return the examples of the charts, and those of the findings; None if they are unknown.

    Memory does not grow with their number: of very many, charts show each second one, or fewer.
    """
    step, start = max(1, -(-output.dataset.examples // _CHARTED)), 0
    charted, near = [], []
    for part in output.example_parts(COLUMNS):
        charted.append(part.take(pa.array(np.arange(-start % step, len(part), step))))
        near.append(rows_of(findings, part))
        start += len(part)
        del part  # it may be large: the next one follows
    if not charted:
        return None, None
    return pa.concat_tables(charted).unify_dictionaries(), pa.concat_tables(near)


def render_report(output: str | os.PathLike[str]) -> str:
    """Return the page for a finished dataset, as ``report.html`` holds it.

    A few records of each split are read for the pictures; if this fails, a warning is logged and
    the page has no pictures.

    Args:
        output: an output of a conversion or of :func:`recordgen.write`, or a TFX Examples uri.

    Raises:
        SourceError: there is no finished dataset, or its files are damaged.
        StorageError: storage failed.
    """
    return Report().text(Output.open(output))
