"""Inputs and labels of a source, as ``recordgen.load`` gives them: a sequence, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from recordgen.access.batches import BatchedSequence, together
from recordgen.access.decode import Decoder
from recordgen.access.named_features import named_features
from recordgen.access.records import Example, Records
from recordgen.core.dataset.manifest import EXAMPLES
from recordgen.errors import UsageError
from recordgen.features import OBJECTS
from recordgen.registry import OF_OTHER_RECORDS, TASKS


@dataclass(frozen=True)
class Pairing:
    """How examples of a task become inputs and labels.

    The attribute ``pairing`` of a task names a function of the source, the names of its features
    and a :class:`Decoder` that returns a pairing.

    Attributes:
        names: the features that are read, if records have them; the first is needed.
        item: returns the inputs of an example, or a tuple of inputs, label, and weight. Raises
            ValueError: the example is damaged.
        defaults: values of records that lack a feature, instead of those in its spec.
        padding, least, several: how batches are padded, see
            :func:`recordgen.access.batches.together`.
    """

    names: Sequence[str]
    item: Callable[[Example], Any]
    defaults: Mapping[str, float] = field(default_factory=dict)
    padding: int = 0
    least: int = 0
    several: Collection[str] = ()


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

    def item(example: Example) -> Any:
        number = example[label]
        if number.ndim and count:
            several = np.zeros(count, np.float32)
            several[number] = 1
            number = several
        return inputs(example), number

    return Pairing((*names, label), item)


class Pairs(BatchedSequence):
    """The inputs and labels of a source: ``(uint8 [224, 224, 3], 3)``, ``("Good.", 1)``.

    :meth:`recordgen.access.source.Source.images` says what they are for each task.

    Attributes:
        class_names: the labels, in the order of their numbers.
    """

    def __init__(
        self, source: Records, decoder: Decoder, task: str = "auto", columns: str = ""
    ) -> None:
        """Prepare to read pairs. Raises: UsageError: the records lack what the task needs."""
        self.source = source
        self.class_names = source.class_names
        self._made_of = (source, decoder, task, columns)
        known = source.dataset
        there: Mapping[str, Any] = source.features or (source[0] if len(source) else {})
        is_ours = known is not None and known.task != EXAMPLES
        named = OF_OTHER_RECORDS if task == "auto" else task
        name = known.task if known is not None and is_ours else named
        if task not in ("auto", name):
            raise UsageError(f"task={task!r}, but dataset.json says {name!r}; remove task")
        # The names of features in other tools' records.
        stored = {}
        if not source.features and there:
            stored = named_features(columns, name, there, repr(source))
            there = {**there, **stored}
        make: MakePairing = TASKS[name].declared("pairing")
        self._pairing = make(source, there, decoder)
        if decoder.fields and not self._pairing.several:
            raise UsageError(f"fields={list(decoder.fields)}: {name} has no boxes; remove them")
        self.names = [each for each in self._pairing.names if each in there]
        if self._pairing.names[0] not in there:
            raise UsageError(
                f"{source!r} has no feature {self._pairing.names[0]}, which {name} needs; read its "
                f"examples with source[i]"
            )
        known_specs = source.features if is_ours else {**OBJECTS, **TASKS[name].features}
        specs = {each: known_specs[each] for each in self.names}
        for each, value in self._pairing.defaults.items():
            specs[each] = replace(specs[each], default=value)
        readers = source.readers(specs, is_text=True)
        self._readers = {stored.get(name, name): reader for name, reader in readers.items()}
        self._stored = stored
        self._to_item = self._item if stored else self._pairing.item
        self.threads = source.threads

    def __reduce__(self) -> Any:
        return Pairs, self._made_of

    def __repr__(self) -> str:
        return "recordgen.Pairs({!r}, {!r}, {!r}, {!r})".format(*self._made_of)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: Any) -> Any:
        """Return inputs and their label, or a list of such pairs.

        Raises: IndexError: there is no such record; RecordError: a record or an image is damaged.
        """
        return self.source.read(index, self._readers, self._to_item)

    def _item(self, example: Example) -> Any:
        """Return inputs and label of another tool's example, under Recordgen's names."""
        named = {name: example[stored] for name, stored in self._stored.items()}
        return self._pairing.item({**example, **named})

    def collate(self, items: Sequence[Any]) -> Any:
        """Return items as one batch, for the ``collate_fn`` of PyTorch's ``DataLoader``.

        Numbers and arrays are stacked, lists of different lengths padded as in ``recordgen.load``;
        texts are a list. Raises: UsageError: images have different sizes.
        """
        pairing = self._pairing
        return together(items, pairing.padding, pairing.least, pairing.several)
