"""Describe what was done to tensors without values, so that values can be made when the script asks for one.

Every operation that torch has followed without values (at the level of its dispatcher, `backward()` included) and every
launch of a kernel is an entry. Tensors are known by the storage that they are views of. To make the values of
a storage, the entries that it depends on are done on the CPU, in their order; others wait. Values that no tensor of
the script and no other entry will ask for again are given up as soon as they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves, tree_map

from tlcheck.worker.capture.interpreted import Executor
from tlcheck.worker.capture.passed import PassedCalls
from tlcheck.worker.capture.unseen import NoValuesError

_MOST = 100_000  # entries
_UNKNOWN = -1  # in a key: no value is that of this content
_PART = 16  # so many times as many bytes may be made on the way to values that nobody has asked for
_BYTES = 1 << 31  # of all values that are held at once
_ATEN = torch.ops.aten
_PRODUCTS = {_ATEN.mm.default, _ATEN.bmm.default, _ATEN.addmm.default, _ATEN.baddbmm.default}
Key = tuple[int, int]  # a storage, and which content of it: a tensor with values may be written by torch itself


@dataclass(frozen=True)
class TapedView:
    """A tensor, as a view of a storage."""

    key: Key
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(eq=False)
class _TapedCall:
    """Something that was done. kernel: that was launched, None for an operation of torch.

    made: views that it returned. changed: storages that were there before, and that it writes. draws: the state of
    torch's generator, for an operation that draws from it.
    """

    do: Callable[..., Any] | None
    kernel: str
    args: Any
    kwargs: Any
    made: list[TapedView | None] = field(default_factory=list)
    changed: frozenset[Key] = frozenset()
    draws: Any = None

    @property
    def makes_room(self) -> bool:
        """Whether it leaves what it makes as it finds it: zeros here, so that every run has the same."""
        return self.do is not None and self.do.__name__.startswith(("empty", "new_empty"))

    @property
    def read(self) -> frozenset[Key]:
        return frozenset(leaf.key for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, TapedView))

    @property
    def written(self) -> frozenset[Key]:
        return self.changed | {view.key for view in self.made if view is not None}


class _TapedStorage:
    """A storage of the script. While it is known here no other one gets its address, even when it is gone."""

    def __init__(self, storage: Any) -> None:
        self._weak, self.bytes = StorageWeakRef(storage), int(storage.nbytes())

    @property
    def is_held(self) -> bool:
        """Whether a tensor is left that is a view of it."""
        return not self._weak.expired()


class Tape:
    """The entries that were not done yet, and the values of what was. calls: whether what calls pass is kept."""

    def __init__(self, executor: Executor, *, calls: bool) -> None:
        self._executor = executor
        self._entries: list[_TapedCall] = []
        self._storages: dict[Key, _TapedStorage] = {}
        self._values: dict[Key, Any] = {}  # storages on the CPU
        self._stale: dict[int, tuple[Key, Any]] = {}  # tensors with values that an entry writes
        self._filled: Counter[int] = Counter()  # how often each was given what an entry wrote: unknown to torch
        self._lost: dict[int, _TapedStorage] = {}  # of tensors with values that nobody knows
        self.loss = NoValuesError("")  # why the last of them was lost
        self._bytes = 0
        self.passed = PassedCalls(self.known, wanted=calls)
        self._addressed = False  # whether a kernel made pointers of numbers, and may have written any tensor

    @contextmanager
    def trying(self) -> Iterator[Callable[[], None]]:
        """Forget what is noted within, unless a call of what this gives keeps it."""
        length, stale, kept = len(self._entries), dict(self._stale), list[bool]()
        try:
            yield lambda: kept.append(True)
        finally:
            if not kept:
                draws = [entry.draws for entry in self._entries[length:] if entry.draws is not None]
                if draws:
                    torch.random.set_rng_state(draws[0])
                del self._entries[length:]
                self._stale = stale

    def note(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        """An operation that torch has done without values."""
        if len(self._entries) > _MOST:
            return
        if not hasattr(func, "_schema"):  # a higher-order operator, such as torch's launch of a kernel of Triton's
            self.launch("", tree_leaves((args, kwargs, made)))
            return
        outputs = [leaf if isinstance(leaf, torch.Tensor) else None for leaf in tree_leaves(made)]
        before = {_address(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        # the tensors that an operation writes, by its schema
        given = {**{a.name: v for a, v in zip(func._schema.arguments, args, strict=False)}, **kwargs}
        names = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        changed = [leaf for name in names for leaf in tree_leaves(given.get(name)) if isinstance(leaf, torch.Tensor)]
        if not changed and all(t is None or _address(t) in before for t in outputs):
            return  # a view, which its storage and strides say all of
        noted_args, noted_kwargs = self._noted(args), self._noted(kwargs)
        views = [None if t is None or _address(t) in before else self._view(t) for t in outputs]
        keys = frozenset(self._view(t).key for t in changed)
        is_drawn = torch.Tag.nondeterministic_seeded in func.tags and kwargs.get("generator") is None
        draws = _drawn() if is_drawn else None
        self._entries.append(_TapedCall(func, "", noted_args, noted_kwargs, views, keys, draws))
        self._mark(changed)

    def launch(self, kernel: str, arguments: Sequence[Any], *, addressed: bool = False) -> None:
        """A kernel that was launched on these arguments, in the order of its parameters.

        addressed: it makes pointers of numbers. What it writes there is not seen here, so that from now on no tensor's
        values are known.
        """
        self._addressed |= addressed
        if len(self._entries) > _MOST:
            return
        with torch._C.DisableTorchFunction():
            with torch.no_grad():
                self.passed.note(kernel, arguments)
            tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
            keys = frozenset(self._view(t).key for t in tensors)
            self._entries.append(_TapedCall(None, kernel, self._noted(list(arguments)), {}, [], keys))
            self._mark(tensors)

    def value(self, tensor: Any) -> Any:
        """A tensor on the CPU with the values of one without. Raises NoValuesError."""
        view = self._view(tensor)
        with self._executor.waiting(), torch.no_grad():
            self._make(view.key)
            return self._tensor(view).clone()

    def known(self, tensor: Any, most: int) -> Any:
        """A tensor on the CPU with the values that torch alone has given it, of at most so many bytes.

        None where a launch or nobody has made them, or room that nothing was put into. Nothing changes here by that.
        """
        view, other = self._view(tensor), copy(self)
        if self._addressed or self._storages[view.key].bytes > most:
            return None
        other._entries, other._values = list(self._entries), dict(self._values)
        try:
            chain = other._needed(view.key)
            written = [entry for entry in chain if view.key in entry.written]
            size = sum(self._storages[key].bytes for key in {key for entry in chain for key in entry.written})
            if any(entry.do is None for entry in chain) or size > _PART * most:
                return None
            if written and all(entry.makes_room for entry in written):
                return None
            other._values |= {
                key: other._values[key].clone() for e in chain for key in e.changed & other._values.keys()
            }
            for entry in chain:
                other._do(entry)
            return other._tensor(view).clone()
        except Exception:  # an operation that the CPU has not, or a kernel of which nobody knows what it writes
            return None

    def settle(self, tensors: Iterable[Any]) -> bool:
        """Give tensors that have values those that entries have written; whether all of them have theirs."""
        all_made = True
        for tensor in tensors if self._stale or self._lost else ():
            address = _address(tensor)
            stale = self._stale.pop(address, None)
            if stale is None:
                all_made = all_made and address not in self._lost
                continue
            key, owner = stale
            try:
                with self._executor.waiting(), torch.no_grad():
                    self._make(key)
            except NoValuesError as loss:
                self.loss = loss
                self.lose([owner])  # it keeps what was in it before
                all_made = False
                continue
            owner.untyped_storage().copy_(self._values[key])
            self._filled[address] += 1
            self._lost.pop(address, None)
        return all_made

    def lose(self, tensors: Iterable[Any]) -> None:
        """Take down that what is in these tensors is not what a GPU would have there."""
        for tensor in tensors:
            if not isinstance(tensor, FakeTensor):
                self._lost[_address(tensor)] = _TapedStorage(tensor.untyped_storage())

    def _mark(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if not isinstance(tensor, FakeTensor):
                self._stale.setdefault(_address(tensor), (self._view(tensor).key, tensor))

    def _noted(self, values: Any) -> Any:
        return tree_map(lambda value: self._view(value) if isinstance(value, torch.Tensor) else value, values)

    def _view(self, tensor: Any) -> TapedView:
        address = _address(tensor)
        if isinstance(tensor, FakeTensor):
            key = (address, 0)
        elif address in self._stale:
            key = self._stale[address][0]
        elif address in self._lost:
            key = (address, _UNKNOWN)
        else:
            key = (address, self._content(tensor, address))
            if key not in self._values:
                self._values[key] = tensor.untyped_storage().clone()
        if key not in self._storages:
            self._storages[key] = _TapedStorage(tensor.untyped_storage())
        return TapedView(key, tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())

    def _content(self, tensor: Any, address: int) -> int:
        """A number for what is in a tensor with values just now."""
        if not tensor.is_inference():
            return 1 + int(tensor._version) + self._filled[address]
        kept = self._values.get((address, 1 + self._filled[address]))
        if kept is not None and not torch.equal(_in_bytes(kept), _in_bytes(tensor.untyped_storage())):
            self._filled[address] += 1  # torch counts no versions of these
        return 1 + self._filled[address]

    def _make(self, key: Key) -> None:
        """Do what a storage depends on."""
        if self._addressed:
            raise NoValuesError("a kernel that makes pointers of numbers may have written it")
        chain = self._needed(key)
        kept = self._forget(chain, key)
        last = {used: entry for entry in chain for used in entry.read | entry.written}
        self._require_room(chain, kept, last)
        for entry in chain:
            self._executor.require_time()
            self._do(entry)
            self._entries.remove(entry)
            self._give_up(used for used in entry.read | entry.written if last[used] is entry and used not in kept)
        if key not in self._values:
            raise NoValuesError("nobody knows where its values come from")

    def _needed(self, key: Key) -> list[_TapedCall]:
        """The entries to be done, in order: those that write what is needed, and before one that changes a storage
        those that read it as it was."""
        needed, changed, found = {key}, set[Key](), list[_TapedCall]()
        for entry in reversed(self._entries):
            # find out what a launched kernel writes, once that matters: until then it may be all of its tensors
            if entry.kernel and entry.changed & (needed | changed):
                written = self._executor.written(entry.kernel)
                views = [entry.args[place] for place in written]
                entry.changed = frozenset(view.key for view in views if isinstance(view, TapedView))
            if entry.written & needed or entry.read & changed:
                needed |= entry.read | entry.changed
                changed |= entry.changed
                found.append(entry)
        unknown = any(content == _UNKNOWN for _, content in needed)
        if unknown or needed - self._values.keys() - {made for entry in found for made in entry.written}:
            raise NoValuesError("nobody knows where its values come from")
        return found[::-1]

    def _forget(self, chain: Sequence[_TapedCall], key: Key) -> set[Key]:
        """Drop the entries and values that nobody can ask for any more. Returns what is kept after a chain is done."""
        held = {each for each, storage in self._storages.items() if _is_without_values(each) and storage.is_held}
        kept = held | {key} | {stale for stale, _ in self._stale.values()}
        doing, left = set(chain), list[_TapedCall]()
        for entry in reversed(self._entries):
            if entry in doing:
                left.append(entry)
            elif entry.written & kept:
                kept |= entry.read | entry.changed
                left.append(entry)
        self._entries = left[::-1]
        used = kept.union(*(entry.read | entry.written for entry in self._entries))
        self._give_up([each for each in self._values if each not in used])
        self._storages = {each: storage for each, storage in self._storages.items() if each in used}
        return kept

    def _give_up(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if self._values.pop(key, None) is not None and _is_without_values(key):
                self._bytes -= self._storages[key].bytes

    def _require_room(self, chain: Sequence[_TapedCall], kept: set[Key], last: Mapping[Key, _TapedCall]) -> None:
        """Raise NoValuesError if doing the entries would hold too much at once."""
        held, size = set(self._values), self._bytes
        for entry in chain:
            size += sum(self._storages[made].bytes for made in entry.written - held)
            held |= entry.written
            if size > _BYTES:
                raise NoValuesError(f"its values would take more than {_BYTES >> 30} GiB")
            over = {used for used in entry.read | entry.written if last[used] is entry and used not in kept}
            size -= sum(self._storages[used].bytes for used in over if _is_without_values(used))

    def _do(self, entry: _TapedCall) -> None:
        args, kwargs = self._real(entry.args), self._real(entry.kwargs)
        if entry.do is None:
            self._executor.run(entry.kernel, args)
            return
        with torch.random.fork_rng(devices=[]):
            if entry.draws is not None:
                torch.random.set_rng_state(entry.draws)
            outputs = tree_leaves(done_as_on_a_gpu(entry.do, args, kwargs))
        for view, output in zip(entry.made, outputs, strict=True):
            if view is not None:
                self._keep(view, output.zero_() if entry.makes_room else output)

    def _keep(self, view: TapedView, output: Any) -> None:
        """Take an operation's output for the values of a storage."""
        size = self._storages[view.key].bytes
        self._bytes += size
        same = (output.stride(), output.storage_offset()) == (view.strides, view.offset)
        if same and output.untyped_storage().nbytes() >= size:
            self._values[view.key] = output.untyped_storage()
            return
        self._values[view.key] = torch.empty(size, dtype=torch.uint8).untyped_storage()
        self._tensor(view).copy_(output)

    def _real(self, values: Any) -> Any:
        return tree_map(lambda value: self._tensor(value) if isinstance(value, TapedView) else value, values)

    def _tensor(self, view: TapedView) -> Any:
        """A view of the values of its storage."""
        empty = torch.empty(0, dtype=view.dtype)
        return empty.set_(self._values[view.key], view.offset, view.shape, view.strides)


def _is_without_values(key: Key) -> bool:
    """Whether it is of a tensor without values: others are copied here when something is noted of them."""
    return key[1] == 0


def done_as_on_a_gpu(do: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Do an operation of torch on the CPU. A product of 16-bit floats is computed in float32 and rounded once.

    A GPU does the same. A CPU without instructions for these types takes 70 times as long for them as for float32.
    """
    dtypes = {leaf.dtype for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)}
    if do not in _PRODUCTS or len(dtypes) != 1 or not dtypes <= {torch.float16, torch.bfloat16}:
        return do(*args, **kwargs)
    wide_args, wide_kwargs = tree_map(lambda v: v.float() if isinstance(v, torch.Tensor) else v, (args, kwargs))
    return do(*wide_args, **wide_kwargs).to(*dtypes)


def _drawn() -> Any:
    """The state of torch's generator, which goes on: what is drawn next is something else, as it would be."""
    state = torch.random.get_rng_state()
    torch.rand(1)
    return state


def _in_bytes(storage: Any) -> Any:
    return torch.empty(0, dtype=torch.uint8).set_(storage)


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)
