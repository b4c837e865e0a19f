"""The export ``report``: ``report.html``, also for a dataset that is about to be committed."""

from __future__ import annotations

import os

from recordgen.core.dataset.manifest import REPORT_FILE
from recordgen.exports.export import FileExport
from recordgen.exports.output import Output
from recordgen.exports.report.contents import COLUMNS, contents_of
from recordgen.exports.report.finding_groups import groups_of, places_of
from recordgen.exports.report.page import FINDINGS_SHOWN, REJECTS_SHOWN, to_html
from recordgen.exports.report.sampling import read_shown


class Report(FileExport):
    """``report.html``, which every conversion writes."""

    file = REPORT_FILE

    def text(self, output: Output) -> str:
        dataset, facts = output.dataset, output.examples(COLUMNS)
        findings = output.findings(FINDINGS_SHOWN)
        places = places_of(findings, facts)
        records = read_shown(dataset, output.path_of, list(dict.fromkeys(places.values())))
        return to_html(
            dataset,
            output.rejects(REJECTS_SHOWN),
            examples=records.examples,
            groups=groups_of(findings, dataset, places, records.at),
            contents=contents_of(dataset, facts, records.sample),
        )


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
