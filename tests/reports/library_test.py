# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""The report that the library writes is one that the command reads."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

with tempfile.TemporaryDirectory() as directory:
    for servers in (0, 1):
        report = f"{directory}/{servers}.json"
        code, _, err = run(2 + servers, arguments(f"{directory}/{servers}.raw", "format=raw", 5), TAILRACE_SERVERS=str(servers), TAILRACE_REPORT=report)
        check(code == 0, f"the model ended with {code}: {err}")
        code, out, err = tailrace("report", report)
        check((code, err) == (0, "") and f"{servers}.raw" in out and "6 steps in 1 stream" in out, f"{servers} servers: {code}, {err}, {out}")
        check("does not say" not in out, f"{servers} servers: something is missing: {out}")
        roles = json.loads(tailrace("report", report, "--json")[1])["roles"]
        for role in roles:
            total = sum(each["sum"] for each in role["routines"])
            check(abs(total - role["seconds"]) < 0.01 * role["seconds"], f"{role['role']}: routines of {total} s in {role['seconds']} s")
        check({role["role"] for role in roles} == ({"compute", "server"} if servers else {"compute and server"}), f"roles: {roles}")
        code, out, err = tailrace("top", report)
        check(code == 0 and out.startswith("ended "), f"top: {code}, {out}, {err}")
    code, out, err = tailrace("report", f"{directory}/0.json", f"{directory}/1.json")
    check(code == 0 and "what changed most" in out, f"two runs: {code}, {err}")
finish()
