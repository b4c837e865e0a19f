"""Run a SavedModel as servers do, with TensorFlow's C++ loader, through its C API.

``tf.saved_model.load`` rebuilds a model's Python objects. TensorFlow Serving has none: it calls
``LoadSavedModel`` and runs a signature's graph in a session, and so does this module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

# TF_TString, the element of a tensor of strings (tensorflow/core/platform/ctstring_internal.h).
_STRING_BYTES = 24


class _Buffer(ctypes.Structure):
    """TF_Buffer."""

    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("free", ctypes.c_void_p))


class _Output(ctypes.Structure):
    """TF_Output."""

    _fields_ = (("operation", ctypes.c_void_p), ("index", ctypes.c_int))


class CppModel:
    """A SavedModel in a session of TensorFlow's C++ runtime.

    Attributes:
        signatures: the ``SignatureDef`` of each name.
    """

    def __init__(self, folder: str | Path) -> None:
        """Load a model. Raises: RuntimeError if the C++ loader refuses it."""
        self._graph = _library().TF_NewGraph()
        options, buffer = _library().TF_NewSessionOptions(), _library().TF_NewBuffer()
        tags = (ctypes.c_char_p * 1)(tf.saved_model.SERVING.encode())
        with _status() as status:
            self._session = _library().TF_LoadSessionFromSavedModel(
                options, None, str(folder).encode(), tags, 1, self._graph, buffer, status
            )
        content = ctypes.string_at(buffer.contents.data, buffer.contents.length)
        _library().TF_DeleteBuffer(buffer)
        _library().TF_DeleteSessionOptions(options)
        self.signatures = tf.compat.v1.MetaGraphDef.FromString(content).signature_def

    def run(self, signature: str, **inputs: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Run a signature.

        Args:
            signature: its name, such as ``serving_default``.
            **inputs: arrays or lists; of bytes or str for strings.

        Raises:
            RuntimeError: the model fails.
        """
        found = self.signatures[signature]
        assert inputs.keys() == found.inputs.keys()
        tensors = [_to_tensor(value, found.inputs[name].dtype) for name, value in inputs.items()]
        asked = list(found.outputs)
        results = (ctypes.c_void_p * len(asked))()
        with _status() as status:
            _library().TF_SessionRun(
                self._session,
                None,
                self._places(found.inputs, inputs),
                (ctypes.c_void_p * len(tensors))(*tensors),
                len(tensors),
                self._places(found.outputs, asked),
                results,
                len(asked),
                None,
                0,
                None,
                status,
            )
        answers = {name: _to_array(result) for name, result in zip(asked, results, strict=True)}
        for tensor in [*tensors, *results]:
            _library().TF_DeleteTensor(tensor)
        return answers

    def _places(self, infos: Mapping[str, Any], names: Sequence[str] | Mapping[str, Any]) -> Any:
        """Return the graph's tensors of some inputs or outputs."""
        places = (_Output * len(names))()
        for place, name in zip(places, names, strict=True):
            operation, _, index = infos[name].name.partition(":")
            place.operation = _library().TF_GraphOperationByName(self._graph, operation.encode())
            place.index = int(index)
        return places


def _to_tensor(values: Any, dtype: int) -> int:
    """Return a new TF_Tensor."""
    is_text = dtype == tf.string.as_datatype_enum
    # As objects: NumPy's own strings end before trailing zeros.
    value = np.ascontiguousarray(values, object if is_text else tf.as_dtype(dtype).as_numpy_dtype)
    shape = (ctypes.c_int64 * value.ndim)(*value.shape)
    size = value.size * _STRING_BYTES if is_text else value.nbytes
    tensor = _library().TF_AllocateTensor(dtype, shape, value.ndim, size)
    data = _library().TF_TensorData(tensor)
    if not is_text:
        ctypes.memmove(data, value.ctypes.data, size)
        return int(tensor)
    for number, text in enumerate(map(tf.compat.as_bytes, value.ravel().tolist())):
        _library().TF_StringInit(data + number * _STRING_BYTES)
        _library().TF_StringCopy(data + number * _STRING_BYTES, text, len(text))
    return int(tensor)


def _to_array(tensor: int) -> np.ndarray[Any, Any]:
    """Return a copy of a TF_Tensor."""
    shape = [_library().TF_Dim(tensor, axis) for axis in range(_library().TF_NumDims(tensor))]
    dtype = tf.as_dtype(_library().TF_TensorType(tensor))
    data, size = _library().TF_TensorData(tensor), int(np.prod(shape))
    if dtype != tf.string:
        content = ctypes.string_at(data, _library().TF_TensorByteSize(tensor))
        return np.frombuffer(content, dtype.as_numpy_dtype).reshape(shape)
    texts = np.empty(size, object)
    for number in range(size):
        place = data + number * _STRING_BYTES
        texts[number] = ctypes.string_at(
            _library().TF_StringGetDataPointer(place), _library().TF_StringGetSize(place)
        )
    return texts.reshape(shape)


@contextmanager
def _status() -> Iterator[Any]:
    """Yield a TF_Status; raise the error that a call has put into it."""
    status = _library().TF_NewStatus()
    try:
        yield status
        if _library().TF_GetCode(status):
            raise RuntimeError(_library().TF_Message(status).decode())
    finally:
        _library().TF_DeleteStatus(status)


@cache
def _library() -> ctypes.CDLL:
    """Return TensorFlow's library that this process has already loaded, not a second copy."""
    pointers, numbers, sizes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    # The wheels split the API into libraries, differently in each version. The handle of a library
    # finds the symbols of all libraries that it needs.
    folder = Path(tf.__file__).parent
    library = ctypes.CDLL(str(folder / "python/_pywrap_tensorflow_internal.so"))
    declared: dict[str, tuple[Any, list[Any]]] = {
        "TF_NewGraph": (pointers, []),
        "TF_NewSessionOptions": (pointers, []),
        "TF_DeleteSessionOptions": (None, [pointers]),
        "TF_NewBuffer": (ctypes.POINTER(_Buffer), []),
        "TF_DeleteBuffer": (None, [ctypes.POINTER(_Buffer)]),
        "TF_NewStatus": (pointers, []),
        "TF_DeleteStatus": (None, [pointers]),
        "TF_GetCode": (numbers, [pointers]),
        "TF_Message": (ctypes.c_char_p, [pointers]),
        "TF_LoadSessionFromSavedModel": (
            pointers,
            [
                *(pointers, pointers, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), numbers),
                *(pointers, ctypes.POINTER(_Buffer), pointers),
            ],
        ),
        "TF_SessionRun": (
            None,
            [
                *(pointers, pointers),
                *(ctypes.POINTER(_Output), ctypes.POINTER(pointers), numbers),
                *(ctypes.POINTER(_Output), ctypes.POINTER(pointers), numbers),
                *(pointers, numbers, pointers, pointers),
            ],
        ),
        "TF_GraphOperationByName": (pointers, [pointers, ctypes.c_char_p]),
        "TF_AllocateTensor": (pointers, [numbers, ctypes.POINTER(ctypes.c_int64), numbers, sizes]),
        "TF_DeleteTensor": (None, [pointers]),
        "TF_TensorData": (pointers, [pointers]),
        "TF_TensorByteSize": (sizes, [pointers]),
        "TF_TensorType": (numbers, [pointers]),
        "TF_NumDims": (numbers, [pointers]),
        "TF_Dim": (ctypes.c_int64, [pointers, numbers]),
        "TF_StringInit": (None, [pointers]),
        "TF_StringCopy": (None, [pointers, ctypes.c_char_p, sizes]),
        "TF_StringGetDataPointer": (pointers, [pointers]),
        "TF_StringGetSize": (sizes, [pointers]),
    }
    for name, (result, arguments) in declared.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
