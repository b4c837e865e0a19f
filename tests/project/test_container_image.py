"""The image that `make image` builds, run by the engine of this machine."""

import dataclasses
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import recordgen
from recordgen.cli import build_parser
from recordgen.version import __version__
from tests.containers import ROOT

pytestmark = pytest.mark.container

NOBODY = "54321:54321"  # not in /etc/passwd


def inspected(engine, image=""):
    """Return the engine's description of the image."""
    return json.loads(engine.call("image", "inspect", image or engine.image).stdout)[0]


def output(engine, *args, command, **more):
    """Run a command that must succeed, and return its output."""
    done = engine.run(*args, command=command, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- contents ------------------------------------------------------------------------------------


def test_labels_say_what_it_is_and_not_when_it_was_built(engine):
    """So that two builds are the same."""
    labels = inspected(engine)["Config"]["Labels"]
    ours = {name: text for name, text in labels.items() if name.startswith("org.opencontainers.")}
    assert ours.pop("org.opencontainers.image.revision") is not None
    assert ours == {
        "org.opencontainers.image.title": "Recordgen",
        "org.opencontainers.image.description": recordgen.__doc__.removesuffix("."),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": __version__,
    }


def test_it_is_no_larger_than_its_page_says(engine):
    """3.4 GB."""
    assert inspected(engine)["Size"] < 3.4e9


def test_nothing_that_only_a_build_needs_is_inside(engine):
    """Neither programs nor files that they left."""
    programs = "cc gcc g++ c++ make git uv pytest mypy ruff"
    look = f"for program in sh {programs}; do command -v $program || true; done"
    assert output(engine, command=["sh", "-c", look]) == "/usr/bin/sh\n"
    left = output(
        engine,
        "--user=0",
        command=[
            *("find", "/opt/recordgen", "/root", "/tmp", "/var/cache/apt", "/var/lib/apt/lists"),
            *("(", "-name", "*.tmp", "-o", "-name", "*.deb", "-o", "-name", "*.bin"),
            *("-o", "-name", "pip.conf", "-o", "-name", ".cache", "-o", "-name", ".setup", ")"),
            *("-not", "-path", "*/site-packages/*"),
        ],
    )
    assert left == ""


def test_certificates_and_settings_of_the_build_stay_behind(engine):
    """Also those that the building machine adds."""
    machines = Path("/etc/ssl/certs/ca-certificates.crt").read_bytes()
    look = "for place in /etc/pip.conf /run/secrets; do [ ! -e $place ] || exit 1; done"
    mozilla = "/usr/share/ca-certificates/mozilla/*"
    read = f"cat /etc/ssl/certs/ca-certificates.crt; echo ===; cat {mozilla}"
    both = output(engine, command=["sh", "-c", f"{look}; {read}"]).encode()
    inside, debian = both.split(b"===\n")
    certificate = re.compile(b"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)
    own = set(certificate.findall(machines)) - set(certificate.findall(debian))
    assert not own & set(certificate.findall(inside))


def test_bytecode_is_there_and_valid(engine):
    """Nothing is compiled at import, because users could not keep the result."""
    code = (
        "import importlib._bootstrap_external as loader\n"
        "source = loader.SourceLoader.source_to_code\n"
        "def noted(self, data, path, **more):\n"
        "    print(path)\n"
        "    return source(self, data, path, **more)\n"
        "loader.SourceLoader.source_to_code = noted\n"
        "import recordgen.conversion.api, recordgen.reading, tensorflow, apache_beam\n"
    )
    assert output(engine, command=["python", "-W", "ignore", "-c", code]) == ""


# --- commands ------------------------------------------------------------------------------------

# a container's arguments, and the command that it must run
PROGRAMS = [
    (["--version"], f"recordgen {__version__}\n"),
    (["recordgen", "--version"], f"recordgen {__version__}\n"),
    (["sh", "-c", "echo from $0", "sh"], "from sh\n"),
    (["/bin/echo", "hello"], "hello\n"),
    (["python", "-c", "print(6 * 7)"], "42\n"),
    (["id", "-u"], "1000\n"),
]


def test_it_runs_a_program_or_else_recordgen(engine):
    """In one container: starting one for each takes longer than everything else."""
    [entrypoint] = inspected(engine)["Config"]["Entrypoint"]
    script = "\n".join(shlex.join([entrypoint, *command]) for command, _ in PROGRAMS)
    printed = output(engine, command=["sh", "-c", script])
    assert printed == "".join(printed for _, printed in PROGRAMS)


def test_alone_it_shows_its_help(engine):
    """A call without arguments."""
    assert output(engine, command=[]).startswith("usage: recordgen ")


def test_every_subcommand_wins_over_a_program_of_its_name(engine, tmp_path):
    """Whatever PATH has."""
    actions = build_parser()._actions
    (subcommands,) = (each.choices for each in actions if isinstance(each.choices, dict))
    for name in subcommands:
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho the other one\n")
        program.chmod(0o755)
    path = f"/programs:{inspected(engine)['Config']['Env'][0].partition('=')[2]}"
    [entrypoint] = inspected(engine)["Config"]["Entrypoint"]
    loop = f'for name; do {entrypoint} "$name" --help | head -n 1; done'
    how = {"mounts": {tmp_path: "/programs"}, "env": {"PATH": path}}
    shown = output(engine, command=["sh", "-c", loop, "sh", *subcommands], **how)
    for name, line in zip(subcommands, shown.splitlines(), strict=True):
        assert line.startswith(f"usage: recordgen {name}"), name


def test_a_wrong_subcommand_is_told_by_recordgen(engine):
    """The shell does not look for it."""
    done = engine.run(command=["covnert", "a", "b"])
    assert done.returncode == 2
    assert "invalid choice: 'covnert'" in done.stderr


# --- users and file systems ----------------------------------------------------------------------


@pytest.mark.parametrize("user", [None, NOBODY, "0:0"], ids=["own", "nobody", "root"])
def test_any_user_converts_on_a_read_only_system(user, engine, tmp_path, make_images, make_csv):
    """The files belong to this user."""
    make_csv(f"images/{path.name},{number % 2}" for number, path in enumerate(make_images(8)))
    tmp_path.chmod(0o777)
    command = ["convert", "labels.csv", "out", "--quiet"]
    how = {"command": command, "mounts": {tmp_path: "/data"}, "user": user}
    output(engine, "--read-only", "--tmpfs=/tmp", "--workdir=/data", **how)
    assert recordgen.read_dataset(str(tmp_path / "out")).examples == 8
    owner = {None: 1000, NOBODY: 54321, "0:0": 0}[user]
    assert (tmp_path / "out/dataset.json").stat().st_uid == owner or os.getuid() != 0


# --- the image for conversions -------------------------------------------------------------------


def test_the_image_for_conversions(engine, tmp_path, make_images, make_csv):
    """It is below 700 MB and converts without network; docs/image.md lists what it lacks."""
    small = dataclasses.replace(engine, image=f"{engine.image}-convert")
    found = small.call("image", "inspect", "--format={{.Size}}", small.image)
    if found.returncode != 0:
        pytest.skip("no image for conversions: scripts/image convert builds it")
    assert int(found.stdout) < 700e6
    make_csv(f"images/{path.name},{number % 2}" for number, path in enumerate(make_images(8)))
    tmp_path.chmod(0o777)
    command = ["convert", "labels.csv", "out", "--quiet"]
    output(small, "--workdir=/data", "--network=none", command=command, mounts={tmp_path: "/data"})
    assert recordgen.read_dataset(str(tmp_path / "out")).examples == 8


# --- the target for Dataflow ---------------------------------------------------------------------

BOOT = "#!/bin/sh\necho booted as $(id -u), $RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT: $*\n"


def beam_version():
    """Return the version of Beam whose boot files the Dockerfile copies."""
    (version,) = re.findall(r"^ARG BEAM_VERSION=(.+)$", (ROOT / "Dockerfile").read_text(), re.M)
    return str(version)


def test_beams_boot_files_are_those_of_the_lock():
    """The versions must be the same."""
    lock = (ROOT / "locks" / "tfx-1.21.txt").read_text()
    (version,) = re.findall(r"^apache-beam==(\S+) ; python_full_version >= '3.11'", lock, re.M)
    assert beam_version() == version


@pytest.mark.slow
def test_the_dataflow_target_boots_beam(engine, tmp_path):
    """A made-up image replaces Beam's own, which some machines cannot pull."""
    base = "apache/beam_python3.13_sdk:0.0.0"
    (tmp_path / "boot").write_text(BOOT)
    (tmp_path / "boot").chmod(0o755)
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY boot /opt/apache/beam/boot\n")
    name = "recordgen:under-test"
    try:
        made = engine.call("build", "--tag", base, str(tmp_path))
        assert made.returncode == 0, made.stderr
        built = subprocess.run(
            [ROOT / "scripts" / "image", "dataflow", "--build-arg=BEAM_VERSION=0.0.0"],
            env={**engine.environment, "ENGINE": engine.program, "RECORDGEN_IMAGE": name},
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stderr
        booted = engine.call("run", "--rm", f"{name}-dataflow", "--id=1")
        assert booted.stdout == "booted as 0, 1: --id=1\n", booted.stderr
        pip = ("--entrypoint=pip", f"{name}-dataflow", "show", "apache-beam")
        shown = engine.call("run", "--rm", *pip)  # the command by which Beam finds itself
        assert "Name: apache-beam" in shown.stdout
    finally:
        engine.call("image", "rm", "--force", f"{name}-dataflow", base)
