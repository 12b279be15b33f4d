"""Host copies of all variables, so that a checkpoint can be written while training goes on.

A read value of a TensorFlow variable shares the variable's memory, and an update that finds it
shared copies the variable first. So to hold read values while training goes on would be right, but
the next step would pay: for new memory, twice the state on the device, and every page of it touched
for the first time. Hence real copies, into host memory that is used again by every snapshot:

- one compiled function reads all variables, which on an accelerator brings them to the host;
- threads copy the values into the buffers (NumPy lets go of the interpreter meanwhile), and the
  values are let go of before the next step;
- the buffers are tensors as well, over the same memory, so that writing them copies nothing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tandem.training.states import write_tensors

_ALIGNMENT_BYTES = 64  # what TensorFlow demands of memory that it shall use in place
_MAX_THREADS = 8  # more don't copy faster: the memory is busy
_PIECE_BYTES = 1 << 22
_PARALLEL_BYTES = 1 << 25  # below, waking threads takes longer than copying


class Snapshot:
    """The values that variables had at one moment; `release` it when it is written."""

    def __init__(self, owner: Snapshots, buffers: _Buffers) -> None:
        self._owner = owner
        self._buffers = buffers

    @property
    def num_bytes(self) -> int:
        """Of all values."""
        return self._buffers.num_bytes

    def write(self, prefix: Path) -> None:
        """Writes the very files that `states.save_tensors` would have written at that moment."""
        write_tensors(self._owner.names, self._buffers.tensors, prefix)

    def release(self) -> None:
        """Gives the memory back, for the next snapshot."""
        self._owner.take_back(self._buffers)


class Snapshots:
    """Takes snapshots; keeps as much host memory as there were ever snapshots at once.

    Args:
        tensors: the variables by the names that they are saved under.
    """

    def __init__(self, tensors: Mapping[str, tf.Variable]) -> None:
        self.names = list(tensors)
        self._variables = list(tensors.values())
        self._threads = ThreadPoolExecutor(
            min(_MAX_THREADS, os.cpu_count() or 1), thread_name_prefix="snapshot"
        )
        self._read = tf.function(self._read_all).get_concrete_function()
        self._free = deque([_Buffers(self._variables)])

    def take(self) -> Snapshot:
        """Copies all variables as they are now; no step may be under way."""
        try:
            buffers = self._free.popleft()
        except IndexError:
            buffers = _Buffers(self._variables)
        buffers.fill(self._read(), self._threads)
        return Snapshot(self, buffers)

    def take_back(self, buffers: _Buffers) -> None:
        """See `Snapshot.release`; from any thread."""
        self._free.append(buffers)

    def _read_all(self) -> list[tf.Tensor]:
        with tf.device("/CPU:0"):
            return [tf.identity(variable.read_value()) for variable in self._variables]


class _Buffers:
    """Host memory for one snapshot: arrays, and tensors over the same memory."""

    def __init__(self, variables: Sequence[tf.Variable]) -> None:
        kinds = [np.dtype(variable.dtype.as_numpy_dtype) for variable in variables]
        sizes = [
            kind.itemsize * variable.shape.num_elements()
            for kind, variable in zip(kinds, variables, strict=True)
        ]
        self.num_bytes = sum(sizes)
        memory = _touched_memory(sum(map(_aligned, sizes)))
        self._arrays: list[np.ndarray[Any, Any]] = []
        start = 0
        for kind, size, variable in zip(kinds, sizes, variables, strict=True):
            part = memory[start : start + size].view(kind)
            self._arrays.append(part.reshape(variable.shape.as_list()))
            start += _aligned(size)
        self.tensors = [
            tf.experimental.dlpack.from_dlpack(array.__dlpack__()) for array in self._arrays
        ]

    def fill(self, values: Sequence[tf.Tensor], threads: ThreadPoolExecutor) -> None:
        sources = [np.asarray(memoryview(value)) for value in values]
        if self.num_bytes < _PARALLEL_BYTES:
            for target, source in zip(self._arrays, sources, strict=True):
                np.copyto(target, source)
            return
        pieces = [
            piece
            for target, source in zip(self._arrays, sources, strict=True)
            for piece in _pieces(target, source)
        ]
        for _ in threads.map(lambda piece: np.copyto(*piece), pieces, chunksize=1):
            pass


def _pieces(
    target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]
) -> Iterable[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Cuts a large pair into pieces, so that the threads have equally much to do."""
    target, source = target.reshape(-1), source.reshape(-1)
    step = max(1, _PIECE_BYTES // target.itemsize)
    for start in range(0, target.size, step):
        yield target[start : start + step], source[start : start + step]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def _touched_memory(size: int) -> np.ndarray[Any, Any]:
    """Aligned memory that the system has really given: first use is slow, and happens here."""
    memory = np.empty(size + _ALIGNMENT_BYTES, np.uint8)
    memory.fill(0)
    offset = -memory.ctypes.data % _ALIGNMENT_BYTES
    return memory[offset : offset + size]
