"""What a task is called, and where the parts are that are not its own code."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

from recordgen.errors import UsageError
from recordgen.registry import imported


class Declaration(ABC):
    """The names of a task.

    Anything that is not a task's own code is a path, ``package.module:name``, that is imported when
    it is needed (see :meth:`declared`). So converting does not import TensorFlow, and reading does
    not import Beam.

    Class attributes:
        name: its name in ``--task`` and ``dataset.json``.
        kind: kind of its payloads: ``image``, ``text``, ``table`` or ``video``; ``entities`` for
            texts that are read token by token; or a word of its own. Messages and the detection of
            formats use it.
        noun: the word for an example in messages.
        reading: how records are read, a :class:`recordgen.reading.kinds.Kind`.
        pairing: what :meth:`recordgen.access.source.Source.pairs` returns, a function that
            :class:`recordgen.access.pairs.Pairing` describes, or None.
        trainer: the model, a subclass of :class:`recordgen.training.learner.TaskTrainer`, or None.
        measure: the metrics, a :class:`recordgen.training.measures.EvalAccumulator`, or None.
        sample: the data of the demo, a :class:`pipelines.samples.Sample`, or None.
        page: the page of the documentation, or its URL.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    noun: ClassVar[str]
    reading: ClassVar[str]
    pairing: ClassVar[str | None] = None
    trainer: ClassVar[str | None] = None
    measure: ClassVar[str | None] = None
    sample: ClassVar[str | None] = None
    page: ClassVar[str] = ""

    @classmethod
    def declared(cls, what: str) -> Any:
        """Import the object that a class attribute names: ``declared("trainer")``.

        Raises:
            UsageError: the attribute is None, or its object cannot be imported.
        """
        path = getattr(cls, what)
        if path is None:
            raise UsageError(f"the task {cls.name} has no {what}")
        try:
            return imported(path)
        except (ImportError, AttributeError) as exc:
            raise UsageError(
                f"the {what} of the task {cls.name} cannot be imported ({path}): {exc}"
            ) from exc
