"""`scripts/image` on fake machines with a fake engine; nothing is built.

Each machine is a directory with its own PATH, home and copy of the script. The fake engine records
its calls, and the tests read this record.
"""

from __future__ import annotations

import pytest

from recordgen.version import __version__
from tests.project.machines import FakeMachine

# Programs that scripts/image calls besides the engine.
TOOLS = "bash sh dirname env grep id mkdir rm sed timeout"

# {info}, {base} and {run} are exit codes; with our own settings, `run` succeeds.
ENGINE = """\
#!/bin/sh
echo "{name} $*" >>"{record}"
case "$1 $2" in
"info "*) exit {info} ;;
"image inspect") grep -c " build" "{record}"; exit {base} ;;
"pull "*) exit 1 ;;
"run "*) [ -n "$CONTAINERS_CONF" ] && exit 0; exit {run} ;;
esac
"""


class Machine(FakeMachine):
    """A fake machine with fake engines."""

    def __init__(self, root):
        super().__init__(root, TOOLS, ("scripts/image", "components/recordgen/version.py"))

    def add_engine(self, name, *, info=0, base=0, run=0):
        self.add_program(
            name, ENGINE.format(name=name, record=self.record, info=info, base=base, run=run)
        )

    def image(self, *arguments, **variables):
        return self.run("image", *arguments, **variables)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_client_without_its_engine_counts_as_missing(machine):
    """The next engine is used."""
    machine.add_engine("docker", info=1)
    machine.add_engine("podman")
    assert machine.image().returncode == 0
    assert len(machine.called("podman build")) == 1
    assert machine.called("docker build") == []


def test_an_engine_can_be_asked_for(machine):
    """An unknown one is an error."""
    machine.add_engine("docker")
    machine.add_engine("podman")
    assert "export ENGINE=podman\n" in machine.image("env", ENGINE="podman").stdout
    done = machine.image(ENGINE="buildah")
    assert (done.returncode, "(tried: buildah)" in done.stderr) == (1, True)


# argument, the end of the image's name, what else the call of the engine has
IMAGES = [
    ("--build-arg=ACCELERATOR=gpu", "", " --build-arg=ACCELERATOR=gpu ."),
    ("convert", "-convert", "--build-arg=LEG=no-tfx --build-arg=EXTRAS=gcs,s3,http"),
]


@pytest.mark.parametrize(("argument", "suffix", "words"), IMAGES)
def test_the_name_holds_the_version_and_the_kind_of_the_image(machine, argument, suffix, words):
    """Further arguments reach the engine; the image for conversions has a leg and extras."""
    machine.add_engine("docker")
    assert machine.image(argument).returncode == 0
    (call,) = machine.called("docker build")
    assert f"--target recordgen --tag recordgen:{__version__}{suffix} " in call
    assert words in call


def test_settings_of_pip_that_name_an_index_are_handed_over(machine):
    """As a secret, which no layer keeps."""
    machine.add_engine("docker")
    settings = machine.root / "home/.config/pip/pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("[global]\nindex-url = https://mirror.example/simple\n")
    machine.image()
    assert f"--secret=id=pip,src={settings}" in machine.called("docker build")[0]


def test_a_machine_that_allows_less_gets_settings_of_our_own(machine):
    """The second call and `scripts/image env` use the settings that the first one wrote."""
    machine.add_engine("podman", run=126)
    assert machine.image().returncode == 0
    settings = machine.repository / ".containers/containers.conf"
    assert "default_ulimits = " in settings.read_text()
    assert "--isolation=chroot" in machine.called("podman build")[0]
    assert machine.image("env").stdout.splitlines() == [
        "export ENGINE=podman",
        f"export RECORDGEN_IMAGE=recordgen:{__version__}",
        f"export CONTAINERS_CONF={settings}",
    ]


def test_the_image_of_the_tests_is_built_after_the_image(machine):
    """It begins with the image."""
    machine.add_engine("docker")
    assert machine.image("build-test").returncode == 0
    tags = [call.split("--tag ")[1].split()[0] for call in machine.called("docker build")]
    assert tags == [f"recordgen:{__version__}", f"recordgen:{__version__}-test"]


def test_an_image_that_lost_its_name_is_removed(machine):
    """Each build would leave gigabytes otherwise. The fake engine counts builds as ids."""
    machine.add_engine("podman")
    assert machine.image().returncode == 0
    assert machine.called("podman rmi") == ["podman rmi 0"]


# engine, its exit codes, arguments, what the error names
FAILURES = [
    (None, {}, (), "docker, podman, buildah"),
    (None, {}, (), "apt install podman"),
    ("docker", {"run": 126}, (), "docker"),  # our own settings do not help
    ("podman", {"base": 1}, (), "apt install debootstrap"),
    ("buildah", {}, ("test",), "podman"),  # it builds, and runs no tests
    ("podman", {}, ("biuld",), "'biuld'"),
]


@pytest.mark.parametrize(("engine", "codes", "arguments", "word"), FAILURES)
def test_a_failure_names_what_helps(machine, engine, codes, arguments, word):
    """It ends with 1, and leaves no settings of our own."""
    if engine is not None:
        machine.add_engine(engine, **codes)
    done = machine.image(*arguments)
    assert (done.returncode, word in done.stderr) == (1, True)
    assert not (machine.repository / ".containers").exists()
