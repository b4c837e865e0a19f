import pytest

from tests.conftest import ROOT, run_python
from tests.preloaded import WITH_TFX

#: The components of the pipeline, in their order.
STEPS = (
    *("AutoMLExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator"),
    *("Trainer", "Evaluator", "Pusher"),
)


@pytest.fixture(scope="session")
def command():
    """Run ``python -m pipelines.<name>`` from the repository, as users do."""

    def run(name, *arguments):
        return run_python("-m", f"pipelines.{name}", *map(str, arguments), cwd=ROOT)

    return run


@pytest.fixture(scope="session")
def fast_command():
    """Run a command as ``command`` does, in a process that has loaded the program already."""

    def run(name, *arguments):
        return WITH_TFX.run("-m", f"pipelines.{name}", *map(str, arguments))

    return run
