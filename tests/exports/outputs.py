"""An output whose files are given by a test."""

from recordgen.exports import Output
from recordgen.exports.report.render import Report


class GivenOutput(Output):
    """A dataset with shards at other paths, and with findings and facts from memory."""

    def __init__(self, dataset, path_of, findings=(), facts=None):
        super().__init__("nowhere", dataset)
        self._path_of = path_of
        self._findings = findings
        self._facts = facts

    def path_of(self, file):
        return self._path_of(file)

    def example_parts(self, columns):
        return [] if self._facts is None else [self._facts]

    def rejects(self, most):
        return ()

    def findings(self, most):
        return self._findings


def rendered(dataset, path_of, findings=(), facts=None):
    """Return the report about such an output."""
    return Report().text(GivenOutput(dataset, path_of, findings, facts))
