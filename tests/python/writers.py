# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Starts real programs that write while a case reads."""
import os
import shlex
import sys

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from killed_job import Job  # noqa: E402


def job(directory, pattern, options, last, first=0, awaits=None, servers=0):
    """Starts small_model. Before the hour `awaits` the model waits until a file `go` exists in the directory."""
    env = {**os.environ, "TAILRACE_SERVERS": str(servers)}
    if awaits is not None:
        env["SMALL_MODEL_AWAITS"] = f"{awaits}:{directory}/go"
    return Job([*shlex.split(os.environ["TEST_LAUNCHER"]), "-n", str(2 + servers), os.environ["TEST_MODEL"], pattern, options, str(first), str(last),
                "0"], env, str(directory))


__all__ = ["Job", "job"]
