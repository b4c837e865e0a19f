"""Give DataFrames ``df.tensorflow``: ``import recordgen.pandas``.

``import recordgen`` does the same if pandas was imported before it, as TFRecorder's users write it.
"""

from __future__ import annotations

import pandas

from recordgen.conversion.dataframe_accessor import register

register(pandas)
