"""Give DataFrames ``df.tensorflow``, as in TFRecorder: ``import recordgen.pandas``.

``import recordgen`` does the same if pandas was imported before it, as TFRecorder's users write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas

from recordgen.errors import UsageError
from recordgen.options import takes_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recordgen.conversion.results import ConversionResult
    from recordgen.options import OptionValues


class TensorFlowAccessor:
    """Converts its DataFrame (columns ``split``, ``image_uri``, ``label``)."""

    def __init__(self, frame: pandas.DataFrame) -> None:
        self._frame = frame

    @takes_options
    def to_tfrecord(
        self,
        output_dir: str,
        *,
        runner: str = "DirectRunner",
        project: str | None = None,
        region: str | None = None,
        dataflow_options: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        **options: Unpack[OptionValues],
    ) -> ConversionResult:
        """Convert the DataFrame's rows; see :func:`recordgen.convert`.

        Args:
            output_dir: folder or URL prefix to write.
            runner: a Beam runner's name in any case, such as ``DataFlowRunner``.
            project: Google Cloud project, for Dataflow.
            region: Google Cloud region, for Dataflow.
            dataflow_options: further Beam flags by name, such as ``{"num_workers": 8}``; True means
                a flag without a value.
            overwrite: replace an existing dataset.
            **options: the options of :func:`recordgen.convert`.

        Raises: UsageError: Dataflow without project or region; otherwise as ``convert``.
        """
        from recordgen.conversion.doors import convert

        if runner.lower() == "dataflowrunner" and not (project and region):
            raise UsageError(
                f"runner={runner!r} needs project= and region= (got project={project!r}, "
                f"region={region!r})"
            )
        flags = {"runner": runner, "project": project, "region": region, **(dataflow_options or {})}
        beam_args = [
            f"--{name}" if value is True else f"--{name}={value}"
            for name, value in flags.items()
            if value is not None and value is not False
        ]
        return convert(self._frame, output_dir, overwrite=overwrite, beam_args=beam_args, **options)

    to_tfr = to_tfrecord


if not hasattr(pandas.DataFrame, "tensorflow"):
    pandas.api.extensions.register_dataframe_accessor("tensorflow")(TensorFlowAccessor)
