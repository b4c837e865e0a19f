"""What a release holds: ``scripts/release``, and the metadata of the package."""

import io
import re
import runpy
import subprocess
import tarfile
import zipfile

import pytest
import setuptools

import recordgen
from recordgen.cli import build_parser
from recordgen.version import __version__
from tests.conftest import ROOT, load_script


@pytest.fixture(scope="module")
def script():
    return load_script("release")


def test_the_version_is_read_from_its_file(script):
    """Without importing the package."""
    text = (ROOT / "components/recordgen/version.py").read_text(encoding="utf-8")
    assert script.version_of(text) == __version__


# changelog, error
CHANGELOGS = [
    ("## [Unreleased]\n\n- A\n", r"## \[1\.2\.0\] - YYYY-MM-DD"),
    ("## [1.2.0]\n\n- A\n", r"1\.2\.0"),
    ("## [1.2.00] - 2026-11-23\n\n- A\n", r"1\.2\.0"),
    ("## [1.2.0] - 2026-11-23\n\n## [1.1.0] - 2026-11-01\n\n- A\n", r"1\.2\.0 in "),
]


@pytest.mark.parametrize(("text", "message"), CHANGELOGS)
def test_a_changelog_without_the_version(script, text, message):
    """Is an error that says what is missing."""
    with pytest.raises(SystemExit, match=message):
        script.check_changelog(text, "1.2.0")
    script.check_changelog("## [1.2.0] - 2026-11-23\n\n- A\n", "1.2.0")


@pytest.mark.parametrize("home", ["", "https://forge.example/us/recordgen"])
def test_the_readme_needs_no_file_beside_it_on_an_index_page(home, monkeypatch):
    """Links are absolute, or text as long as the repository has no address; there is no picture."""
    made = {}
    monkeypatch.setattr(setuptools, "setup", made.update)
    functions = runpy.run_path(str(ROOT / "setup.py"))
    text = functions["index_page"]((ROOT / "README.md").read_text(), home)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert bool(home) == any(link.startswith(f"{home}/blob/HEAD/docs/") for link in links)
    assert not [link for link in links if not link.startswith("https://")]
    assert "<img" not in text
    assert "pip install 'recordgen[tensorflow,pandas]'" in text
    assert made["long_description"].startswith("# Recordgen\n")


def test_there_is_one_description():
    """The package, the command, the image and the site say the same."""
    said = recordgen.__doc__.removesuffix(".")
    assert build_parser().description == f"{said}."
    for file in ("pyproject.toml", "mkdocs.yml", "Dockerfile"):
        assert said in (ROOT / file).read_text(), file


def test_sdists_do_not_show_who_made_them_when(script, tmp_path):
    """Two builds have the same bytes."""
    made = []
    for number in (1, 2):
        path = tmp_path / f"{number}.tar.gz"
        with tarfile.open(path, "w:gz", compresslevel=number) as archive:
            for name in ("a/one.py", "a/run")[:: 1 if number == 1 else -1]:
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.uid, member.uname = 3, number, number, "me"
                member.mode = (0o755 if name == "a/run" else 0o644) & (0o777 >> 3 * (number - 1))
                member.mode |= 0o100 if name == "a/run" else 0
                archive.addfile(member, io.BytesIO(b"abc"))
        script.make_reproducible(path, 1_700_000_000)
        made.append(path.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "1.tar.gz") as archive:
        found = {member.name: (member.mode, member.mtime) for member in archive}
    assert found == {"a/one.py": (0o644, 1_700_000_000), "a/run": (0o755, 1_700_000_000)}


def test_what_git_does_not_track_is_not_released(script, tmp_path, monkeypatch):
    """A module that nobody has added yet, or a note, stays at home."""
    monkeypatch.setattr(script, "ROOT", tmp_path)
    (tmp_path / "trial.py").write_text("")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    script.copy_repository(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_wheel_is_the_package(script, tmp_path):
    """What Python and others leave in ``__pycache__`` is no part of it."""
    files = [path for path in (ROOT / "components/recordgen").rglob("*.*") if path.is_file()]
    kept = [path for path in files if "__pycache__" not in path.parts]
    names = [str(path.relative_to(ROOT / "components")) for path in kept]
    left_out = "recordgen/exports/templates/style.css"

    def wheel_of(*names):
        with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
            for name in (*names, f"recordgen-{__version__}.dist-info/METADATA"):
                archive.writestr(name, "")
        return tmp_path / "a.whl"

    script.check_wheel(wheel_of(*names))
    with pytest.raises(SystemExit, match=left_out):
        script.check_wheel(wheel_of(*(name for name in names if name != left_out)))
    with pytest.raises(SystemExit, match=r"tests/a\.py"):
        script.check_wheel(wheel_of(*names, "tests/a.py"))
