# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Programs that nobody here wrote under `tailrace run`: what they write is what they would have written, what cannot be taken over
is refused. Arguments: a program of ours that uses files as programs do, and a C compiler."""
import errno
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time

MOUNTS = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0
if MOUNTS and os.environ.get("RUN_PROGRAMS_ISOLATED") != "1":
    os.environ["RUN_PROGRAMS_ISOLATED"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "support"))
from small_model import *  # noqa: E402,F403

COMPILER = sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
directory = fresh(os.path.abspath("files"))
PATTERN = f"{directory}/*.bin"
BYTES = random.Random(1).randbytes(5_000_001)
with open(f"{directory}/source", "wb") as source:
    source.write(BYTES)


def shared(*command, options=(), stdin=None):
    """(exit code, standard output, standard error) of a command under `tailrace run`"""
    pipe = subprocess.PIPE
    run_ = subprocess.Popen([COMMAND, "run", "--shared", PATTERN, *options, "--", *command], stdin=pipe if stdin is not None else None, stdout=pipe,
                            stderr=pipe, cwd=directory, start_new_session=True)
    try:
        out, err = run_.communicate(stdin, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        # All of them have the pipes. The keeper, which has a session of its own, ends after the last one.
        os.killpg(run_.pid, signal.SIGKILL)
        out, err = run_.communicate(timeout=LIMIT)
        check(False, f"{command} did not end within {LIMIT} s")
    return run_.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def traffic(err):
    """(writes of the programs, writes of storage, reads of the programs, reads of storage)"""
    told = re.search(r"(\d+) writes? .* and (\d+) reads? .* of the programs became (\d+) writes? .* and (\d+) reads? .* of storage", err)
    check(told is not None, f"no line of the run's traffic: {err}")
    return (int(told[1]), int(told[3]), int(told[2]), int(told[4])) if told else (0, 0, 0, 0)


def test_copies():
    code, _, err = shared("cp", "source", "copied.bin")
    check(code == 0 and contents(f"{directory}/copied.bin") == BYTES, f"cp: {code} {err}")
    code, _, err = shared("cp", "-p", "copied.bin", "again.bin")
    check(code == 0 and contents(f"{directory}/again.bin") == BYTES, f"cp -p: {code} {err}")
    os.utime(f"{directory}/source", ns=(10**18, 10**18 + 123456789))
    code, _, err = shared("cp", "-p", "source", "dated.bin")
    check(code == 0 and os.stat(f"{directory}/dated.bin").st_mtime_ns == 10**18 + 123456789, f"cp -p: another time: {code} {err}")
    code, out, err = shared("cmp", "copied.bin", "source")
    check(code == 0, f"cmp: {code} {out} {err}")
    code, out, err = shared("sh", "-c", "cat copied.bin | md5sum; md5sum < source")
    check(code == 0 and len(set(out.split())) == 2, f"cat and md5sum: {code} {out} {err}")


def test_just_written_program():
    """The kernel runs a file that was just written: nobody has it open for writing any more."""
    code, out, err = shared("sh", "-c", "cp /bin/echo program.bin && ./program.bin runs")
    check(code == 0 and out == "runs\n", f"a program that was just written: {code} {out} {err}")


def test_dd():
    code, _, err = shared("dd", "if=source", "of=dd.bin", "bs=777")
    writes, stores, _, _ = traffic(err)
    check(code == 0 and contents(f"{directory}/dd.bin") == BYTES, f"dd: {code} {err}")
    check(writes == 6436 and stores <= 1, f"dd: storage saw small writes: {err}")
    # Into the middle of what is there, and behind its end.
    code, _, err = shared("dd", "if=source", "of=dd.bin", "bs=333", "seek=20001", "count=5", "conv=notrunc")
    want = bytearray(BYTES)
    want.extend(b"\0" * max(0, 333 * 20006 - len(want)))
    want[333 * 20001:333 * 20006] = BYTES[:333 * 5]
    check(code == 0 and contents(f"{directory}/dd.bin") == bytes(want), f"dd conv=notrunc: {code} {err}")
    code, _, err = shared("dd", "if=source", "of=dd.bin", "bs=1001", "count=3", "oflag=append", "conv=notrunc,fsync")
    check(code == 0 and contents(f"{directory}/dd.bin") == bytes(want) + BYTES[:3003], f"dd oflag=append: {code} {err}")
    code, out, err = shared("dd", "if=dd.bin", "bs=100", "skip=3", "count=2", "status=none")
    check(code == 0, f"dd from a shared file: {code} {err}")


def test_shells():
    script = """
      set -e
      cat source > one.bin
      (cat one.bin; echo more) >> two.bin
      exec 5<> three.bin
      seq 1 1000 >&5; seq 1001 2000 >&5; (seq 2001 2100; true) >&5
      exec 5>&-
      test $(wc -l < three.bin) = 2100
      while read -r line; do last=$line; done < three.bin
      test "$last" = 2100
      echo replaced > one.bin; cat one.bin
      umask 027; echo x > mode.bin
      echo gone > gone.bin; rm gone.bin
    """
    for shell in ("sh", "bash"):
        for name in ("one", "two", "three", "mode"):
            if os.path.exists(f"{directory}/{name}.bin"):
                os.remove(f"{directory}/{name}.bin")
        code, out, err = shared(shell, "-c", script)
        check(code == 0 and out == "replaced\n", f"{shell}: {code} {out} {err}")
        check(contents(f"{directory}/two.bin") == BYTES + b"more\n", f"{shell}: other bytes in two.bin")
        check(contents(f"{directory}/three.bin") == "".join(f"{n}\n" for n in range(1, 2101)).encode(), f"{shell}: three.bin")
        check(os.stat(f"{directory}/mode.bin").st_mode & 0o777 == 0o640, f"{shell}: the umask was not honoured")
        check(not os.path.exists(f"{directory}/gone.bin"), f"{shell}: a file that was removed is there")


def test_random_operations():
    for seed in range(1, 40 if ALL else 5):
        for name in ("random.bin", "random"):
            if os.path.exists(f"{directory}/{name}"):
                os.remove(f"{directory}/{name}")
        small = ([], ["--page", "4KiB", "--memory", "64KiB"], ["--page", "128KiB", "--memory", "1MiB"])[seed % 3]
        code, out, err = shared("python3", f"{HERE}/operations.py", f"{directory}/random.bin", f"{directory}/random", str(seed), "500",
                                options=small)
        check(code == 0, f"random operations: {code} {out} {err}")
        check(contents(f"{directory}/random.bin") == contents(f"{directory}/random"), f"random operations, seed {seed}: other bytes")


def test_python():
    script = textwrap.dedent("""
        import os, subprocess
        from concurrent.futures import ThreadPoolExecutor
        with open('python.bin', 'wb') as f:
            subprocess.run(['seq', '1', '5'], stdout=f, check=True)
            subprocess.run('echo hi; seq 6 7', shell=True, stdout=f, check=True)
            f.seek(0, 2)
            f.write(b'python')
        assert os.popen('cat python.bin').read() == '1\\n2\\n3\\n4\\n5\\nhi\\n6\\n7\\npython', open('python.bin').read()
        # The child has the only descriptor left before it has begun.
        with open('spawned.bin', 'wb') as f:
            child = subprocess.Popen(['sh', '-c', 'sleep 0.2; echo spawned'], stdout=f)
        child.wait()
        f = open('forked.bin', 'wb', 0)
        forked = os.fork()
        if forked == 0:
            f.write(b'child ')
            os._exit(0)
        os.waitpid(forked, 0)  # not os.wait(): cat, above, may not have been waited for
        f.write(b'parent')
        f.close()
        with open('many.bin', 'wb') as f:
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda n: os.pwrite(f.fileno(), b'%07d\\n' % n, 8 * n), range(3000)))
    """)
    code, out, err = shared("python3", "-c", script)
    check(code == 0, f"python: {code} {out} {err}")
    check(contents(f"{directory}/spawned.bin") == b"spawned\n", f"a spawned program: {contents(f'{directory}/spawned.bin')}")
    check(contents(f"{directory}/forked.bin") == b"child parent", f"a forked child: {contents(f'{directory}/forked.bin')}")
    check(contents(f"{directory}/many.bin") == b"".join(b"%07d\n" % n for n in range(3000)), "threads of python")


def test_inheritance():
    """A child that begins long after its parent has closed the file, and after other files were closed, has its file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 100 if hard == resource.RLIM_INFINITY else min(100, hard // 16)  # the keeper keeps an eighth of its descriptors for heirs
    script = textwrap.dedent("""
        import os, subprocess
        late = {key: value for key, value in os.environ.items() if key != 'LD_PRELOAD'}
        late['LATE_PRELOAD'] = os.environ['LD_PRELOAD']

        def begin(f, command):
            return subprocess.Popen(['sh', '-c', 'sleep 2.6; LD_PRELOAD=$LATE_PRELOAD exec ' + command], stdin=f, stdout=f, env=late)

        with open('late.bin', 'wb') as f:
            writer = begin(f, 'echo late')
        f = os.open('removed.bin', os.O_RDWR | os.O_CREAT)
        os.write(f, b'bytes of a removed file')
        os.lseek(f, 0, os.SEEK_SET)
        os.remove('removed.bin')
        reader = begin(f, 'sh -c "cat | wc -c > counted.bin"')
        os.close(f)
        for n in range(FILES):
            open('short.bin', 'wb').close()
        assert writer.wait() == 0 and reader.wait() == 0
    """).replace("FILES", str(files))
    code, out, err = shared("python3", "-c", script)
    check(code == 0 and contents(f"{directory}/late.bin") == b"late\n", f"a child that begins late: {code} {out} {err}")
    counted = contents(f"{directory}/counted.bin")
    check(counted is not None and counted.split() == [b"23"], f"a removed file that a child inherits: {counted} {err}")


def test_sent_descriptors():
    """A descriptor that another process of the run gets over a socket is the open file that was sent, also if nobody else has it any more."""
    script = textwrap.dedent("""
        import os, socket
        here, there = socket.socketpair()
        if os.fork() == 0:
            here.close()
            _, (shared, other), _, _ = socket.recv_fds(there, 1, 2)
            os.write(shared, b'child')
            os._exit(os.read(other, 3) != b'one')
        f = os.open('sent.bin', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        other = os.open('one', os.O_RDWR | os.O_CREAT)
        os.pwrite(other, b'one', 0)
        os.write(f, b'parent ')
        socket.send_fds(here, [b'x'], [f, other])
        os.close(f)
        assert os.wait()[1] == 0
        assert open('sent.bin', 'rb').read() == b'parent child'
    """)
    code, out, err = shared("python3", "-c", script)
    check(code == 0 and contents(f"{directory}/sent.bin") == b"parent child", f"a descriptor over a socket: {code} {out} {err}")


def test_others_outside():
    """What programs outside of the run have appended is not cut off."""
    script = textwrap.dedent("""
        import os, subprocess
        f = os.open('outside.bin', os.O_RDWR | os.O_CREAT)
        os.write(f, b'inside ')
        os.fsync(f)
        assert subprocess.run(['sh', '-c', 'printf outside >> outside.bin'], env={'PATH': os.environ['PATH']}).returncode == 0
        os.close(f)
    """)
    code, out, err = shared("python3", "-c", script)
    check(code == 0 and contents(f"{directory}/outside.bin") == b"inside outside", f"appended outside: {contents(f'{directory}/outside.bin')} {err}")


def test_names():
    """A name with '..' behind a symbolic link is the kernel's file, and not the one that its text says."""
    os.makedirs(f"{directory}/far/deep")
    os.symlink("far/deep", f"{directory}/link")
    code, out, err = shared("sh", "-c", "echo there > link/../named.bin; cat link/../named.bin")
    check(code == 0 and out == "there\n" and contents(f"{directory}/far/named.bin") == b"there\n", f"a name behind a link: {code} {out} {err}")
    check(not os.path.exists(f"{directory}/named.bin"), "a name behind a link: another file was made")
    code, out, err = shared("sh", "-c", "echo x > slash.bin/")
    check(code != 0 and not os.path.exists(f"{directory}/slash.bin"), f"a name with a slash at its end: {code} {out} {err}")


def test_pieces():
    """Programs that read pieces here and there after a file was closed read little more than them from storage; who reads forward gets whole pages."""
    pages = 24
    script = textwrap.dedent("""
        import os
        whole = os.urandom(PAGES << 20)
        with open('pieces.bin', 'wb') as f:
            f.write(whole)
        f = os.open('pieces.bin', os.O_RDWR)
        for page in range(0, PAGES, 2):
            at = (page << 20) + (1 << 19)
            assert os.pread(f, 1 << 16, at) == whole[at:at + (1 << 16)]
        os.close(f)
    """).replace("PAGES", str(pages))

    def storage_reads(command):
        code, out, err = shared(sys.executable, "-c", command)
        read = re.search(r"and (\d+) reads? \(([0-9.]+) (\w+)\) of storage", err)
        check(code == 0 and read is not None, f"pieces: {code} {out} {err}")
        return int(read[1]), float(read[2]) * {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}[read[3]]

    calls, bytes_ = storage_reads(script)
    check(calls == pages // 2 and bytes_ == pages // 2 << 16, f"pieces: {calls} reads of {bytes_} bytes")
    calls, bytes_ = storage_reads("f = open('pieces.bin', 'rb', 0)\nwhile f.read(1 << 12): pass")
    check(calls <= pages + 8 and bytes_ == pages << 20, f"reading forward: {calls} reads of {bytes_} bytes")


def test_limits():
    """The keeper has more descriptors than programs usually have, says so if they do not suffice, and is made once."""
    crowd = textwrap.dedent("""
        import os
        f = os.open('limits.bin', os.O_RDWR | os.O_CREAT)
        wait, go = os.pipe()
        children = []
        for n in range(60):
            children.append(os.fork())
            if children[-1] == 0:
                try:
                    os.pwrite(f, b'%07d\\n' % n, 8 * n)
                    os.close(go)
                    os.read(wait, 1)
                    os._exit(0)
                except OSError:
                    os._exit(1)
        os.close(go)
        failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
        print('failed', failed)
    """)

    def limited(what, soft, hard, command, *options):
        done = subprocess.run([COMMAND, "run", "--shared", PATTERN, *options, "--", *command], capture_output=True, timeout=LIMIT, cwd=directory,
                              text=True, preexec_fn=lambda: resource.setrlimit(what, (soft, hard)))
        return done.returncode, done.stdout, done.stderr

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code, out, err = limited(resource.RLIMIT_NOFILE, 50, hard, ["python3", "-c", crowd])
    check(code == 0 and out == "failed 0\n", f"a soft limit of 50 open files: {code} {out} {err}")
    check(contents(f"{directory}/limits.bin") == b"".join(b"%07d\n" % n for n in range(60)), "a soft limit of 50 open files: other bytes")
    for most in (50, 51):  # a process takes two of them: the last one is missed by its first step or by its second
        code, out, err = limited(resource.RLIMIT_NOFILE, most, most, ["python3", "-c", crowd])
        check(code == 1 and "cannot serve another process" in err, f"a hard limit of {most} open files: {code} {out} {err}")
        check("another PID namespace" not in err, f"a hard limit of {most} open files: {err}")
    many = textwrap.dedent("""
        import errno, os
        def opened(numbers):
            told = set()
            for n in numbers:
                try:
                    os.open(f'many{n}.bin', os.O_RDWR | os.O_CREAT)
                except OSError as error:
                    told.add(errno.errorcode[error.errno])
            return told
        opened([0])
        ready, has_opened = os.pipe()
        over, ends = os.pipe()
        if os.fork() == 0:
            os.close(ends)
            opened(range(30, 55))
            os.write(has_opened, b'.')
            os.read(over, 1)
            os._exit(0)
        os.read(ready, 1)
        print(*opened(range(1, 30)), flush=True)
    """)
    code, out, err = limited(resource.RLIMIT_NOFILE, 50, 50, ["python3", "-c", many])
    check(out.split() == ["EMFILE"], f"60 files of two processes with a hard limit of 50 open files: {code} {out} {err}")
    code, out, err = limited(resource.RLIMIT_AS, 1 << 34, 1 << 34, ["true"], "--memory", "64GiB")
    check(code == 1 and err.count("no memory for pages") == 1, f"a keeper that cannot begin: {code} {err}")
    code, out, err = shared("sh", "-c", f"exec <&- >&- 2>&-; '{COMMAND}' run --shared '{PATTERN}' --group closed-{os.getpid()} -- cp source closed.bin")
    check(code == 0 and contents(f"{directory}/closed.bin") == BYTES, f"closed standard descriptors: {code} {err}")


def test_keeper_of_others():
    """A keeper of another user is none."""
    if os.geteuid() != 0:
        return
    listener = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); " \
               f"s.bind('\\0tailrace-run-0-group-taken-{os.getpid()}'); s.listen(); print('bound', flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", listener], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    code, out, err = shared("cp", "source", "taken.bin", options=["--group", f"taken-{os.getpid()}"])
    check(code == 1 and "of user 65534" in err and not os.path.exists(f"{directory}/taken.bin"), f"a keeper of another user: {code} {err}")
    environment = dict(os.environ, LD_PRELOAD=os.path.join(os.path.dirname(COMMAND), "../lib/libtailrace_preload.so"),
                       TR_RUN_SOCKET=f"tailrace-run-0-group-taken-{os.getpid()}", TR_RUN_SHARED=PATTERN)
    done = subprocess.run(["cp", "source", "taken.bin"], cwd=directory, env=environment, capture_output=True, text=True, timeout=LIMIT)
    check(done.returncode != 0 and "is of user 65534" in done.stderr, f"a program with a keeper of another user: {done}")
    other.communicate()


def test_pid_namespaces():
    """A keeper and programs in different PID namespaces refuse each other at once, whichever of them comes first, and the keeper goes on."""
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        return
    for keeper_in, program_in in (([], inside), (inside, []), (inside, inside)):
        group = f"namespaces-{os.getpid()}-{len(keeper_in)}{len(program_in)}"
        first = subprocess.Popen([*keeper_in, COMMAND, "run", "--shared", PATTERN, "--group", group, "--", "sh", "-c",
                                  "echo first > first.bin; echo begun; read line; echo end >> first.bin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, cwd=directory)
        first.stdout.readline()
        begin = time.monotonic()
        done = subprocess.run([*program_in, COMMAND, "run", "--shared", PATTERN, "--group", group, "--", "cp", "source", "second.bin"],
                              capture_output=True, text=True, timeout=LIMIT, cwd=directory)
        check(done.returncode == 1 and "in another PID namespace" in done.stderr, f"a launcher in another PID namespace: {done}")
        environment = dict(os.environ, LD_PRELOAD=os.path.join(os.path.dirname(COMMAND), "../lib/libtailrace_preload.so"),
                           TR_RUN_SOCKET=f"tailrace-run-0-group-{group}", TR_RUN_SHARED=PATTERN)
        done = subprocess.run([*program_in, "cp", "source", "third.bin"], cwd=directory, env=environment, capture_output=True, text=True, timeout=LIMIT)
        check(done.returncode != 0 and "in another PID namespace" in done.stderr, f"a program in another PID namespace: {done}")
        check(not os.path.exists(f"{directory}/third.bin"), "a program in another PID namespace made a file")
        # One that does not ask who the keeper is gets no memory from it.
        hello = "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('\\0' + sys.argv[1]); " \
                "s.send(bytes([2] + [0] * 40)); answer, descriptors, _, _ = socket.recv_fds(s, 100, 1); print(answer[0], len(descriptors))"
        done = subprocess.run([*program_in, sys.executable, "-c", hello, environment["TR_RUN_SOCKET"]], capture_output=True, text=True, timeout=LIMIT)
        check(done.stdout == f"{errno.EXDEV} 0\n", f"what a program in another PID namespace gets: {done}")
        check(time.monotonic() - begin < LIMIT / 2, "refusing a process of another PID namespace takes long")
        _, err = first.communicate("\n", timeout=LIMIT)
        check(first.returncode == 0 and contents(f"{directory}/first.bin") == b"first\nend\n", f"the first program of a group: {first.returncode} {err}")


def test_long_groups():
    """Groups whose long names differ have keepers of their own, and no group gets that of another one."""
    long, user = "g" * 150, f"tailrace-run-{os.geteuid()}-"
    first = subprocess.Popen([COMMAND, "run", "--shared", PATTERN, "--group", f"{long}-{os.getpid()}-1", "--", "sh", "-c",
                              "echo first > first.bin; echo begun; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, cwd=directory)
    first.stdout.readline()
    with open("/proc/net/unix") as sockets:
        names = {line.split()[-1] for line in sockets if f"@{user}group-{long[:50]}" in line}
    code, _, err = shared("cp", "source", "second.bin", options=["--group", f"{long}-{os.getpid()}-2"])
    check(code == 0 and traffic(err)[0] > 0, f"a group with a long name: {code} {err}")
    check(len(names) == 1, f"the keepers of a group with a long name are {names}")
    code, _, err = shared("true", options=["--group", names.pop()[len(f"@{user}group-"):]])
    check(code == 1 and "is of another group" in err, f"a group with the name of another one's keeper: {code} {err}")
    _, err = first.communicate("\n", timeout=LIMIT)
    check(first.returncode == 0 and traffic(err)[0] == 1, f"the first group with a long name: {first.returncode} {err}")


def test_sqlite():
    script = textwrap.dedent("""
        import sqlite3, sys
        base = sqlite3.connect('file:base.bin?vfs=' + sys.argv[1], uri=True, timeout=0)
        base.execute('pragma journal_mode=delete')
        base.execute('create table if not exists t (a integer primary key, b text)')
        for n in range(5):
            with base:
                base.executemany('insert into t (b) values (?)', [('row %d' % n,)] * 50)
        try:
            with base:
                base.execute('delete from t')
                raise KeyError  # rolls back
        except KeyError:
            pass
        assert base.execute('select count(*) from t').fetchone() == (250,)
        assert base.execute('pragma integrity_check').fetchone() == ('ok',)
    """)
    import sqlite3
    for way in ("unix-none", "unix"):
        code, out, err = shared("python3", "-c", script, way)
        check(code == 0, f"sqlite3, {way}: {code} {out} {err}")
        with sqlite3.connect(f"{directory}/base.bin") as base:
            check(base.execute("select count(*) from t").fetchone() == (250,), f"sqlite3, {way}: another count of rows")
            check(base.execute("pragma integrity_check").fetchone() == ("ok",), f"sqlite3, {way}: the base is damaged")
        base.close()
        os.remove(f"{directory}/base.bin")
    # Processes that write one base take turns.
    code, out, err = shared("python3", "-c", textwrap.dedent("""
        import os, sqlite3
        base = sqlite3.connect('base.bin')
        base.execute('create table t (a integer)')
        base.execute('insert into t values (0)')
        base.commit()
        base.close()
        for n in range(3):
            if os.fork() == 0:
                base = sqlite3.connect('base.bin', timeout=60, isolation_level=None)
                for n in range(20):
                    base.execute('begin immediate')
                    base.execute('update t set a = a + 1')
                    base.execute('commit')
                base.close()
                os._exit(0)
        assert all(os.wait()[1] == 0 for n in range(3))
        assert sqlite3.connect('base.bin').execute('select a from t').fetchone() == (60,)
    """))
    check(code == 0, f"sqlite3 in several processes: {code} {out} {err}")


def test_netcdf4():
    """HDF5 locks each file that it opens."""
    if shutil.which("ncgen") is None or shutil.which("ncdump") is None:
        return
    with open(f"{directory}/text", "w") as text:
        text.write("netcdf a {\ndimensions:\n x = 3 ;\nvariables:\n int v(x) ;\ndata:\n v = 1, 2, 3 ;\n}\n")
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_USE_FILE_LOCKING"}
    code, out, err = shared("env", "-u", "HDF5_USE_FILE_LOCKING", "sh", "-c", "ncgen -k nc4 -o netcdf.bin text && ncdump netcdf.bin && ncdump netcdf.bin")
    check(code == 0 and out.count("v = 1, 2, 3") == 2 and traffic(err)[0] > 0, f"netCDF-4: {code} {out} {err}")
    done = subprocess.run(["ncdump", "netcdf.bin"], capture_output=True, text=True, cwd=directory, env=environment)
    check(done.returncode == 0 and "v = 1, 2, 3" in done.stdout, f"netCDF-4, after the run: {done}")


def test_file_limit():
    """A limit on the size of files is one for programs under `tailrace run` as without it, and leaves the keeper its memory."""
    script = textwrap.dedent("""
        import os, resource, signal, sys
        name, end = sys.argv[1], []
        f = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        def tried(call):
            try:
                return call()
            except OSError as error:
                return error.errno
        os.write(f, b'x' * 3000)
        signal.signal(signal.SIGXFSZ, lambda *_: end.append('signal'))
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 20000))
        end += [tried(lambda: os.pwrite(f, b'y' * 5000, 7000)), tried(lambda: os.pwrite(f, b'z', 10000)), tried(lambda: os.pwrite(f, b'z', 9999)),
                tried(lambda: os.ftruncate(f, 10001)), tried(lambda: os.ftruncate(f, 10000)), tried(lambda: os.posix_fallocate(f, 0, 10001)),
                tried(lambda: os.pwrite(f, b'', 10000))]
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        end += [tried(lambda: os.pwrite(f, b'w' * 5000, 10000)), os.fstat(f).st_size]
        os.lseek(f, 0, os.SEEK_END)
        end += [tried(lambda: os.write(f, b'v' * 9000)), tried(lambda: os.write(f, b'v'))]
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        end += [tried(lambda: os.write(f, b'v'))]
        a = os.open(name, os.O_WRONLY | os.O_APPEND)
        end += [tried(lambda: os.write(a, b'v')), os.fstat(f).st_size]
        print(end, flush=True)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.write(a, b'v')
    """)
    plain = subprocess.run([sys.executable, "-c", script, "limited"], capture_output=True, text=True, cwd=directory)
    code, out, err = shared(sys.executable, "-c", script, "limited.bin")
    check(plain.returncode == -signal.SIGXFSZ and code == 128 + signal.SIGXFSZ and out == plain.stdout, f"limits: {plain} {code} {out} {err}")
    check(contents(f"{directory}/limited.bin") == contents(f"{directory}/limited"), "limits: other bytes")

    def limited(most, launcher, *options):
        done = subprocess.run([*launcher, COMMAND, "run", "--shared", PATTERN, *options, "--", "sh", "-c", "echo hi > hi.bin"], capture_output=True,
                              text=True, timeout=LIMIT, cwd=directory, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        return done.returncode, done.stderr

    # The system administrator may raise the hard limit, others not.
    launchers = [[]]
    powerless = ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]
    if os.geteuid() == 0 and subprocess.run([*powerless, "true"], capture_output=True).returncode == 0:
        launchers.append(powerless)
    for launcher in launchers:
        code, err = limited(20_000_000, launcher)
        check(code == 0 and contents(f"{directory}/hi.bin") == b"hi\n", f"a limit of 20 MB, {launcher}: {code} {err}")
    if os.geteuid() != 0 or len(launchers) == 2:
        code, err = limited(1_000_000, launchers[-1], "--memory", "1GiB")
        check(code == 1 and "ulimit -f" in err and "--memory" not in err, f"a limit of 1 MB: {code} {err}")


def test_own_program():
    for word in ("threads", "stdio", "more_stdio", "growing", "copying", "forks", "escapes", "locks", "killed_writers", "crowd", "killed_appenders",
                 "stopped_writers"):
        little = [["--page", "4KiB", "--memory", "64KiB"]] if word in ("killed_writers", "crowd", "forks") or ALL else []
        usual = {"killed_appenders": ["--page", "64KiB", "--memory", "1MiB"], "stopped_writers": ["--page", "4MiB"]}.get(word, [])
        for options in [usual, *little]:
            code, out, err = shared(MODEL, word, f"{word}.bin", options=options)
            check(code == 0 and "was lost in fork" not in err, f"{word} {options}: {code} {out} {err}")
    # A program that has not spoken to the keeper yet.
    code, out, err = shared("sh", "-c", f"touch vforks.bin; '{MODEL}' vforks vforks.bin; exit $?")
    check(code == 0 and contents(f"{directory}/vforks.bin") == b"after", f"vforks: {code} {out} {err}")
    data = contents(f"{directory}/stdio.bin")
    check(data is not None and len(data) == 600 * 12 + 9 + 8 and data.endswith(b"appended\nprinted\n"), "stdio: other bytes")
    check(contents(f"{directory}/escapes.bin") == b"Content", "escapes: other bytes")
    data = contents(f"{directory}/killed_writers.bin")
    check(data is not None and data == b"k" * 60000 + b"whole", "killed_writers: other bytes")


def test_killed():
    """kill -9 of the program, and of `tailrace run`, loses nothing that was written."""
    script = "import os, signal; f = open('killed.bin', 'wb', 0); [f.write(b'%07d\\n' % n) for n in range(100000)]; os.kill(os.getpid(), signal.SIGKILL)"
    code, _, err = shared("python3", "-c", script)
    whole = b"".join(b"%07d\n" % n for n in range(100000))
    check(code == 137 and contents(f"{directory}/killed.bin") == whole, f"a killed program: {code} {err}")
    check(traffic(err)[1] <= 2, f"a killed program: storage saw small writes: {err}")
    script = script.replace("killed.bin", "orphan.bin").replace("os.kill(os.getpid(), signal.SIGKILL)", "print('written', flush=True); input()")
    run_ = subprocess.Popen([COMMAND, "run", "--shared", PATTERN, "--", "python3", "-c", script], cwd=directory, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run_.stdout.readline()
    os.kill(run_.pid, signal.SIGKILL)
    run_.stdin.close()  # the program ends
    run_.stderr.read()  # until the keeper has ended
    run_.wait()
    check(contents(f"{directory}/orphan.bin") == whole, "tailrace run was killed: other bytes")


def test_killed_launcher():
    """A keeper ends if its `tailrace run` is killed just after it was made."""
    for attempt in range(3):
        run_ = subprocess.Popen([COMMAND, "run", "--shared", PATTERN, "--", "sleep", "0.2"], cwd=directory, stderr=subprocess.PIPE)
        keeper = None
        while keeper is None and run_.poll() is None:
            try:
                children = contents(f"/proc/{run_.pid}/task/{run_.pid}/children").split()
                keeper = next((int(child) for child in children if contents(f"/proc/{int(child)}/comm") == b"tailrace-keeper\n"), None)
            except ProcessLookupError:
                continue  # a process of the run's own tests
        run_.kill()
        try:
            run_.communicate(timeout=LIMIT / 4)  # until the keeper has ended
        except subprocess.TimeoutExpired:
            os.kill(keeper, signal.SIGKILL)
            check(False, f"the keeper of a run that was killed while it began lives on (attempt {attempt})")


def test_killed_keeper():
    """What the keeper had not stored is lost. Programs are told, and wait for nobody."""
    script = textwrap.dedent("""
        import errno, os, signal
        f = os.open('lost.bin', os.O_RDWR | os.O_CREAT)
        os.write(f, b'x' * 100)
        me, run = os.getpid(), os.getppid()
        keeper, = (int(pid) for pid in open(f'/proc/{run}/task/{run}/children').read().split() if int(pid) != me)
        os.kill(keeper, signal.SIGKILL)
        while open(f'/proc/{keeper}/stat').read().rsplit(')')[-1].split()[0] != 'Z':
            pass
        for call in (lambda: os.pwrite(f, b'z', 5 << 20), lambda: os.fsync(f), lambda: os.close(f)):
            try:
                call()
                raise SystemExit('no error')
            except OSError as error:
                assert error.errno == errno.EIO, error
    """)
    code, out, err = shared("python3", "-c", script)
    check(code == 1 and "no error" not in err and "Error" not in err, f"a killed keeper: {code} {err}")
    check("the keeper of this run has ended" in err and "the keeper has ended early" in err, f"a killed keeper: {err}")


def test_full_disk():
    if not MOUNTS:
        return
    mount = f"{directory}/small"
    os.makedirs(mount)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", mount]).returncode != 0:
        return
    try:
        full = ["--shared", f"{mount}/*.bin"]
        code, out, err = shared("dd", "if=source", f"of={mount}/full.bin", "bs=999", options=full)
        check(code == 1 and "No space left" in err, f"dd to a full disk: {code} {err}")
        size = os.path.getsize(f"{mount}/full.bin")
        check(3 << 20 <= size <= 4 << 20 and contents(f"{mount}/full.bin") == BYTES[:size], f"a full disk: {size} bytes")
        os.remove(f"{mount}/full.bin")
        script = textwrap.dedent(f"""
            import errno, os
            with open('{mount}/filler', 'wb') as filler:
                filler.write(bytes(3 << 20))
            f = os.open('{mount}/later.bin', os.O_RDWR | os.O_CREAT)
            done = 0
            try:
                while True:
                    done += os.write(f, b'x' * 1000)
            except OSError as error:
                assert error.errno == errno.ENOSPC, error
            os.remove('{mount}/filler')
            with open('{mount}/filler.bin', 'wb') as filler:
                filler.write(bytes(1 << 20))
            os.remove('{mount}/filler.bin')  # has room until somebody needs it
            while done < 3_500_000:
                done += os.write(f, b'y' * 1000)
            os.fsync(f)
            os.close(f)
            assert os.path.getsize('{mount}/later.bin') == done
        """)
        code, out, err = shared("python3", "-c", script, options=full)
        check(code == 0, f"writing on when there is room again: {code} {out} {err}")
        os.remove(f"{mount}/later.bin")
        script = textwrap.dedent(f"""
            import os
            with open('{mount}/filler.bin', 'wb') as filler:
                filler.write(bytes(2 << 20))
            os.remove('{mount}/filler.bin')
            f = os.open('{mount}/reserved.bin', os.O_RDWR | os.O_CREAT)
            os.posix_fallocate(f, 0, 3 << 20)
            os.close(f)
        """)
        code, out, err = shared("python3", "-c", script, options=full)
        check(code == 0, f"reserving room that a removed file has: {code} {out} {err}")
    finally:
        subprocess.run(["umount", "-l", mount])


def test_refusals():
    with open("static.c", "w") as source:
        source.write("int main(void) { return 0; }\n")
    if subprocess.run([COMPILER, "-static", "static.c", "-o", "static"], capture_output=True).returncode == 0:
        code, _, err = shared(os.path.abspath("static"))
        check(code == 2 and "is linked statically" in err, f"a static program: {code} {err}")
        # A static program that another one starts is run, and told of once.
        script = textwrap.dedent("""
            import os, subprocess, sys
            name = sys.argv[1]
            def child(start):
                pid = os.fork()
                if pid == 0:
                    start()
                return os.waitpid(pid, 0)[1]
            ways = [lambda: subprocess.run([name]).returncode, lambda: os.waitpid(os.posix_spawn(name, [name], os.environ), 0)[1],
                    lambda: child(lambda: os.execv(name, [name])), lambda: child(lambda: os.execvp(os.path.basename(name), [name]))]
            assert ways[int(sys.argv[2])]() == 0
            assert all(way() == 0 for way in ways)
            subprocess.run(['true'], check=True)
        """)
        os.environ["PATH"] += f":{os.getcwd()}"
        for way in range(4):
            code, out, err = shared("python3", "-c", script, os.path.abspath("static"), str(way))
            check(code == 0 and err.count("is linked statically") == 1, f"a static program that another one starts: {code} {out} {err}")
        code, _, err = shared("sh", "-c", "echo '#!'$0 > script; chmod +x script; ./script; ./script; cat source | wc -c", os.path.abspath("static"))
        check(code == 0 and err.count("is linked statically") == 1, f"a static program that a shell starts: {code} {err}")
        with open("starts.c", "w") as source:
            source.write(textwrap.dedent("""
                #include <sys/wait.h>
                #include <unistd.h>
                int main(int argc, char** argv) {
                  char* const environment[] = {"PATH=/usr/bin:/bin", NULL};
                  int status = 0;
                  if (fork() == 0) return execl(argv[1], argv[1], NULL);
                  wait(&status);
                  if (fork() == 0) return execle("/bin/sh", "sh", "-c", "echo execle $0 $1", "a", "b", NULL, environment);
                  wait(&status);
                  return argc > 1 ? execlp("echo", "echo", "execlp", NULL) : 1;
                }
            """))
        subprocess.run([COMPILER, "starts.c", "-o", "starts"], check=True)
        code, out, err = shared(os.path.abspath("starts"), os.path.abspath("static"))
        check(code == 0 and err.count("is linked statically") == 1 and out == "execle a b\nexeclp\n", f"execl and its kind: {code} {out} {err}")
    code, _, err = shared("no-such-program")
    check(code == 127 and "no-such-program" in err, f"no program: {code} {err}")
    code, _, err = shared("true", options=["--page", "5000"])
    check(code == 2 and "power of 2" in err, f"a page of 5,000 bytes: {code} {err}")
    code, _, err = shared("true", options=["--memory", "1MiB"])
    check(code == 2 and "--memory" in err, f"memory for one page: {code} {err}")
    code, _, err = shared("sh", "-c", "exit 7")
    check(code == 7, f"the exit code of the program: {code} {err}")
    code, out, err = shared("sh", "-c", "ls; cat source | wc -c; cat < source > other", options=["--verbose"])
    check(code == 0 and "5000001" in out and contents(f"{directory}/other") == BYTES, f"files that do not match: {code} {out} {err}")
    check("io_uring: " in err and "no program opened a file that --shared names" in err, f"--verbose: {err}")
    done = subprocess.run([COMMAND, "run", "--shared", PATTERN, "--", "true"], capture_output=True, text=True, timeout=LIMIT,
                          env={"PATH": os.environ["PATH"], "PMI_RANK": "0", "PMI_SIZE": "2"})
    check(done.returncode == 2 and "--group" in done.stderr, f"ranks that nobody has started: {done}")
    proxy = textwrap.dedent("""
        import subprocess, sys
        open('/proc/self/comm', 'w').write('hydra_pmi_proxy')
        rank = 'touch here%d; until [ -e here0 ] && [ -e here1 ]; do sleep 0.05; done; echo %d >> ranks.bin'
        shells = [subprocess.Popen(['sh', '-c', '"$@"; exit $?', 'sh', *sys.argv[1:], rank % (n, n)]) for n in range(2)]
        sys.exit(sum(shell.wait() for shell in shells))
    """)
    done = subprocess.run([sys.executable, "-c", proxy, COMMAND, "run", "--shared", PATTERN, "--", "sh", "-c"], capture_output=True, text=True,
                          timeout=LIMIT, cwd=directory, env={"PATH": os.environ["PATH"], "PMI_RANK": "0", "PMI_SIZE": "2"})
    check(done.returncode == 0 and done.stderr.count("of the programs became") == 1, f"ranks with a shell each: {done}")
    flock = subprocess.run(["which", "flock"], capture_output=True)
    if flock.returncode == 0:
        code, _, err = shared("sh", "-c", "flock copied.bin sh -c '! flock --nonblock copied.bin true' && flock --nonblock copied.bin true")
        check(code == 0, f"flock: {code} {err}")


for name, test in list(globals().items()):
    if name.startswith("test_"):
        begin = time.monotonic()
        test()
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
finish()
