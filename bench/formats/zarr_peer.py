#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""zarr-python 3 as a peer of `./dev bench formats`: one array (time, level, y, x), a shard a step, a chunk a level. Each line of
standard input is a turn: one step is written and its file and directory are synchronised; the seconds and the bytes of the values
are printed. `--check` only tells whether zarr-python 3 is there."""
import argparse
import os
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--name", help="the store to write")
    parser.add_argument("--values", help="a file with the float32 values of a step")
    parser.add_argument("--size", type=int)
    parser.add_argument("--levels", type=int)
    parser.add_argument("--steps", type=int, help="the extent of the array, which never has to grow then")
    parser.add_argument("--deflate", type=int, default=1)
    parser.add_argument("--cores", type=int, default=1)
    args = parser.parse_args()
    try:
        import numpy
        import zarr
    except ImportError:
        return 3
    if int(zarr.__version__.split(".")[0]) < 3:
        return 3
    if args.check:
        print(zarr.__version__)
        return 0
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.cores])
    zarr.config.set({"threading.max_workers": args.cores, "async.concurrency": max(args.levels, 10)})
    shape = (args.levels, args.size, args.size)
    codecs = [zarr.codecs.GzipCodec(level=args.deflate)] if args.deflate else None
    array = zarr.create_array(store=args.name, shape=(args.steps, *shape), shards=(1, *shape), chunks=(1, 1, *shape[1:]), dtype="float32",
                              compressors=codecs, fill_value=float("nan"),
                              config={"write_empty_chunks": True})  # values are not compared with the fill value
    values = None
    for step, _ in enumerate(sys.stdin):
        if values is None:  # they are there from the first turn on
            values = numpy.fromfile(args.values, dtype="<f4").reshape(shape)
        begin = time.perf_counter()
        array[step] = values
        synchronise(os.path.join(args.name, "c", str(step), "0", "0", "0"))
        print(f"{time.perf_counter() - begin:.6f} {values.nbytes}", flush=True)
    return 0


def synchronise(path):
    """Makes the shard durable with its name, as the streams of the library do."""
    for each in (path, os.path.dirname(path)):
        descriptor = os.open(each, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
