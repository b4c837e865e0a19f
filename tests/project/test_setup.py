"""`scripts/setup` on fake machines with fakes of Python, uv and libc; nothing is installed.

Each machine is a directory with its own PATH, home and copy of the repository's set-up files. The
fake uv records its calls, and the tests read this record.
"""

import importlib.metadata
import re

import pytest
from packaging.requirements import Requirement

import tests.conftest
from tests.pages import ROOT
from tests.project.machines import FakeMachine, write_program

LEGS = ("tfx-1.21", "tfx-1.16", "no-tfx")

# Programs that scripts/setup calls besides the fakes.
TOOLS = "bash sh cat cp cut dirname head mkdir mv rm sha256sum sort"

PYTHON = """\
#!/bin/sh
case "$1 $2" in
*Python.h*) echo "{version} {headers} {behind}" ;;
"-c "*) exit 0 ;;
"-m pip") [ -n "{pip}" ] || exit 1
    [ "$3" != install ] || { mkdir -p "$6/bin" && cp "{uv}" "$6/bin/uv"; } ;;
*) exit 1 ;;
esac
"""

BROKEN_SHIM = """\
#!/bin/sh
echo "pyenv: python3.10: command not found" >&2
exit 127
"""

UV = """\
#!/bin/sh
[ "$1" = --version ] && exit 0
[ "$1 $2" = "python dir" ] && { echo "{managed}"; exit 0; }
echo "$* [index=$UV_DEFAULT_INDEX]" >>"{record}"
case "$1 $2" in
"venv "*) for folder; do :; done; mkdir -p "$folder/bin" && cp "{empty}" "$folder/bin/python" ;;
"python install") sh "{download}" ;;
"pip sync") [ ! -e "{sync_fails}" ] ;;
esac
"""


class Machine(FakeMachine):
    """A fake machine with fakes of Python, uv and libc."""

    def __init__(self, root):
        super().__init__(root, TOOLS, ("scripts", "locks", "pyproject.toml", "setup.py"))
        self.managed = self.root / "managed"  # Pythons that uv has installed
        self.sync_fails = self.root / "sync-fails"
        self.download = self.root / "download"  # the effect of `uv python install`
        self.add_glibc("2.36")
        self.add_program("uname", "#!/bin/sh\n[ $1 = -m ] && echo x86_64 || echo Linux\n")
        self.add_program("c++", "#!/bin/sh\n")
        self.empty = self.add_program("empty", "#!/bin/sh\n")
        self.uv = self.add_program("uv", self.fill(UV))
        self.download.write_text("exit 1\n")

    def fill(self, template, **values):
        names = ("managed", "record", "sync_fails", "download", "empty")
        places = {name: getattr(self, name) for name in names}
        for name, value in (places | values).items():
            template = template.replace("{" + name + "}", str(value))
        return template

    def add_glibc(self, version):
        self.add_program("getconf", f"#!/bin/sh\necho glibc {version}\n")

    def add_python(self, path, version, *, headers="headers", pip="", behind="$0"):
        values = {"version": version, "headers": headers, "pip": pip, "behind": behind}
        text = self.fill(PYTHON, **values, uv=self.root / "uv-kept")
        return write_program(self.root / path, text)

    def hide_uv(self):
        """Remove uv: only the fake Python's pip can install it."""
        self.uv.rename(self.root / "uv-kept")

    def set_up(self, *, path=(), **variables):
        return self.run("setup", path=[self.root / entry for entry in path], **variables)

    def python_used(self):
        (call,) = self.called("venv")
        return call.split("--python ")[1].split(" .venv")[0]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def ready(machine):
    """A machine with a Python that fits."""
    machine.add_python("bin/python3.10", "3.10")
    return machine


# --- which leg


# glibc, processor, headers of Python, variables, the leg
LEG_OF = [
    ("2.31", "x86_64", "headers", {}, "tfx-1.16"),  # Debian 11
    ("2.38", "x86_64", "headers", {}, "tfx-1.16"),  # just too old
    ("2.39", "x86_64", "headers", {}, "tfx-1.21"),  # Ubuntu 24.04
    ("2.100", "x86_64", "headers", {}, "tfx-1.21"),
    ("2.36", "aarch64", "no-headers", {}, "no-tfx"),
    *(("2.36", "x86_64", "headers", {"LEG": leg}, leg) for leg in LEGS),
]


@pytest.mark.parametrize(("glibc", "processor", "headers", "variables", "leg"), LEG_OF)
def test_the_machine_or_user_decides_the_leg(machine, glibc, processor, headers, variables, leg):
    """glibc and the processor decide, unless LEG does."""
    machine.add_glibc(glibc)
    machine.add_program("uname", f"#!/bin/sh\n[ $1 = -m ] && echo {processor} || echo Linux\n")
    machine.add_python("bin/python3.10", "3.10", headers=headers)
    assert machine.set_up(**variables).returncode == 0
    assert f"locks/{leg}.txt" in machine.called("pip sync")[0]


@pytest.mark.parametrize(("system", "leg"), [("Darwin", ""), ("Linux", "tfx-2")])
def test_an_unknown_system_or_leg_installs_nothing(ready, system, leg):
    """It ends with 1."""
    ready.add_program("uname", f"#!/bin/sh\n[ $1 = -m ] && echo x86_64 || echo {system}\n")
    assert ready.set_up(LEG=leg).returncode == 1
    assert ready.called() == []


# --- which Python

SHIM = "shims/python3.10"  # the first on PATH, and broken
SHIMMED = {SHIM: "", "bin/python3.10": "3.10"}
PYENV = "home/.pyenv/versions/3.10.13/bin/python3"
SEVERAL = {PYENV: "3.10", PYENV.replace("13", "9"): "3.10", PYENV.replace("10.13", "1.0"): "3.1"}
MANAGED = "managed/cpython-3.10.20-linux-x86_64-gnu/bin/python3"
OTHER = "else where/versions/3.10.13/bin/python3"
MINE = {"PYTHON": "mine/python"}

# Pythons on the machine (with their versions), glibc, variables, the one that is used
PYTHONS = [
    (SHIMMED, "2.36", {}, "bin/python3.10"),
    # The newest patch release of pyenv's wins, by number.
    ({SHIM: "", **SEVERAL}, "2.36", {}, PYENV),
    ({OTHER: "3.10"}, "2.36", {"PYENV_ROOT": "else where"}, OTHER),
    ({MANAGED: "3.10"}, "2.36", {}, MANAGED),
    ({"bin/python3": "3.13"}, "2.41", {}, "bin/python3"),
    ({f"bin/python{it}": it for it in ("3.14", "3.10", "3.12")}, "2.41", {}, "bin/python3.12"),
    # The user's Python comes before others, also before newer ones.
    ({"bin/python3.10": "3.10", "mine/python": "3.10"}, "2.36", MINE, "mine/python"),
    ({"bin/python3.13": "3.13", "mine/python": "3.11"}, "2.41", MINE, "mine/python"),
]


@pytest.mark.parametrize(("pythons", "glibc", "variables", "used"), PYTHONS)
def test_the_first_fitting_python_is_used(machine, pythons, glibc, variables, used):
    """In the order PYTHON, PATH, pyenv, uv."""
    machine.add_glibc(glibc)
    for path, version in pythons.items():
        if version:
            machine.add_python(path, version)
        else:
            write_program(machine.root / path, BROKEN_SHIM)
    places = {name: str(machine.root / path) for name, path in variables.items()}
    result = machine.set_up(path=["shims"], **places)
    assert result.returncode == 0, result.stderr
    assert machine.python_used() == str(machine.root / used)
    assert not machine.called("python install")


def test_tfx_needs_the_headers_of_python(machine):
    """The next Python is tried."""
    machine.add_glibc("2.41")
    machine.add_python("bin/python3.13", "3.13", headers="no-headers")
    good = machine.add_python("bin/python3.11", "3.11")
    result = machine.set_up()
    assert machine.python_used() == str(good)
    assert "apt install python3.13-dev" in result.stderr


def test_tfx_needs_a_compiler(ready):
    """The other leg does not."""
    (ready.bin / "c++").unlink()
    result = ready.set_up()
    assert result.returncode == 1
    assert "apt install g++" in result.stderr
    assert ready.set_up(LEG="no-tfx").returncode == 0


def test_the_last_resort_is_a_download(machine):
    """uv installs the Python of the leg."""
    machine.add_python("kept", "3.10")
    place = machine.managed / "cpython-3.10.20-linux-x86_64-gnu" / "bin"
    machine.download.write_text(f"mkdir -p {place} && cp {machine.root}/kept {place}/python3\n")
    assert machine.set_up().returncode == 0
    assert [call.split(" [")[0] for call in machine.called("python")] == ["python install 3.10"]
    assert machine.python_used() == str(place / "python3")


@pytest.mark.parametrize(
    ("glibc", "wanted"), [("2.36", "3.10"), ("2.41", "3.13 or 3.12 or 3.11 or 3.10")]
)
def test_without_a_fitting_python_one_message_tells_what_helps(machine, glibc, wanted):
    """Each remedy once."""
    machine.add_glibc(glibc)
    machine.add_python("bin/python3", "3.14")
    result = machine.set_up()
    assert result.returncode == 1
    assert machine.called("python install")
    assert f"Python {wanted}." in result.stderr
    for remedy in ("apt install", "pyenv install", "uv python install", "LEG=no-tfx make setup"):
        assert result.stderr.count(remedy) == 1
    assert not (machine.repository / ".venv").exists()


# --- where uv comes from


@pytest.mark.parametrize(("uv", "pip"), [("", "yes"), (BROKEN_SHIM, "yes"), ("", "")])
def test_a_missing_uv_is_fetched_with_pip(machine, uv, pip):
    """Into the repository; a broken one counts as missing, as a shim of pyenv may be."""
    machine.hide_uv()
    if uv:
        machine.add_program("uv", uv)
    machine.add_python("bin/python3.10", "3.10", pip=pip)
    assert machine.set_up().returncode == (not pip)
    assert [it.name for it in machine.repository.glob(".setup*/bin/uv")] == ["uv"] * bool(pip)
    assert bool(machine.called("pip sync")) == bool(pip)


@pytest.mark.parametrize(
    ("own", "used"), [({}, "pip's"), ({"UV_DEFAULT_INDEX": "https://own/"}, "https://own/")]
)
def test_settings_of_pip_reach_uv_unless_uv_has_its_own(ready, own, used):
    """A mirror is set once."""
    ready.set_up(PIP_INDEX_URL="pip's", **own)
    assert f"[index={used}]" in ready.called("pip sync")[0]


# --- once, again, and after a failure


def moved(machine):
    machine.repository = machine.repository.rename(machine.root / "moved")


def interrupted(machine):
    machine.sync_fails.touch()
    assert machine.set_up().returncode != 0
    machine.sync_fails.unlink()


def renewal_interrupted(machine):
    (machine.repository / "setup.py").write_text("# changed\n")
    interrupted(machine)


def lock_changed(machine):
    with (machine.repository / "locks/tfx-1.16.txt").open("a") as lock:
        lock.write("something==1.0\n")


# LEG of the first call, what happens then, LEG of the next call; environments, installations
CALLS = [
    ("", None, "", 1, 1),
    ("no-tfx", None, "", 1, 1),  # a chosen leg stays chosen
    ("no-tfx", None, "tfx-1.16", 2, 2),
    ("", lock_changed, "", 1, 2),
    ("", moved, "", 1, 2),
    ("", renewal_interrupted, "", 2, 3),
    (None, interrupted, "", 2, 2),  # there is no first call
]


@pytest.mark.parametrize(("first", "change", "leg", "environments", "syncs"), CALLS)
def test_a_further_call_does_what_is_needed(ready, first, change, leg, environments, syncs):
    """Nothing is installed again unless a lock, the leg or the place changed, or a call failed."""
    if first is not None:
        ready.set_up(LEG=first)
    if change is not None:
        change(ready)
    assert ready.set_up(LEG=leg).returncode == 0
    found = len(ready.called("venv")), len(ready.called("pip sync"))
    assert found == (environments, syncs)


@pytest.mark.parametrize("version", ["3.10", "3.9"])
def test_a_foreign_environment_is_replaced_and_only_a_fitting_python_kept(machine, version):
    """It may contain anything: only the Python behind it is used."""
    behind = machine.add_python("opt/python", version)
    good = machine.add_python("bin/python3.10", "3.10")
    theirs = machine.add_python("repository/.venv/bin/python", version, behind=behind)
    left = theirs.with_name("left-over")
    left.touch()
    assert machine.set_up().returncode == 0
    assert machine.python_used() == str(behind if version == "3.10" else good)
    assert not left.exists()


# --- what is committed


LOCKS = sorted(path.stem for path in (ROOT / "locks").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_pin_everything_and_name_no_place(lock):
    """Each line is `name==version`, maybe with a condition, and hashes: no URL, no option."""
    text = (ROOT / "locks" / f"{lock}.txt").read_text()
    comment, *requirements = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert comment.startswith("# Made by `make lock`")
    assert requirements
    pin = r"[a-z0-9-]+==[^\s;/@]+( ; [^\n\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    for requirement in requirements:
        assert re.fullmatch(pin, requirement), requirement


def test_what_is_installed_has_the_hashes_of_a_lock(ready):
    """Extras install a part of it with its versions, also packages that compile a source."""
    for extras in ("", "kfp,gcs"):
        assert ready.set_up(EXTRAS=extras).returncode == 0
    (compiled,) = ready.called("pip compile")
    assert "--constraint locks/tfx-1.16.txt --extra kfp --extra gcs --extra tfx" in compiled
    assert ".venv/requirements.txt" in ready.called("pip sync")[1]
    for sync in ready.called("pip sync"):
        assert "--require-hashes" in sync
        assert "--constraint locks/tfx-1.16.txt --build-constraints locks/tfx-1.16.txt" in sync


@pytest.mark.parametrize("leg", LEGS)
def test_locks_hold_every_dependency(leg):
    """Dependencies in pyproject.toml that `make lock` has not added are found."""
    text = (ROOT / "locks" / f"{leg}.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9-]+)==", text, flags=re.MULTILINE))
    elsewhere = "tfx" if leg == "no-tfx" else "onnx"
    known = importlib.metadata.requires("recordgen")
    required = [each for each in known if f'extra == "{elsewhere}"' not in each]
    project = (ROOT / "pyproject.toml").read_text()
    required += re.findall(r'"([^"]+)",', re.search(r"^dev = \[$(.*?)^]$", project, re.M | re.S)[1])
    names = (re.match(r"[\w.-]+", requirement).group() for requirement in required)
    declared = {name.lower().replace("_", "-") for name in names}
    assert declared - locked - {"recordgen"} == set()  # extras name other extras of the package


# Packages on which tests depend that run on only one of some legs: those marked `outside` or
# `inside` (not kfp: no step runs inside), and those of payloads' decoding, which run `once`.
SHARED = {
    LEGS: ("dask", "pillow", "simplejpeg"),
    ("no-tfx", "tfx-1.21"): ("apache-beam", "gcsfs", "keras", "numpy", "s3fs", "tensorflow"),
}


@pytest.mark.parametrize(
    ("legs", "package"), [(legs, package) for legs, found in SHARED.items() for package in found]
)
def test_legs_share_what_decides_tests_of_one_of_them(legs, package):
    """These legs need the same versions."""
    locks = [(ROOT / f"locks/{leg}.txt").read_text() for leg in legs]
    newest = {re.findall(rf"^{package}==(\S+)", lock, re.MULTILINE)[-1] for lock in locks}
    assert len(newest) == 1


def test_the_table_of_legs_names_folders_and_modules():
    """None of them is gone."""
    for place in " ".join(tests.conftest.LEGS.values()).split():
        found = ROOT / "tests" / place
        assert found.is_dir() or found.with_suffix(".py").is_file(), place


def test_nvidias_libraries_are_those_that_tensorflow_asks_for():
    """Checked only with the image's TensorFlow: other versions need other libraries."""
    locked = (ROOT / "locks" / "tfx-1.21.txt").read_text()
    if f"\ntensorflow=={importlib.metadata.version('tensorflow')} " not in locked:
        pytest.skip("another TensorFlow than the image's")
    lines = (ROOT / "locks" / "cuda.txt").read_text()
    pinned = dict(re.findall(r"^(\S+)==(\S+)", lines, flags=re.MULTILINE))
    asked = [
        requirement
        for requirement in map(Requirement, importlib.metadata.requires("tensorflow"))
        if requirement.marker and requirement.marker.evaluate({"extra": "and-cuda"})
        if not requirement.marker.evaluate({"extra": ""})
    ]
    assert {requirement.name for requirement in asked} <= set(pinned)
    for requirement in asked:
        assert requirement.specifier.contains(pinned[requirement.name]), requirement


def test_another_folder_can_be_set_up(ready):
    """VENV names it."""
    assert ready.set_up(VENV=".venv-other").returncode == 0
    assert (ready.repository / ".venv-other/.recordgen-setup").exists()
    assert not (ready.repository / ".venv").exists()


def test_the_command_is_installed():
    """As the package declares it."""
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="recordgen")
    assert command.value == "recordgen.__main__:main"
