#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""zarr-python 3 as a peer of `./dev bench formats`: one array (time, level, y, x), a shard a step, a chunk a level, each object in
the array's own directory. Each line of standard input is a turn: STEPS steps are written, one after another, and a second thread
synchronises each while the next is compressed; when the last is durable, the seconds and the bytes of the values are printed.
`--check` only tells whether zarr-python 3 is there."""
import argparse
import concurrent.futures
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
    parser.add_argument("--in-turn", type=int, default=4, help="the steps of a turn")
    parser.add_argument("--compress", default="none", help="as the stream's option says it: METHOD:LEVEL")
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
    array = zarr.create_array(store=args.name, shape=(args.steps, *shape), shards=(1, *shape), chunks=(1, 1, *shape[1:]), dtype="float32",
                              compressors=codecs_of(args.compress, zarr.codecs),
                              fill_value=float("nan"), chunk_key_encoding={"name": "default", "separator": "."},
                              config={"write_empty_chunks": True})  # values are not compared with the fill value
    values = None
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        for turn, _ in enumerate(sys.stdin):
            if values is None:  # they are there from the first turn on
                values = numpy.fromfile(args.values, dtype="<f4").reshape(shape)
                synchronise_new(args.name)
            begin = time.perf_counter()
            syncs = []
            for step in range(turn * args.in_turn, (turn + 1) * args.in_turn):
                array[step] = values
                syncs.append(beside.submit(synchronise, os.path.join(args.name, f"c.{step}.0.0.0")))
            for sync in syncs:
                sync.result()
            print(f"{time.perf_counter() - begin:.6f} {args.in_turn * values.nbytes}", flush=True)
    return 0


def codecs_of(compress, codecs):
    """The codec that the option `compress=` of a stream stands for."""
    method, _, level = compress.partition(":")
    if method == "none":
        return None
    if method == "gzip":
        return [codecs.GzipCodec(level=int(level))]
    if method == "zstd":
        return [codecs.ZstdCodec(level=int(level))]
    block = 1 << 20 if method == "blosc_zstd" and int(level) <= 3 else 0  # the library's; 0, the usual one, takes twice the time
    return [codecs.BloscCodec(typesize=4, cname=method.removeprefix("blosc_"), clevel=int(level), shuffle="shuffle", blocksize=block)]


def synchronise(path):
    """Makes a shard durable with its name, as the streams of the library do."""
    for each in (path, os.path.dirname(path)):
        fsync(each)


def synchronise_new(path):
    """Makes the array's directory durable, with its metadata and its name."""
    for each in (os.path.join(path, "zarr.json"), path, os.path.dirname(os.path.abspath(path))):
        fsync(each)


def fsync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
