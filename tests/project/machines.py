"""Fake machines: a directory with its own PATH, home, and copies of the repository's files."""

import os
import shutil
import subprocess

from tests.pages import ROOT


def write_program(path, text):
    """Write a script that can be run, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class FakeMachine:
    """A machine under ``root`` with some programs of this one, and copies of files and folders."""

    def __init__(self, root, tools, copied):
        self.root, self.bin, self.repository = root, root / "bin", root / "repository"
        self.record = root / "calls"  # of the fake programs
        self.bin.mkdir()
        for tool in tools.split():
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        for name in copied:
            (self.repository / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.repository / name)

    def add_program(self, name, text):
        return write_program(self.bin / name, text)

    def run(self, script, *arguments, path=(), **variables):
        """Run a script of the repository; ``path`` has folders before the machine's own."""
        folders = os.pathsep.join(map(str, [*path, self.bin]))
        env = {"PATH": folders, "HOME": str(self.root / "home"), **variables}
        how = {"env": env, "capture_output": True, "text": True, "timeout": 60, "check": False}
        return subprocess.run([self.repository / "scripts" / script, *arguments], **how)

    def called(self, beginning=""):
        """Return the calls of fake programs that begin so."""
        calls = self.record.read_text().splitlines() if self.record.exists() else []
        return [call for call in calls if call.startswith(beginning)]
