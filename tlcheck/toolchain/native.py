"""Find what a native library needs from others: the part of ELF (64 bit, little endian) that says so, read without
tools.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")
_VERNEED = struct.Struct("<HHIII")
_VERNAUX = struct.Struct("<IHHII")

_SHT_DYNAMIC, _SHT_DYNSYM, _SHT_VERNEED, _SHT_VERSYM = 6, 11, 0x6FFFFFFE, 0x6FFFFFFF
_DT_NEEDED = 1
_VERSION_MASK = 0x7FFF  # the top bit of a symbol's version hides it


@dataclass(frozen=True)
class Symbol:
    """An undefined symbol, with the version that it asks for ('' if none)."""

    name: str
    version: str


@dataclass(frozen=True)
class Needs:
    """The libraries (sonames) that a library asks the loader for, and the symbols that it leaves undefined."""

    libraries: frozenset[str]
    symbols: frozenset[Symbol]


@dataclass(frozen=True)
class _Section:
    kind: int
    data: bytes
    link: int


def read_needs(path: Path) -> Needs:
    """Read one shared library. Raises ValueError for anything but a 64-bit little-endian ELF file."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        sections = _sections(image, path)
        return Needs(frozenset(_libraries(sections)), frozenset(_undefined(sections)))


def _sections(image: mmap.mmap, path: Path) -> list[_Section]:
    """The sections that matter here; the others without their data, to keep the numbering."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
    header = _HEADER.unpack_from(image)
    start, size, count = header[6], header[11], header[12]
    kinds = {_SHT_DYNAMIC, _SHT_DYNSYM, _SHT_VERNEED, _SHT_VERSYM}
    raw = [_SECTION.unpack_from(image, start + size * index) for index in range(count)]
    wanted = {index for index, entry in enumerate(raw) if entry[1] in kinds}
    wanted |= {raw[index][6] for index in wanted}  # their string tables
    return [
        _Section(entry[1], image[entry[4] : entry[4] + entry[5]] if index in wanted else b"", entry[6])
        for index, entry in enumerate(raw)
    ]


def _of_kind(sections: list[_Section], kind: int) -> tuple[bytes, bytes]:
    """Data and string table of the one section of a kind; empty if the library has none."""
    for section in sections:
        if section.kind == kind:
            return section.data, sections[section.link].data
    return b"", b""


def _text(strings: bytes, offset: int) -> str:
    return strings[offset : strings.index(b"\0", offset)].decode()


def _libraries(sections: list[_Section]) -> Iterator[str]:
    data, strings = _of_kind(sections, _SHT_DYNAMIC)
    for tag, value in _DYNAMIC.iter_unpack(data):
        if tag == _DT_NEEDED:
            yield _text(strings, value)


def _undefined(sections: list[_Section]) -> Iterator[Symbol]:
    data, strings = _of_kind(sections, _SHT_DYNSYM)
    versym, _ = _of_kind(sections, _SHT_VERSYM)
    versions = dict(_versions(*_of_kind(sections, _SHT_VERNEED)))
    for index, (name, _, _, section, _, _) in enumerate(_SYMBOL.iter_unpack(data)):
        if section == 0 and name:
            number = int.from_bytes(versym[2 * index : 2 * index + 2], "little") & _VERSION_MASK
            yield Symbol(_text(strings, name), versions.get(number, ""))


def _versions(data: bytes, strings: bytes) -> Iterator[tuple[int, str]]:
    """Number and name of each version that the library asks for."""
    need = 0
    while data:
        _, count, _, aux, following = _VERNEED.unpack_from(data, need)
        entry = need + aux
        for _ in range(count):
            _, _, number, name, step = _VERNAUX.unpack_from(data, entry)
            yield number, _text(strings, name)
            entry += step
        if not following:
            return
        need += following
