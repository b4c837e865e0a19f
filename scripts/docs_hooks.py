"""MkDocs hooks that make links between pages work both on a Git forge and on the site.

On a forge, README.md is the first page, and pages link to files outside docs/. On the site,
README.md becomes index.md, and linked files are copied into repository/.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?([\w.]+)`")
_LISTING = re.compile(r"::$", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")
# Pages outside docs/: path in the repository → path on the site.
OUTSIDE = {
    name: name for name in ("CHANGELOG.md", "CHANGELOG-0.0.md", "CONTRIBUTING.md", "SECURITY.md")
}
OUTSIDE |= {"README.md": "index.md"}

_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"""(?P<before>\]\(|\bsrc=")(?P<path>[^)"#\s:]+)(?=[)"#])""")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for source, target in OUTSIDE.items():
        path = str(ROOT / source)
        files.append(File.generated(config, target, abs_src_path=path))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to paths on the site, and add linked files to the site."""
    source = next((old for old, new in OUTSIDE.items() if new == page.file.src_uri), None)
    folder = posixpath.dirname(source or f"docs/{page.file.src_uri}")

    def on_site(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        inside = path.removeprefix("docs/")
        target = OUTSIDE.get(path, inside if inside != path else f"repository/{path}")
        if target.startswith("repository/") and target not in files.src_uris:
            added = File.generated(config, target, abs_src_path=str(ROOT / path))
            added.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(added)
        return link["before"] + posixpath.relpath(target, posixpath.dirname(page.file.src_uri))

    def to_site(text: str) -> str:
        # In code in a table, a forge needs `a\|b`, but Python-Markdown needs `a|b`.
        text = _ROW.sub(
            lambda row: _CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), text
        )
        return _LINK.sub(on_site, text)

    parts = _FENCE.split(markdown)  # every second one is code
    parts[::2] = map(to_site, parts[::2])
    return "".join(parts)


class PlainDocstrings(griffe.Extension):
    """Converts Sphinx's markup in docstrings (``:func:`name```, ``::``) to Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = _LISTING.sub(":", text)
