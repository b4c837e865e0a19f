"""Whether a regular expression takes linear time, by its structure.

Python's engine tries alternatives one after the other. It takes more than linear time if a text can
be divided among two repeats in many ways before the match fails:

    \\d+\\.?\\d*x     1111…   both repeats take digits, and nothing must stand between them
    (\\w+-?)*x      aaaa…   one repeat inside another
    [a-z]+://      aaaa…   a search begins again at each letter of the repeat

The expression becomes an automaton; it is slow if a word leads from a state to itself, from this
state to a later one, and from the later one to itself, and if the later one must be followed by
something. Look-arounds count as empty, bounded repeats as at most two, so this test may miss some
faults of theirs.
"""

from __future__ import annotations

import re
from itertools import chain, product
from typing import Any

try:
    from re import _constants as sre  # Python 3.11
    from re import _parser as parser
except ImportError:
    import sre_constants as sre  # type: ignore[no-redef]
    import sre_parse as parser  # type: ignore[no-redef]

# Letters that stand for all others of their kind.
_LETTERS = frozenset([*map(chr, range(128)), "é", "本", "\u2028", "\u0301"])

# What may fail without taking a letter: the end of the text, and a look-around.
_END, _LOOK = frozenset(["end"]), frozenset(["look"])

_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_COPIES = 2


def is_linear(source: str | bytes, flags: int = 0, *, method: str) -> bool:
    """Return whether a pattern takes linear time with a method of ``re``, such as ``search``."""
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    if isinstance(source, bytes):
        flags |= re.ASCII
    tree = parser.parse(text, flags & ~re.UNICODE)
    made = _Automaton(tree.state.flags | flags)
    start = made.new()
    is_anchored = tree[:1] and tree[0] == (sre.AT, sre.AT_BEGINNING_STRING)
    if method not in ("match", "fullmatch") and not is_anchored:
        made.edges.append((start, _LETTERS, start))  # a search begins anywhere
    end = made.build(tree, start)
    if method == "fullmatch":
        end = made.step(end, _END)
    return not made.is_slow(end) and all(made.inner)


class _Automaton:
    """States are numbers; ``edges`` lead to others with a letter, ``jumps`` without one."""

    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.edges: list[tuple[int, frozenset[str], int]] = []
        self.jumps: list[list[int]] = []
        self.inner: list[bool] = []  # whether look-arounds are linear

    def new(self) -> int:
        self.jumps.append([])
        return len(self.jumps) - 1

    def step(self, start: int, letters: frozenset[str]) -> int:
        end = self.new()
        self.edges.append((start, letters, end))
        return end

    def build(self, items: Any, start: int) -> int:
        """Add the states of a sequence after ``start``; return the last one."""
        for kind, value in items:
            start = self._add(kind, value, start)
        return start

    def _add(self, kind: Any, value: Any, start: int) -> int:
        if kind is sre.SUBPATTERN:
            return self.build(value[-1], start)
        if kind is sre.BRANCH:
            end = self.new()
            for branch in value[1]:
                self.jumps[self.build(branch, start)].append(end)
            return end
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self._repeat(*value, start)
        if kind is sre.AT:
            return self.step(start, _END) if value in (sre.AT_END, sre.AT_END_STRING) else start
        if kind in (sre.ASSERT, sre.ASSERT_NOT):
            looking = _Automaton(self.flags)
            self.inner.append(not looking.is_slow(looking.build(value[1], looking.new())))
            return self.step(start, _LOOK)
        return self.step(start, self._letters(kind, value))

    def _repeat(self, least: int, most: Any, body: Any, start: int) -> int:
        for _ in range(min(least, _COPIES)):
            start = self.build(body, start)
        if most is sre.MAXREPEAT:
            loop, end = self.new(), self.new()
            self.jumps[start].append(loop)
            self.jumps[self.build(body, loop)].append(loop)
            self.jumps[loop].append(end)
            return end
        for _ in range(min(most - least, _COPIES)):
            end = self.build(body, start)
            self.jumps[start].append(end)
            start = end
        return start

    def _letters(self, kind: Any, value: Any) -> frozenset[str]:
        """Return the letters that one item of a pattern takes."""
        if kind is sre.ANY:
            return _LETTERS if self.flags & re.DOTALL else _LETTERS - {"\n"}
        if kind is sre.IN:
            negated = value[0][0] is sre.NEGATE
            found = frozenset().union(*(self._letters(*item) for item in value[negated:]))
            return _LETTERS - found if negated else found
        if kind is sre.CATEGORY:
            pattern = re.compile(_CATEGORIES[value], self.flags & re.ASCII)
            return frozenset(filter(pattern.fullmatch, _LETTERS))
        low, high = value if kind is sre.RANGE else (value, value)
        found = frozenset(letter for letter in _LETTERS if low <= ord(letter) <= high)
        if low > 127 and not found:
            found = frozenset(["本"])
        if self.flags & re.IGNORECASE:
            found |= {letter for each in found for letter in (each.lower(), each.upper())}
        return _LETTERS - found if kind is sre.NOT_LITERAL else found & (_LETTERS | found)

    def is_slow(self, end: int) -> bool:
        """Return whether a text may be divided in several ways before the match fails."""
        paths = [self._paths(state) for state in range(len(self.jumps))]
        steps = [
            [(letters, target) for start, letters, target in self.edges if start in reached]
            for reached in paths
        ]
        after = [self._after(state, steps) for state in range(len(self.jumps))]
        cyclic = [state for state in range(len(self.jumps)) if state in after[state]]
        # A repeat that nothing must follow never fails.
        failing = [state for state in cyclic if end not in paths[state]]
        for state in failing:
            # Two ways without a letter to the same step, which leads back: (a+)*
            for start, _, target in self.edges:
                if paths[state].get(start, 0) > 1 and state in after[target] | {target}:
                    return True
        letters = {letter for each, _ in chain.from_iterable(steps) for letter in each}
        kinds = {
            letter: tuple(letter in each for _, each, _ in self.edges) for letter in sorted(letters)
        }
        alphabet = list({kind: letter for letter, kind in kinds.items()}.values())
        moves = [
            {letter: [t for each, t in found if letter in each] for letter in alphabet}
            for found in steps
        ]
        return any(
            self._is_shared(first, later, moves, after, alphabet)
            for first in cyclic
            for later in failing
            if first != later and later in after[first]
        )

    def _paths(self, state: int) -> dict[int, int]:
        """Return the states that are reached without a letter, and in how many ways (1 or 2)."""
        found: dict[int, int] = {state: 1}
        waiting = [state]
        while waiting:
            for target in self.jumps[waiting.pop()]:
                if found.get(target, 0) < 2:
                    found[target] = found.get(target, 0) + 1
                    waiting.append(target)
        return found

    def _after(self, state: int, steps: Any) -> set[int]:
        """Return the states that some word leads to."""
        found: set[int] = set()
        waiting = [state]
        while waiting:
            for _, target in steps[waiting.pop()]:
                if target not in found:
                    found.add(target)
                    waiting.append(target)
        return found

    def _is_shared(
        self, first: int, later: int, moves: Any, after: Any, alphabet: list[str]
    ) -> bool:
        """Return whether one word leads from first to both, and from later to itself."""
        begin, goal = (first, first, later), (first, later, later)
        seen, waiting = {begin}, [begin]
        while waiting:
            one, two, three = waiting.pop()
            for letter in alphabet:
                for each in product(moves[one][letter], moves[two][letter], moves[three][letter]):
                    if each == goal:
                        return True
                    returns = first in after[each[0]] | {each[0]} and later in after[each[2]] | {
                        each[2]
                    }
                    if returns and later in after[each[1]] | {each[1]} and each not in seen:
                        seen.add(each)
                        waiting.append(each)
        return False
