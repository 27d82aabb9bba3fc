# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Several nodes on this machine, for the MPI and the library."""
import os
import shutil
import subprocess


def faked_nodes(launcher, work, nodes, ranks_each):
    """(how many, flags of the launcher, environment) by which this machine looks like several nodes, as tests/support has it;
    None where that cannot be had. MPICH always makes it two."""
    if not launcher.openmpi:
        return 2, (), {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
    if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run(["unshare", "-u", "true"]).returncode:
        return None
    agent = work / "agent.sh"
    agent.write_text('#!/bin/sh\n# Runs under another host name what Open MPI would start there over ssh.\n'
                     'while [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\nexec unshare -u sh -c "hostname $host; $*"\n')
    agent.chmod(0o755)
    hosts = ",".join(f"node{chr(ord('a') + node)}:{ranks_each}" for node in range(nodes))
    return nodes, ("--mca", "plm_rsh_agent", str(agent), "-H", hosts, "--map-by", "node", "--mca", "plm_rsh_no_tree_spawn", "1",
                   "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"), {}
