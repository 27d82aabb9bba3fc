# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The copies of a checkpoint (docs/formats/checkpoint.md). Items are read only when they are asked for. Each block
is checked against its checksum."""
from __future__ import annotations

import os
import re
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .binary import MOST_ELEMENTS, Fields, element_type, elements_of, read_range, text_of, xxh3_64
from .errors import FormatError, NotThereError, UnsupportedError
from .threads import side_by_side

if TYPE_CHECKING:
    import xarray

HEADER_BYTES, FOOTER_BYTES = 128, 96
MOST_DIRECTORY, MOST_GENERATION, MOST_TABLE = 1 << 30, 1 << 48, 1 << 30
UNOWNED = 0x10000  # added to the type of an item that has elements in no part
MOST_RUNS = 20_000_000  # with more runs, Checkpoint checks numbers of elements only


@dataclass(frozen=True)
class Item:
    """A scalar or an array of a checkpoint."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    has_unowned: bool = False  # elements that no rank owned are in no part; they are read as zeros

    @property
    def elements(self) -> int:
        return elements_of(self.shape, self.name)


@dataclass(frozen=True)
class _Map:
    """Groups of runs (global, count, stride, rows), the number of their elements, and the end of the last run."""

    rows: np.ndarray
    elements: int
    end: int

    @staticmethod
    def of(rows: np.ndarray, what: str) -> _Map:
        """Returns the map of these groups. Raises FormatError if a group is impossible."""
        begin, count, stride, number = rows.T
        several = number > 1
        # Calculate in floating-point numbers first: products of int64 may wrap.
        ends = begin.astype(float) + np.where(several, (number.astype(float) - 1) * stride, 0) + count
        if len(rows) and (min(begin.min(), count.min() - 1, number.min() - 1) < 0 or (stride[several] <= count[several]).any() or
                          max(ends.max(), (count.astype(float) * number).sum()) > MOST_ELEMENTS):
            raise FormatError(f"{what}: a map has a group without elements, or one that no item has")
        ends = begin + np.where(several, (number - 1) * stride, 0) + count
        return _Map(rows, int((count * number).sum()), int(ends.max(initial=0)))


@dataclass(frozen=True)
class _Stored:
    """The part of an item in one part of the copy: groups of runs (global, count, stride, rows), and blocks
    (checksum, stored bytes)."""

    part: int
    item: int
    rows: np.ndarray
    offset: int
    length: int
    blocks: np.ndarray


@dataclass(frozen=True)
class _Part:
    number: int
    path: str
    begin: int
    coding: int
    block_bytes: int
    stored: tuple[_Stored, ...]


class Checkpoint(Mapping[str, np.ndarray]):
    """One whole copy of a checkpoint: a mapping from names to items, which are numpy arrays. Reading a damaged block
    raises FormatError."""

    def __init__(self, path: str) -> None:
        self.path = path
        header = _header(path)
        self._id, self.is_local, self._count, begun, place = header
        self.run, self.generation = uuid.UUID(bytes=self._id[:16]), int(struct.unpack("<q", self._id[16:])[0])
        #: Time at which the save began, in seconds since 1970-01-01T00:00Z.
        self.begun = begun
        directory = _extent(path, 0, place, MOST_DIRECTORY, "the directory")
        items, places = _directory(directory, self._id, self._count, path)
        self.items_by_name = {item.name: item for item in items}
        self._numbers = {item.name: number for number, item in enumerate(items)}
        self._parts = [self._part(number, begin, length, items) for number, (begin, length) in enumerate(places)]
        self._of_item: dict[int, list[tuple[_Part, _Stored]]] = {}
        for part in self._parts:
            for stored in part.stored:
                self._of_item.setdefault(stored.item, []).append((part, stored))
        covered: set[tuple[int, ...]] = set()
        #: Numbers of the items with so many runs that their places are compared only when the item is read.
        self._late: set[int] = set()
        for number, item in enumerate(items):
            if not _check_cover(item, [stored for _, stored in self._of_item.get(number, [])], path, covered):
                self._late.add(number)

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)

    def __repr__(self) -> str:
        return f"<tailrace.Checkpoint {self.path}: generation {self.generation}, {', '.join(self.items_by_name)}>"

    def item(self, name: str) -> Item:
        """Returns type and shape of an item."""
        if name not in self.items_by_name:
            raise NotThereError(f'{self.path}: no item "{name}"; there are {", ".join(self.items_by_name)}')
        return self.items_by_name[name]

    def __getitem__(self, name: str) -> np.ndarray:
        """Reads an item and returns its values in a new array."""
        item, number = self.item(name), self._numbers[name]
        out = (np.zeros if item.has_unowned else np.empty)(item.elements, item.dtype)
        there = np.zeros(item.elements, bool) if number in self._late and not item.has_unowned else None
        for part, stored in self._of_item.get(number, []):
            elements = self._elements(part, stored, item)
            _place(out, stored.rows, elements)
            if there is not None:
                _place(there, stored.rows, np.ones(len(elements), bool))
        if there is not None and not there.all():
            raise FormatError(_twice(self.path, item))
        return out.reshape(item.shape).astype(item.dtype.newbyteorder("="), copy=False)

    def verify(self) -> None:
        """Reads all blocks. Raises FormatError, naming the block, if one is damaged."""
        for name in self:
            for part, stored in self._of_item.get(self._numbers[name], []):
                self._elements(part, stored, self.item(name))

    def to_xarray(self) -> xarray.Dataset:
        """Returns a Dataset with all items as variables, which are read only when they are asked for."""
        from .checkpoint_dataset import to_dataset
        return to_dataset(self)

    # ---- parts -------------------------------------------------------------------------------------------------

    def _part(self, number: int, begin: int, length: int, items: Sequence[Item]) -> _Part:
        path = f"{self.path}.r{number:05d}" if self.is_local else self.path
        what = f"{path}, part {number}"
        try:
            size = os.stat(path).st_size
        except FileNotFoundError as error:
            raise FormatError(f"{what}: the file is not there") from error
        if begin < 0 or length < FOOTER_BYTES or begin > size or length > size - begin or (self.is_local and size != begin + length):
            raise FormatError(f"{what}: it takes bytes {begin} to {begin + length} of {size}")
        foot = read_range(path, begin + length - FOOTER_BYTES, FOOTER_BYTES)
        if foot[:8] != b"TRCKEND1" or struct.unpack("<Q", foot[-8:])[0] != xxh3_64(foot[:-8]):
            raise FormatError(f"{what}: its footer is damaged")
        fields = Fields(foot[8:], what)
        if fields.raw(24) != self._id or fields.many("ii") != (number, self._count):
            raise FormatError(f"{what}: its footer is that of another save or part")
        table = _extent(path, begin, fields.many("qqQ"), MOST_TABLE, "the table", length - FOOTER_BYTES)
        return self._table(table, number, path, begin, length, items, what)

    def _table(self, data: bytes, number: int, path: str, begin: int, length: int, items: Sequence[Item], what: str) -> _Part:
        table = Fields(data, f"{what}, table")
        if table.raw(8) != b"TRCKTAB1" or table.raw(24) != self._id or table.many("ii") != (number, self._count):
            raise FormatError(f"{what}: its table is that of another save or part")
        coding, _, block_bytes = table.many("iiq")
        if coding not in (0, 1, 2) or not 16 <= block_bytes <= 1 << 30 or block_bytes % 16:
            raise FormatError(f"{what}: coding {coding}, blocks of {block_bytes} bytes")
        maps = []
        for _ in range(table.count(8, wide=True)):
            rows = table.raw(table.count(1, wide=True))
            if len(rows) % 32:
                raise FormatError(f"{what}: a map of {len(rows)} bytes")
            maps.append(_Map.of(np.frombuffer(rows, "<i8").reshape(-1, 4), what))
        stored = tuple(self._stored(table, number, maps, items, block_bytes, length, what) for _ in range(table.count(24, wide=True)))
        table.end()
        if sum(each.length for each in stored) > length or len({each.item for each in stored}) != len(stored):
            raise FormatError(f"{what}: an item twice, or more bytes than the part has")
        return _Part(number, path, begin, coding, block_bytes, stored)

    def _stored(self, table: Fields, part: int, maps: Sequence[_Map], items: Sequence[Item], block_bytes: int, part_length: int,
                what: str) -> _Stored:
        number, map_number, offset, length = table.many("iiqq")
        if not 0 <= number < len(items) or not 0 <= map_number < len(maps) or offset < 0 or length < 0 or offset > part_length or \
                length > part_length - offset:
            raise FormatError(f"{what}: item {number} with map {map_number} at {offset}, {length} bytes")
        blocks = table.array("<u8", 2 * -(-length // block_bytes)).reshape(-1, 2)
        sizes = np.full(len(blocks), block_bytes, np.uint64)
        if len(blocks) and length % block_bytes:
            sizes[-1] = length % block_bytes
        if (blocks[:, 1] > sizes).any() or (blocks[:, 1] == 0).any():
            raise FormatError(f"{what}: a block of item {number} has more bytes than its elements, or none")
        found, item = maps[map_number], items[number]
        if found.end > item.elements:
            raise FormatError(f'{what}: a map names elements outside of item "{item.name}"')
        if found.elements * item.dtype.itemsize != length:
            raise FormatError(f'{what}: {length} bytes of item "{item.name}" in place of {found.elements} elements')
        return _Stored(part, number, found.rows, offset, length, blocks)

    # ---- blocks ------------------------------------------------------------------------------------------------

    def _elements(self, part: _Part, stored: _Stored, item: Item) -> np.ndarray:
        sizes = [min(part.block_bytes, stored.length - at) for at in range(0, stored.length, part.block_bytes)]
        blocks = side_by_side(lambda number: self._block(part, stored, item, number, sizes[number]), range(len(sizes)))
        return np.frombuffer(blocks[0] if len(blocks) == 1 else b"".join(blocks), item.dtype)

    def _block(self, part: _Part, stored: _Stored, item: Item, number: int, size: int) -> bytes:
        what = f'{part.path}: item "{item.name}", part {part.number}, block {number}'
        checksum, length = (int(each) for each in stored.blocks[number])
        data = read_range(part.path, part.begin + stored.offset + number * part.block_bytes, length)
        if xxh3_64(data, xxh3_64(self._id + struct.pack("<iiq", part.number, stored.item, number))) != checksum:
            raise FormatError(f"{what}: its checksum is wrong: load an older copy (generation=), or let `tailrace checkpoint verify` say which are whole")
        if length == size:
            return data
        grouped = np.frombuffer(_decompressed(part.coding, data, size, what), np.uint8)
        element = 1 if item.dtype.kind == "S" else item.dtype.itemsize  # a block may end within a text
        return np.ascontiguousarray(grouped.reshape(element, -1).T).tobytes()


def _header(path: str) -> tuple[bytes, bool, int, int, tuple[int, int, int]]:
    data = read_range(path, 0, HEADER_BYTES)
    if data[:8] != b"TRCKPT1\n" or struct.unpack("<Q", data[-8:])[0] != xxh3_64(data[:-8]):
        raise FormatError(f"{path}: its header is none of a checkpoint, is damaged, or a save was begun and not finished")
    mode, parts, begun, *place = struct.unpack_from("<iiqqqQ", data, 32)
    generation = struct.unpack_from("<q", data, 24)[0]
    if mode not in (0, 1) or parts < 1 or not 1 <= generation <= MOST_GENERATION:
        raise FormatError(f"{path}: mode {mode}, {parts} parts, generation {generation}")
    return data[8:32], mode == 1, parts, begun, (place[0], place[1], place[2])


def _extent(path: str, base: int, place: Sequence[int], most: int, what: str, within: int | None = None) -> bytes:
    offset, length, checksum = place
    if offset < 0 or length < 0 or length > most or (within is not None and (offset > within or length > within - offset)):
        raise FormatError(f"{path}: {what} at {offset} has {length} bytes")
    data = read_range(path, base + offset, length)
    if xxh3_64(data) != checksum:
        raise FormatError(f"{path}: the checksum of {what} is wrong")
    return data


def _directory(data: bytes, save: bytes, parts: int, path: str) -> tuple[list[Item], list[tuple[int, int]]]:
    directory = Fields(data, f"{path}, directory")
    if directory.raw(8) != b"TRCKDIR1" or directory.raw(24) != save:
        raise FormatError(f"{path}: its directory is that of another save")
    items = []
    for _ in range(directory.count(20, wide=True)):
        name = text_of(directory.raw(directory.count(1, wide=True)), path)
        kind, shape = directory.i32(), directory.raw(directory.count(1, wide=True))
        kind, has_unowned = kind & ~UNOWNED, bool(kind & UNOWNED)
        if element_type(kind) is None or len(shape) % 8 or len(shape) > 56:
            raise FormatError(f'{path}: item "{name}" has type {kind} and a shape of {len(shape)} bytes')
        items.append(Item(name, np.dtype(element_type(kind)), tuple(struct.unpack(f"<{len(shape) // 8}q", shape)), has_unowned))
        elements_of(items[-1].shape, path)
    if len({item.name for item in items}) != len(items):
        raise FormatError(f"{path}: two items have one name")
    if directory.count(16, wide=True) != parts:
        raise FormatError(f"{path}: the directory does not tell of {parts} parts")
    places = [directory.many("qq") for _ in range(parts)]
    directory.raw(directory.count(1, wide=True))
    directory.end()
    return items, [(begin, length) for begin, length in places]


def _twice(path: str, item: Item) -> str:
    return f'{path}: an element of item "{item.name}" is in two parts, and another one in none'


def _check_cover(item: Item, stored: Sequence[_Stored], path: str, covered: set[tuple[int, ...]]) -> bool:
    """Checks that the parts together have each element of an item once, and raises FormatError if not. Returns False
    if there are too many runs to check. `covered` remembers maps that were checked, because items share them."""
    total = sum(each.length for each in stored) // item.dtype.itemsize
    if total > item.elements or (total < item.elements and not item.has_unowned):
        raise FormatError(f'{path}: the parts have {total} elements of item "{item.name}", which has {item.elements}')
    key = (item.elements, item.has_unowned, *(id(each.rows) for each in stored))
    if key in covered or not total:
        return True
    begin, count, stride, number = np.concatenate([each.rows for each in stored]).T
    if number.astype(float).sum() > MOST_RUNS:
        return False
    firsts = np.repeat(np.cumsum(number) - number, number)
    begins = np.repeat(begin, number) + np.repeat(np.where(number > 1, stride, 0), number) * (np.arange(len(firsts)) - firsts)
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], (begins + np.repeat(count, number))[order]
    if (begins[1:] < ends[:-1]).any() if item.has_unowned else begins[0] != 0 or (begins[1:] != ends[:-1]).any():
        raise FormatError(_twice(path, item))
    covered.add(key)
    return True


def _place(out: np.ndarray, rows: np.ndarray, elements: np.ndarray) -> None:
    """Copies the elements of a part to their places in `out`. The map must have been checked."""
    at = 0
    for begin, count, stride, number in rows.tolist():
        part = elements[at:at + count * number].reshape(number, count)
        at += count * number
        if number == 1:
            out[begin:begin + count] = part[0]
            continue
        step = out.itemsize
        np.lib.stride_tricks.as_strided(out[begin:], (number, count), (stride * step, step))[...] = part


def _decompressed(coding: int, data: bytes, size: int, what: str) -> bytes:
    try:
        if coding == 1:
            import lz4.block
            out = lz4.block.decompress(data, uncompressed_size=size)
        elif coding == 2:
            import zstandard
            # Check the size in the frame: zstandard trusts it more than max_output_size.
            told = zstandard.frame_content_size(data)
            if told not in (-1, size):
                raise FormatError(f"{what}: its frame tells of {told} bytes in place of {size}")
            out = zstandard.ZstdDecompressor().decompress(data, max_output_size=size, allow_extra_data=False)
        else:
            raise FormatError(f"{what}: it is smaller than its elements, and the part has no compressed blocks")
    except ImportError as error:
        raise UnsupportedError(f"{what}: compressed blocks need lz4 and zstandard: pip install 'tailrace[checkpoints]'") from error
    except (RuntimeError, ValueError, MemoryError) as error:
        raise FormatError(f"{what}: it cannot be decompressed: {error}") from error
    except Exception as error:
        if type(error).__name__ not in ("LZ4BlockError", "ZstdError"):
            raise
        raise FormatError(f"{what}: it cannot be decompressed: {error}") from error
    if len(out) != size:
        raise FormatError(f"{what}: decompresses to {len(out)} bytes in place of {size}")
    return out


def copies(name: str | os.PathLike[str]) -> list[str]:
    """Returns the files of a checkpoint's copies, whatever they hold: NAME.0, NAME.1, ..., NAME.g12."""
    directory, base = os.path.split(os.fspath(name))
    try:
        names = os.listdir(directory or ".")
    except FileNotFoundError:
        return []
    return sorted(os.path.join(directory, each) for each in names if re.fullmatch(re.escape(base) + r"\.(\d+|g0*[1-9]\d*)", each))


def checkpoint(name: str | os.PathLike[str], generation: int | None = None, verify: bool = False) -> Checkpoint:
    """Opens the newest whole copy of a checkpoint, or the copy of a generation. With `verify`, reads every block,
    and skips a copy with a damaged block. `name` may also be the file of one copy. Raises NotThereError if there is
    no whole copy; its text says for each copy why not."""
    path = os.fspath(name)
    candidates = copies(path) or ([path] if os.path.isfile(path) else [])
    whole: list[Checkpoint] = []
    reasons = []
    for each in candidates:
        try:
            copy = Checkpoint(each)
            if verify:
                copy.verify()
            if generation in (None, copy.generation):
                whole.append(copy)
            else:
                reasons.append(f"{each} is generation {copy.generation}")
        except (FormatError, OSError) as error:
            reasons.append(str(error))
    if not whole:
        wanted = "" if generation is None else f" of generation {generation}"
        raise NotThereError(f"{path}: no whole copy{wanted}: {'; '.join(reasons) or 'there are no files of that name'}")
    return max(whole, key=lambda copy: copy.generation)
