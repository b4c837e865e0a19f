"""Exports: each describes or copies a finished dataset for people or for another tool.

    report.html       a page for people                        :mod:`recordgen.exports.report`
    croissant.json    Croissant, which dataset catalogues read :mod:`recordgen.exports.descriptions`
    schema.pbtxt      TensorFlow Data Validation               :mod:`recordgen.exports.descriptions`
    features.json     TensorFlow Datasets                      :mod:`recordgen.exports.tfds`
    a copy            other trainers                           :mod:`recordgen.exports.copying`

An export is a subclass of :class:`Export`. Other packages install theirs with an entry point, whose
name is the name in ``recordgen export NAME``::

    [project.entry-points."recordgen.exports"]
    label_counts = "label_counts:LabelCounts"

The same dataset gives the same bytes. No export needs the tool that reads it, except arrayrecord.
``recordgen diff`` and ``recordgen inspect`` (:mod:`recordgen.exports.diff`,
:mod:`recordgen.exports.inspection`) describe finished datasets, too, but only to whom asks.
"""

from __future__ import annotations

from recordgen.exports.export import Export as Export
from recordgen.exports.export import Exported as Exported
from recordgen.exports.export import ExportOptions as ExportOptions
from recordgen.exports.export import FileExport as FileExport
from recordgen.exports.export import Output as Output
