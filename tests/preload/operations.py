# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""A program that does the same random operations on two files: one that `tailrace run` shares, and one that it does
not. Both must give the same results. Arguments: the shared file, the other file, the seed, and the number of
operations."""
import os
import random
import sys

shared, plain, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
draw = random.Random(seed)
LIMIT = 300_000  # several times the memory for pages
log = []


def both(what, call):
    answers = []
    for side in (0, 1):
        try:
            answers.append(call(side))
        except OSError as error:
            answers.append((type(error).__name__, error.errno))
    log.append(what)
    if answers[0] != answers[1]:
        short = [repr(each)[:200] for each in answers]
        print(f"seed {seed}, operation {len(log)}, {what}: shared {short[0]}, plain {short[1]}; before: {log[-8:-1]}", flush=True)
        sys.exit(1)
    return answers[0]


files = []  # pairs of descriptors


def opened():
    flags = draw.choice((os.O_RDWR, os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND, os.O_WRONLY | os.O_APPEND))
    flags |= draw.choice((os.O_CREAT, os.O_CREAT, os.O_CREAT | os.O_EXCL, 0, os.O_TRUNC if draw.random() < 0.3 else 0))
    pair = [-1, -1]

    def call(side):
        pair[side] = os.open((shared, plain)[side], flags, 0o640)
        return "open"

    both(f"open {flags:o}", call)
    if pair[0] >= 0:
        files.append(pair)


def data():
    return bytes(draw.getrandbits(8) for _ in range(16)) * draw.choice((1, 3, 60, 256, 700))


def status(side, path=None, pair=None):
    it = os.stat(path) if path else os.fstat(pair[side])
    return (it.st_size, it.st_mode, it.st_uid, it.st_nlink)


def step():
    if not files or draw.random() < 0.05:
        return opened()
    pair = draw.choice(files)
    at, length = draw.randrange(LIMIT), draw.choice((0, 1, 16, 999, 4096, 20_000))
    what = draw.choice(("pwrite", "pwrite", "pwrite", "pread", "pread", "write", "write", "read", "seek", "writev", "readv", "truncate",
                        "fstat", "stat", "fsync", "close", "dup", "append", "flags", "path truncate", "rename", "fallocate", "whole"))
    if what == "pwrite":
        it = data()
        both(f"pwrite {len(it)} at {at}", lambda side: os.pwrite(pair[side], it, at))
    elif what == "pread":
        both(f"pread {length} at {at}", lambda side: os.pread(pair[side], length, at))
    elif what == "write":
        it = data()
        both(f"write {len(it)}", lambda side: os.write(pair[side], it))
    elif what == "read":
        both(f"read {length}", lambda side: os.read(pair[side], length))
    elif what == "seek":
        offset, whence = draw.choice(((at, os.SEEK_SET), (-min(at, 500), os.SEEK_CUR), (-min(at, 500), os.SEEK_END), (-1, os.SEEK_SET), (0, os.SEEK_CUR)))
        both(f"seek {offset} {whence}", lambda side: os.lseek(pair[side], offset, whence))
    elif what == "writev":
        parts = [data(), b"", data()]
        both("writev", lambda side: os.pwritev(pair[side], parts, at))
    elif what == "readv":
        def call(side):
            parts = [bytearray(10), bytearray(length), bytearray(3)]
            return os.preadv(pair[side], parts, at), parts
        both("readv", call)
    elif what == "truncate":
        size = draw.choice((0, at, at, 4096, 4095))
        both(f"ftruncate {size}", lambda side: os.ftruncate(pair[side], size))
    elif what == "path truncate":
        both(f"truncate {at}", lambda side: os.truncate((shared, plain)[side], at))
    elif what == "fstat":
        both("fstat", lambda side: status(side, pair=pair))
    elif what == "stat":
        both("stat", lambda side: status(side, path=(shared, plain)[side]))
    elif what == "fsync":
        both("fsync", lambda side: os.fsync(pair[side]))
    elif what == "fallocate":
        both(f"fallocate {at}", lambda side: os.posix_fallocate(pair[side], at, 5000))
    elif what == "close":
        files.remove(pair)
        both("close", lambda side: os.close(pair[side]))
    elif what == "dup":
        files.append([os.dup(pair[0]), os.dup(pair[1])])
    elif what == "append":
        both("append", lambda side: open((shared, plain)[side], "ab").write(b"appended"))
    elif what == "flags":
        import fcntl
        mask = os.O_ACCMODE | os.O_APPEND
        both("flags", lambda side: fcntl.fcntl(pair[side], fcntl.F_GETFL) & mask)
    elif what == "rename":
        def call(side):
            path = (shared, plain)[side]
            os.rename(path, path + ".moved")
            os.rename(path + ".moved", path)
        both("rename", call)
    elif what == "whole":
        both("whole", lambda side: open((shared, plain)[side], "rb").read())


for _ in range(count):
    step()
both("at the end", lambda side: open((shared, plain)[side], "rb").read() if os.path.exists((shared, plain)[side]) else None)
if files:
    os.lseek(files[0][0], 0, os.SEEK_SET)  # and some descriptors stay open
