"""Inputs and labels of a source, as ``recordgen.load`` gives them: a sequence, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from recordgen.access.batches import BatchedSequence, Item, together
from recordgen.access.boxes import BOX_FORMATS
from recordgen.access.decode import Decoder
from recordgen.access.named_features import SHOWN, named_features, names_of, shown_features
from recordgen.access.parse import Values
from recordgen.access.records import Example, Records, is_several
from recordgen.core.dataset.manifest import EXAMPLES
from recordgen.errors import UsageError
from recordgen.features import OBJECTS
from recordgen.registry import OF_OTHER_RECORDS, TASKS

if TYPE_CHECKING:
    import numpy.typing as npt

_Mapped = TypeVar("_Mapped")


#: A number, an array, such as pixels; or a dict of them, such as columns or boxes.
Value: TypeAlias = "np.generic | npt.NDArray[Any] | dict[str, Any]"

#: An image with its class, classes, mask or boxes; an image without a label is alone.
ImageItem: TypeAlias = "npt.NDArray[Any] | tuple[npt.NDArray[Any], Value]"

#: Inputs; or inputs, label and, if there is one, weight.
AnyItem: TypeAlias = "str | Value | tuple[str | Value, ...]"

# Records that are read together for their labels.
_AT_ONCE = 256


@dataclass(frozen=True)
class Pairing:
    """How examples of a task become inputs and labels.

    The attribute ``pairing`` of a task names a function of the source, the names of its features
    and a :class:`Decoder` that returns a pairing.

    Attributes:
        names: the features that are read, if records have them; the first is needed.
        inputs: returns the inputs of an example, or a tuple of inputs and boxes, masks or tags.
            Raises ValueError: the example is damaged.
        label: the feature that holds the label or the number to predict; "": none.
        number: returns what is predicted from the value of that feature.
        weight: the feature that holds the weight of an example; "": none.
        defaults: values of records that lack a feature, instead of those in its spec.
        padding, least, several: how batches are padded, see
            :func:`recordgen.access.batches.together`.
    """

    names: Sequence[str]
    inputs: Callable[[Example], Any]
    label: str = ""
    number: Callable[[Any], Any] = np.asarray
    weight: str = ""
    defaults: Mapping[str, float] = field(default_factory=dict)
    padding: int = 0
    least: int = 0
    several: Collection[str] = ()

    @property
    def features(self) -> Sequence[str]:
        """All features that are read, if records have them."""
        return (*self.names, *filter(None, (self.label, self.weight)))

    def item(self, example: Example) -> Any:
        """Return the inputs of an example, or a tuple of inputs, label, and weight."""
        if not self.label:
            return self.inputs(example)
        pair = self.inputs(example), self.number(example[self.label])
        return (*pair, example[self.weight]) if self.weight else pair


#: Returns the pairing of a source's examples.
MakePairing: TypeAlias = Callable[[Records, Collection[str], Decoder], Pairing]


def labelled(
    source: Records,
    there: Collection[str],
    names: Sequence[str],
    inputs: Callable[[Example], Any],
    label: str,
) -> Pairing:
    """Return the pairing of inputs and the numbers of their classes.

    A label is int64 [] (-1: none), or float32 [classes] if examples have any number of labels;
    items are only inputs if records have no labels. ``there`` are the features of the records,
    ``names`` those of the inputs, and ``label`` holds the numbers.
    """
    known, count = source.dataset, len(source.class_names)
    if label not in there or not (known is None or known.task == EXAMPLES or count):
        return Pairing(names, inputs)

    def encoded(number: Any) -> Any:
        if not number.ndim or not count:
            return number
        several = np.zeros(count, np.float32)
        several[number] = 1
        return several

    return Pairing(names, inputs, label, encoded)


def _absent(values: Values) -> None:
    """Check that a record of other tools lacks a feature, too. Raises: ValueError."""
    if len(values):
        raise ValueError(f"the first {SHOWN} records lack it; source[i] reads it")


class Pairs(BatchedSequence[Item]):
    """The inputs and labels of a source: ``(uint8 [224, 224, 3], 3)``, ``("Good.", 1)``.

    :meth:`recordgen.access.source.Source.images` says what they are for each task.

    Attributes:
        class_names: the labels, in the order of their numbers.
    """

    def __init__(
        self,
        source: Records,
        decoder: Decoder,
        task: str = "auto",
        columns: str = "",
        changes: Sequence[Callable[[Any], Any]] = (),
    ) -> None:
        """Prepare to read pairs; each of the ``changes`` is applied to an item.

        Raises: UsageError: the records lack what the task needs.
        """
        self.source = source
        self.class_names = source.class_names
        self._made_of = (source, decoder, task, columns)
        self._changes = tuple(changes)
        known = source.dataset
        name = OF_OTHER_RECORDS if task == "auto" else task
        there: Mapping[str, Any] = source.features
        # The names of features in other tools' records, and in examples from Python.
        stored: dict[str, str] = {}
        if is_ours := known is not None and known.task != EXAMPLES:
            name = known.task
            if columns:
                raise UsageError(f"columns={columns!r} is for other tools' records; remove it")
        elif len(source):
            arrays = {each for each, spec in there.items() if spec.shape}
            first = shown_features(source.read(slice(SHOWN), {}))
            first = {each: values for each, values in first.items() if each not in arrays}
            stored = named_features(columns, name, first, source.paths[0])
            there = {**there, **first, **stored}
        if task not in ("auto", name):
            raise UsageError(f"task={task!r}, but dataset.json says {name!r}; remove task")
        make: MakePairing = TASKS[name].declared("pairing")
        self._pairing = make(source, there, decoder)
        if (decoder.fields or decoder.boxes != BOX_FORMATS[0]) and not self._pairing.several:
            raise UsageError(f"fields and boxes are for boxes, which {name} has not; remove them")
        if source.features and not columns and stored.keys().isdisjoint(self._pairing.names):
            # Texts beside a payload of the usual name are no labels.
            stored = {each: own for each, own in stored.items() if each in self._pairing.features}
        for each, own in stored.items():
            if each not in self._pairing.features:
                raise UsageError(
                    f"{source!r}: the feature {own!r} holds texts, which nothing numbers; convert "
                    f"the records, name other columns, or read source[i]"
                )
        if self._pairing.names[0] not in there:
            raise UsageError(
                f"{source!r} has no feature {self._pairing.names[0]}, which {name} needs; read its "
                f"examples with source[i]"
            )
        known_specs = source.features if is_ours else {**OBJECTS, **TASKS[name].features}
        # Lists of other tools may begin after the first records.
        later = () if is_ours else [n for n, it in known_specs.items() if it.shape is None]
        self.names = [each for each in self._pairing.features if each in there or each in later]
        specs = {each: known_specs[each] for each in self.names}
        for each, value in self._pairing.defaults.items():
            specs[each] = replace(specs[each], default=value)
        readers = source.readers(specs, is_text=True)
        self._readers = {stored.get(name, name): reader for name, reader in readers.items()}
        if not source.features:
            labels = {"label", *names_of("label", name)} - {*there, *self.names}
            self._readers |= dict.fromkeys(labels, _absent)
        self._stored = stored
        self._to_item = self._renamed if stored else self._pairing.item
        self.threads = source.threads

    def __reduce__(self) -> Any:
        return Pairs, (*self._made_of, self._changes)

    def __repr__(self) -> str:
        return "recordgen.Pairs({!r}, {!r}, {!r}, {!r})".format(*self._made_of)

    def __len__(self) -> int:
        return len(self.source)

    def read(self, index: Any) -> Any:
        """Return inputs and their label, or a list of such pairs, as ``[index]``."""
        found = self.source.read(index, self._readers, self._to_item)
        # Beyond reading, as an error of a function says nothing about a record.
        for change in self._changes:
            found = list(map(change, found)) if is_several(index) else change(found)
        return found

    def map(self, function: Callable[[Item], _Mapped]) -> Pairs[_Mapped]:
        """Return pairs of which each item is what a function makes of it: an input or a tuple."""
        return Pairs(*self._made_of, (*self._changes, function))

    @cached_property
    def labels(self) -> Any:
        """The labels of all items, in their order, read without decoding: int64 [items].

        It is float32 [items, classes] if examples have any number of labels, and of the target's
        type for tables. Raises: UsageError: the task has no label for each example.
        """
        label = self._pairing.label
        if not label:
            raise UsageError(f"{self.source!r} has no label for each example")
        stored = self._stored.get(label, label)
        readers = {stored: self._readers[stored]}
        parts = [
            self.source.read(
                slice(at, at + _AT_ONCE), readers, lambda it: self._pairing.number(it[stored])
            )
            for at in range(0, len(self), _AT_ONCE)
        ]
        return np.array([*chain.from_iterable(parts)])

    def _renamed(self, example: Example) -> Any:
        """Return the item of an example that has other names."""
        named = {name: example[stored] for name, stored in self._stored.items()}
        return self._pairing.item({**example, **named})

    def collate(self, items: Sequence[Any]) -> Any:
        """Return items as one batch, for the ``collate_fn`` of PyTorch's ``DataLoader``.

        Numbers and arrays are stacked, lists of different lengths padded as in ``recordgen.load``;
        texts are a list. Raises: UsageError: images have different sizes.
        """
        pairing = self._pairing
        return together(items, pairing.padding, pairing.least, pairing.several)
