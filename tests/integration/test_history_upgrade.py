"""history and events over an upgrade: the new process goes on with those of the old one."""

import os
import re
import subprocess

from support.admin import get, request
from support.case import check, check_equal, test
from support.chain import Chain, exchange_once
from support.server import Counted
from test_history import begun, config, events, samples, texts

# Stands between the old process and the new one, and does something to what is handed over.
BETWEEN = r"""#!/usr/bin/env python3
import array, os, select, socket, sys

MODE = {mode!r}
fd = 3 + os.environ["LISTEN_FDNAMES"].split(":").index("reactord-upgrade")
old, (ours, theirs) = socket.socket(fileno=os.dup(fd)), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

def relay():
    ways = {{old: ours, ours: old}}
    while True:
        for one in select.select(list(ways), [], [])[0]:
            text, control, _, _ = one.recvmsg(4096, 256)
            if not text:
                os._exit(0)
            fds = array.array("i")
            for _, _, data in control:
                fds.frombytes(data)
            if text in (b"history", b"events"):
                if MODE == "none":
                    continue
                if MODE == "half":
                    os.ftruncate(fds[0], os.fstat(fds[0]).st_size // 2)
                if MODE == "newer":
                    os.pwrite(fds[0], b"9", len(text) + 1)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds.tobytes())] if fds else []
            ways[one].sendmsg([text], rights)
            for copy in fds:
                os.close(copy)

if os.fork() == 0:
    if os.fork() == 0:
        theirs.close()
        for n in range(3, 3 + int(os.environ["LISTEN_FDS"])):
            os.close(n)
        relay()
    os._exit(0)
os.wait()
os.dup2(theirs.fileno(), fd, True)
os.execv({program!r}, sys.argv[:1] + sys.argv[1:])
"""


def until_counted(t, admin, n, thing="listener/front"):
    t.eventually(lambda: round(sum(samples(admin, thing, "new_sessions"))) == n, f"{n} sessions of {thing}", 20)


@test(timeout=90)
def goes_on(t):
    """samples and events of before an upgrade are there after it, each session is counted once, and nothing jumps"""
    admin, front, at = t.path("admin.sock"), t.address(), t.address()
    with Counted(at), Chain(t, config(admin, front, {"a": at})) as chain:
        begun(t, admin)
        for _ in range(20):
            exchange_once(front)
        until_counted(t, admin, 20)
        before = [ageless(event) for event in events(admin)]
        for n in (1, 2):
            chain.upgrade()
            t.eventually(lambda n=n: len([text for text in texts(admin) if "upgrade: took over" in text]) == n, "took over")
            check_equal([ageless(event) for event in events(admin)[:len(before)]], before, "the events")
            check(sum(samples(admin, "listener/front", "new_sessions")) >= 20, "sessions of before")
            exchange_once(front)
            until_counted(t, admin, 20 + n)
            until_counted(t, admin, 20 + n, "process")
        check_equal(round(sum(samples(admin, "process", "ended:client_fin"))), 22, "ends")
        check(samples(admin, "upstream/back", "connect_p99_ms"), "connects")
        ids = [event["id"] for event in events(admin)]
        check_equal(ids, sorted(set(ids)), "IDs")
        check_equal(chain.lines("upgrade: no "), [], "complaints")


def ageless(event):
    return {key: value for key, value in event.items() if "age" not in key}


@test(timeout=90, each={"mode": ["none", "half", "newer"]})
def without_a_history(t, mode):
    """an old process that hands over {mode} of its history is replaced, and the history begins anew"""
    admin, front, at = t.path("admin.sock"), t.address(), t.address()
    with Counted(at), Chain(t, config(admin, front, {"a": at})) as chain:
        begun(t, admin)
        exchange_once(front)
        until_counted(t, admin, 1)
        chain.becomes_reactord()  # a copy of it at t.path("real")
        with open(t.path("next"), "w", encoding="utf-8") as program:
            program.write(BETWEEN.format(mode=mode, program=t.path("real")))
        os.chmod(t.path("next"), 0o755)
        os.replace(t.path("next"), chain.program)
        chain.upgrade()
        t.eventually(lambda: any("upgrade: took over" in text for text in texts(admin)), "the take-over")
        begun(t, admin)
        check_equal(sum(samples(admin, "listener/front", "new_sessions")), 0, "sessions of before")
        check_equal([text for text in texts(admin) if "upgrade: started" in text], [], "events of before")
        exchange_once(front)
        until_counted(t, admin, 1)
        if mode != "none":
            for what in ("history", "events"):
                chain.wait_line(f"upgrade: no {what} of the process before: what it sent is incomplete", chain.pid)


@test(timeout=90)
def follow_over_an_upgrade(t):
    """reactorctl events --follow prints each event of the old and of the new process once"""
    admin, front = t.path("admin.sock"), t.address()
    output = t.path("followed")

    def printed():
        with open(output, encoding="utf-8") as file:
            return file.read()

    with Chain(t, config(admin, front, {"a": t.address()}, check_lines="")) as chain, open(output, "wb") as file:
        following = subprocess.Popen([t.reactorctl_path, "-s", admin, "events", "--follow"], stdout=file,
                                     stderr=subprocess.DEVNULL)
        try:
            t.eventually(lambda: "ready" in printed(), "what was")
            check_equal(t.reactorctl("-s", admin, "weight", "back/a", "5").code, 0, "weight")
            t.eventually(lambda: '"weight":5' in printed(), "the command", 20)
            chain.upgrade()
            t.eventually(lambda: t.reactorctl("-s", admin, "weight", "back/a", "6").code == 0, "weight, then", 20)
            t.eventually(lambda: '"weight":6' in printed(), "the command of the new process", 30)
        finally:
            following.kill()
            following.wait()
    lines = printed().splitlines()
    check_equal(sorted(set(lines)), sorted(lines), "no line twice")
    check_equal(len([line for line in lines if line.endswith(" ready")]), 2, "one of each process")
    for words in ("\"weight\":5", "upgrade: started", "upgrade: took over", "\"weight\":6"):
        check_equal(len([line for line in lines if re.search(words, line)]), 1, f"lines with {words}")


@test(timeout=60)
def fast_commands(t):
    """300 commands within a moment are a few events, which say how many there were; a server that went down before is
    still there"""
    admin, front = t.path("admin.sock"), t.address()
    with t.daemon(config(admin, front, {"a": t.address()}, check_lines="check = tcp\n")):
        t.eventually(lambda: any("server a: down" in text for text in texts(admin)), "a is down")
        for n in range(300):
            check_equal(request(admin, "PUT", "/v1/server", {"server": f"back/s{n}", "line": f"127.0.0.1:{n + 1}"}).status,
                        200, f"server {n}")
        listed = [event for event in events(admin) if event["kind"] == "admin"]
        check_equal(sum(event["lines"] for event in listed), 300, "commands")
        check(listed[-1]["others"] == listed[-1]["lines"] - 1 and '"back/s299"' in listed[-1]["text"], listed[-1])
        check(len(listed) < 100, f"{len(listed)} events of commands")
        check(any("server a: down" in text for text in texts(admin)), "a went down")
        told = t.reactorctl("-s", admin, "events").out
        check(re.search(r"admin: uid .* added \(and \d+ others like it in \d+\.\d s\)", told), told)
