"""Build the package, also for tools that call `python setup.py`, such as Beam's `--setup_file`.

`pyproject.toml` has the package's metadata, except for what depends on the address of the project.
"""

import re
from pathlib import Path

from setuptools import setup

# The repository's address, such as https://forge.example/us/recordgen. It is set only here.
HOME = ""

PAGES = {"Source": "", "Documentation": "/tree/HEAD/docs", "Changelog": "/blob/HEAD/CHANGELOG.md"}


def index_page(readme: str, home: str) -> str:
    """Return the README for a package index, which has no files for relative links and pictures."""
    text = re.sub(r'<img src="(?!https:)[^>]*>\n*', "", readme)
    link = rf"[\1]({home}/blob/HEAD/\2)" if home else r"\1"
    text = re.sub(r"\[([^][]+|`[^`]+`)\]\((?!https?:)([^)]+)\)", link, text)
    text = re.sub(r"git clone <this repository>.*\n", "", text)
    return re.sub(r"(pip install '?)\.", r"\1recordgen", text)


setup(
    long_description=index_page(Path(__file__).with_name("README.md").read_text("utf-8"), HOME),
    long_description_content_type="text/markdown",
    project_urls={name: HOME + path for name, path in PAGES.items()} if HOME else {},
)
