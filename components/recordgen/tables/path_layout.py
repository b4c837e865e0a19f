"""What the paths of files say, as the option ``layout`` writes it.

    {split}/{label}/{name}.jpg                          train/cat/1.jpg  →  split train, label cat
    {label}.{n:digits}.jpg                              cat.7.jpg        →  label cat
    images/{name}.jpg masks/{name}_mask.png             images/1.jpg with masks/1_mask.png
    **/{label}/{name}                                   a/b/cat/1.jpg    →  label cat

A pattern is matched with a whole path below the folder. ``{word}`` is a part of a name, without a
slash, and ``{word:digits}`` a number; a word that occurs again has the same text. ``{split}`` is a
word of ML_USE, in any case, and no part of a longer word beside ``*``. ``*`` is any part of a name,
``**/`` any folders or none, ``[…]`` may be missing. A second pattern, after a blank, is that of the
file with the mask or the labels; the words that both patterns have join the two. A path that both
match is that of a second file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from recordgen.core.dataset.splits import ML_USE_WORDS
from recordgen.errors import UsageError

#: The text of each word of a pattern, in one path.
Words: TypeAlias = Mapping[str, str]

#: The words that say something about a row; ``name`` and others only join patterns.
SPLIT, LABEL, GROUP = "split", "label", "group"
_OF_ROWS = (SPLIT, LABEL, GROUP)
_EXAMPLE = "'{split}/{label}/{name}.jpg'"

_TOKEN = re.compile(
    r"\{(?P<word>\w+)(?P<digits>:digits)?\}|(?P<folders>\*\*/)|(?P<star>\*)"
    r"|(?P<opening>\[)|(?P<closing>\])|(?P<text>[^{}*\[\]]+)"
)
_WORDS_OF_SPLITS = "|".join(sorted(ML_USE_WORDS, key=len, reverse=True))


class PathPattern(NamedTuple):
    """One pattern.

    Attributes:
        text: as the user wrote it.
        shortest, longest: its expression, in which words are as short or as long as possible.
    """

    text: str
    shortest: re.Pattern[str]
    longest: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> PathPattern:
        """Parse a pattern. Raises: UsageError: it is none."""
        tokens = [*_TOKEN.finditer(text)]
        if "".join(token[0] for token in tokens) != text or text.startswith("/"):
            raise UsageError(f"layout must be made of patterns such as {_EXAMPLE} (got {text!r})")
        try:
            expressions = ["".join(_expressions(tokens, shortest)) for shortest in ("?", "")]
            return cls(text, *map(re.compile, expressions))
        except re.error as exc:
            raise UsageError(f"the pattern {text!r} of layout is not valid: {exc}") from exc

    @property
    def words(self) -> Sequence[str]:
        """The words in it."""
        return tuple(self.shortest.groupindex)

    def match(self, path: str, decisive: Iterable[str]) -> Words | None:
        """Return the words of a path, None if it does not match.

        Raises: ValueError: one of the words ``decisive`` can be a shorter or a longer text.
        """
        found = self.shortest.fullmatch(path)
        other = self.longest.fullmatch(path)
        if found is None or other is None:
            return None
        for word in decisive:
            if word in self.words and found[word] != other[word]:
                raise ValueError(
                    f"{{{word}}} may be {found[word]!r} or {other[word]!r} in {path}; say more, "
                    f"such as {{n:digits}} for a number beside it"
                )
        return {word: text for word, text in found.groupdict().items() if text is not None}


def _expressions(tokens: Sequence[re.Match[str]], shortest: str) -> Iterator[str]:
    """Yield the expressions of tokens; ``shortest`` is ``?`` for words as short as possible."""
    seen: set[str] = set()
    for at, token in enumerate(tokens):
        kind, word = token.lastgroup, token["word"]
        if word and word in seen:
            yield f"(?P={word})"
        elif word == SPLIT:
            stars = [_is_star(tokens, at - 1), _is_star(tokens, at + 1)]
            before, after = "(?<![A-Za-z])" * stars[0], "(?![A-Za-z])" * stars[1]
            yield f"{before}(?P<{word}>(?i:{_WORDS_OF_SPLITS})){after}"
        elif word:
            yield f"(?P<{word}>{'[0-9]' if token['digits'] else '[^/]'}+{shortest})"
        elif kind == "text":
            yield re.escape(token[0])
        else:
            stars_of = {"folders": f"(?:[^/]+/)*{shortest}", "star": f"[^/]*{shortest}"}
            yield {**stars_of, "opening": "(?:", "closing": ")?"}[str(kind)]
        seen.add(word)


def _is_star(tokens: Sequence[re.Match[str]], at: int) -> bool:
    return 0 <= at < len(tokens) and tokens[at].lastgroup == "star"


class MatchedFile(NamedTuple):
    """A file that the first pattern matches.

    Attributes:
        others: the files of the second pattern with the same words.
    """

    path: str
    words: Words
    others: Sequence[str]


class Matches(NamedTuple):
    """What a layout finds in a folder.

    Attributes:
        files: the files of the first pattern, in order.
        alone: the files of the second pattern that belong to none of these.
        unused: the files that no pattern matches.
    """

    files: Sequence[MatchedFile]
    alone: Sequence[str]
    unused: Sequence[str]


class PathLayout(NamedTuple):
    """The patterns of a folder: of its rows, and of their masks or labels."""

    first: PathPattern
    second: PathPattern | None = None

    @classmethod
    def of(cls, text: str) -> PathLayout:
        """Parse patterns that are separated by blanks.

        Raises: UsageError: there are more than two, or one cannot be used.
        """
        patterns = [PathPattern.of(each) for each in text.split()]
        if not 1 <= len(patterns) <= 2:
            raise UsageError(
                f"layout must be one pattern, or two with a blank between (got {text!r})"
            )
        layout = cls(*patterns)
        for word in (word for each in patterns for word in each.words):
            near = get_close_matches(word, (*_OF_ROWS, "name"), 1, 0.7)
            if near and word not in (*_OF_ROWS, "name"):
                raise UsageError(f"layout has the word {{{word}}}; did you mean {{{near[0]}}}?")
        if layout.second is not None:
            _check_second(layout.first, layout.second)
        return layout

    @property
    def shared(self) -> Sequence[str]:
        """The words that join the patterns."""
        second = () if self.second is None else self.second.words
        return [word for word in self.first.words if word in second]

    def matches(self, paths: Iterable[str]) -> Matches:
        """Return the files of each pattern. Raises: ValueError: a path can be read in two ways."""
        decisive = (*_OF_ROWS, *self.shared)
        seconds: dict[tuple[str, ...], list[str]] = {}
        firsts: dict[str, Words] = {}
        unused: list[str] = []
        for path in paths:
            if self.second and (words := self.second.match(path, self.shared)) is not None:
                seconds.setdefault(self._key(words), []).append(path)
            elif (words := self.first.match(path, decisive)) is not None:
                firsts[path] = words
            else:
                unused.append(path)
        files = [
            MatchedFile(path, words, seconds.get(self._key(words), ()))
            for path, words in firsts.items()
        ]
        joined = {path for file in files for path in file.others}
        alone = [path for paths in seconds.values() for path in paths if path not in joined]
        return Matches(files, alone, unused)

    def _key(self, words: Words) -> tuple[str, ...]:
        texts = ((word, words.get(word, "")) for word in self.shared)
        return tuple(text.lower() if word == SPLIT else text for word, text in texts)


def _check_second(first: PathPattern, second: PathPattern) -> None:
    """Check that words join two patterns. Raises: UsageError."""
    if not set(first.words) & set(second.words):
        raise UsageError(
            f"the patterns {first.text!r} and {second.text!r} of layout have no {{word}} in "
            f"common, which would say what belongs together; write {{name}} in both"
        )
    if lost := [word for word in _OF_ROWS if word in second.words and word not in first.words]:
        raise UsageError(f"{{{lost[0]}}} must be in the first pattern of layout, {first.text!r}")
