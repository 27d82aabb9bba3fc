# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Model and I/O server as two programs of one job: `srun --multi-prog` with TAILRACE_SERVERS=app:NAME, on a Slurm of one node that
this script starts in its own directory and ends again."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

PLUGIN = {"openmpi": "pmix", "mpich": "pmi2"}.get(MPI)


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(77)


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def configure(directory):
    host = socket.gethostname().split(".")[0]
    text = f"""ClusterName=tailrace_test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CryptoType=crypto/munge
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES State=UP
"""
    with open(f"{directory}/slurm.conf", "w") as file:
        file.write(text)
    with open(f"{directory}/munge.key", "wb") as file:
        file.write(os.urandom(1024))
    os.chmod(f"{directory}/munge.key", 0o600)
    for name in ("state", "spool"):
        os.makedirs(f"{directory}/{name}")


def start(directory, command, log):
    with open(f"{directory}/{log}", "w") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, env=dict(os.environ, SLURM_CONF=f"{directory}/slurm.conf"))


def is_up(directory):
    asked = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True,
                           env=dict(os.environ, SLURM_CONF=f"{directory}/slurm.conf"))
    return asked.stdout.strip() == "idle"


def submit(directory, lines, ranks):
    with open("programs", "w") as file:
        file.write("\n".join(lines) + "\n")
    settings = environment(TAILRACE_SERVERS="app:io_server", SLURM_CONF=f"{directory}/slurm.conf")
    return subprocess.run(["srun", f"--mpi={PLUGIN}", "-n", str(ranks), "--overcommit", "-t", "2", "--multi-prog", "programs"],
                          capture_output=True, text=True, env=settings, timeout=90)


if PLUGIN is None or os.geteuid() != 0:
    skip("needs root, and Open MPI or MPICH")
absent = [tool for tool in ("munged", "slurmctld", "slurmd", "srun", "sinfo") if shutil.which(tool) is None]
if absent:
    skip(f"{', '.join(absent)} not installed")
directory = os.path.abspath(fresh("slurm"))
os.chmod(directory, 0o755)
configure(directory)
daemons = [start(directory, ["munged", "--foreground", "--force", f"--key-file={directory}/munge.key",
                             f"--socket={directory}/munge.socket", f"--pid-file={directory}/munge.pid",
                             f"--log-file={directory}/munge.log", f"--seed-file={directory}/munge.seed"], "munged.out")]
try:
    time.sleep(1)
    config = f"{directory}/slurm.conf"
    daemons.append(start(directory, ["slurmctld", "-D", "-f", config], "slurmctld.out"))
    daemons.append(start(directory, ["slurmd", "-D", "-f", config, "-N", socket.gethostname().split(".")[0]], "slurmd.out"))
    until = time.time() + 30
    while time.time() < until and not is_up(directory):
        time.sleep(0.5)
    if not is_up(directory):
        skip("Slurm did not come up within 30 s")
    shutil.copy(MODEL, "io_server")
    code, _, err = run(1, arguments("one.raw", "format=raw", 1))
    check(code == 0, f"the one-rank run: {code}, {err}")
    model = " ".join(f"'{word}'" if " " in word else word for word in arguments("fc.raw", "format=raw", 1)[1:])
    done = submit(directory, [f"0-1 {MODEL} {model}", f"2 {os.path.abspath('io_server')} {model}"], 3)
    check(done.returncode == 0, f"srun --multi-prog: {done.returncode}, {done.stdout} {done.stderr}")
    check("rank 2 served" in done.stdout, f"srun --multi-prog: no server: {done.stdout}")
    check(contents("fc.raw") == contents("one.raw"), "srun --multi-prog: other bytes")
finally:
    for daemon in reversed(daemons):
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(timeout=10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
finish()
