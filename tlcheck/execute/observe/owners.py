"""Find who owns the elements of a tensor: the lane that alone has accessed an element, whatever synchronization there
was.

As in the exclusive state of Eraser (Savage et al., TOCS 1997): what one lane alone uses is in order without a look at
clocks. Blocks have no order, and kernels seldom share elements of what they write within a block.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.values import Array, lengthened

_MANY = -1  # as the reader of an element


class Owners:
    """The writer and the reader of each element: the lane's number from 1 on; 0 for none; of a bulk copy less than -1.

    doubled: several lanes of the last write had one element.
    """

    def __init__(self) -> None:
        self._writer, self._reader = np.zeros((2, 0), np.int32)
        self._atomic = np.zeros(0, np.bool_)
        self.doubled = False

    def access(self, kind: str, cell: Array, lane: Array, size: int, bulk: bool) -> bool:
        """Record an access to elements of a tensor. Whether it may race with another one.

        cell, lane: of each element. size: of the tensor, in cells. bulk: bulk copies access them, which lanes begin.
        """
        if len(self._writer) < size:
            self._writer, self._reader, self._atomic = (
                lengthened(owner, size) for owner in (self._writer, self._reader, self._atomic)
            )
        me = _MANY - lane if bulk else lane
        writer, reader = self._writer[cell], self._reader[cell]
        others = (writer != 0) & ((writer != me) | ((writer < 0) & (kind == "read")))
        if kind != "read":
            others |= (reader != 0) & (reader != me)
        if kind != "atomic":
            others |= self._atomic[cell]
        if kind == "write":
            self._writer[cell] = me
            self.doubled = bool((self._writer[cell] != me).any())
        elif kind == "atomic":
            self._atomic[cell] = True
        else:
            self._reader[cell] = me
            several = (self._reader[cell] != me) | ((reader != 0) & (reader != me))
            self._reader[cell[several]] = _MANY
        return bool(others.any())
