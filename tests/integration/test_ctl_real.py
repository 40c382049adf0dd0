"""ctl: reactorctl with a real daemon, and its completion in the shell."""

import json
import os
import re
import signal
import subprocess

from support import net
from support.admin_mock import AdminMock
from support.case import check, check_equal, test
from support.ctl_real import Real
from support.ctl_runs import ask, done, refused

THEME = "ctl"


@test()
def real_views(t):
    """a real daemon: all that shows something does, with the names of its objects"""
    real = Real(t)
    with t.daemon(real.config()), real.client():
        for command, words in (("status", ("serving", "/reactord-0.ini")), ("loops", ("work-2-2",)),
                               ("listeners", ("echo", "front", "accepting")), ("upstreams", ("back/a", "back/b", "up")),
                               ("sessions", ("front", "back/a", "work-2-")), ("config", ("[listen front]",)),
                               ("metrics", ("reactord_listener_sessions", 'listener="front"')),
                               ("top --once --interval 100ms", ("work-2-1", "back/b", "front"))):
            out = done(t, real, command)
            for word in words:
                check(word in out, f"{command} does not show {word}: {out}")
        for command in ("loops", "listeners", "upstreams"):
            lines = done(t, real, command).splitlines()
            columns = [line.split() for line in lines]
            check(lines[0].isupper() and len(columns) > 2, f"no table: {lines}")
            names = [row["name"] for row in json.loads(done(t, real, f"--json {command}"))[command]]
            check(set(names) <= {row[0] for row in columns}, f"{names} are not in {columns}")


@test()
def real_figures(t):
    """a real daemon tells each figure that the tables have a column for"""
    real = Real(t)
    with t.daemon(real.config()), real.client():
        # Of a listener: limits that it shares, which it does not, and the upstream of an echo. Of an upstream's own
        # row: what only servers have; of a server's: who waits for the upstream, why it is down, which it is not, its
        # agent, which it has not, and times that only least_time takes. By hand are only servers. Of a session: its load, not measured yet.
        for command, missing in (("loops", {1: 0}), ("listeners", {"echo": 2, "front": 1}),
                                 ("sessions --listener front", {"": 1}),
                                 ("upstreams", {"back": 13, "back/a": 5, "back/b": 5})):
            for line in done(t, real, command).splitlines()[1:]:
                row = re.split(r"  +", line.strip())
                check(row.count("-") <= missing.get(row[0], missing.get("", 0)), f"{command} does not know all of {line!r}")


@test()
def real_kill(t):
    """a real daemon: kill ends a session by its ID, all of a filter, and none of a filter that matches none"""
    real = Real(t)
    with t.daemon(real.config()), real.client() as first, real.client() as second:
        rows = real.sessions()
        check_equal(len(rows), 2, "sessions")
        port = first.getsockname()[1]
        number = next(row["id"] for row in rows if row["client"].endswith(f":{port}"))
        check_equal(done(t, real, f"kill {number}"), "killed 1 session\n", "output")
        check_equal(net.ending(first), "reset", "the client's end")
        refused(t, real, f"kill {number}", 1)
        check_equal(done(t, real, "kill --client 192.0.2.0/24"), "killed 0 sessions\n", "output")
        check_equal(done(t, real, "kill --listener front --dry-run"), "1 session would be killed\n", "output")
        check_equal(net.exchange(second, b"still"), b"still", "echo of the other")
        check_equal(done(t, real, "kill --listener front --client 127.0.0.1/32"), "killed 1 session\n", "output")
        check_equal(net.ending(second), "reset", "the client's end")
        for command in ("kill --client nonsense", "kill --listener nothing", "sessions --loop nothing"):
            check(ask(t, real, command).code in (0, 1), command)


@test()
def real_servers(t):
    """a real daemon: a server is drained until its session ends, shed, enabled, weighed, and reset"""
    real = Real(t)
    with t.daemon(real.config()):
        client = real.client()
        with subprocess.Popen([t.reactorctl_path, "-s", real.address, "drain", "back/a", "--wait"], cwd=t.dir,
                              stdout=subprocess.PIPE) as waiting:
            check(b"back/a: draining" in waiting.stdout.readline(), "it does not drain")
            check(re.search(r"back/a .* draining", done(t, real, "upstreams")), "it is not shown as draining")
            with real.client():
                check_equal(real.sessions()[0]["server"] != real.sessions()[1]["server"], True, "servers differ")
            check_equal(waiting.poll(), None, "it waits")
            check("1 session of back/a will end" in done(t, real, "shed back/a --percent 100 --over 100ms"), "shed")
            net.ending(client)
            check_equal(waiting.wait(t.scale * 10), 0, "exit code of drain --wait")
        done(t, real, "enable back/a")
        check("weight 7" in done(t, real, "weight back/a 7"), "weight")
        check_equal(done(t, real, "set io_ratio 70"), "io_ratio = 70\n", "output")
        done(t, real, "set log_level warning")
        done(t, real, "reset")
        check(not re.search(r"back/a .* 7 ", done(t, real, "upstreams")), "the weight is not reset")
        for command in ("drain back/nix", "weight back/a 70000", "set log_level loud", "shed nix --percent 5"):
            refused(t, real, command, 1)
        client.close()


@test()
def real_reload(t):
    """a real daemon: reload lists its changes, is tried, refused, reverted and confirmed"""
    real = Real(t)
    with t.daemon(real.config()) as daemon:
        check_equal(done(t, real, "reload"), "reload: nothing has changed\n", "output")
        daemon.config_path.write_text(real.config(threads=3), encoding="utf-8")
        check("1 change, none was made" in done(t, real, "reload --dry-run"), "dry run")
        finished = ask(t, real, "reload --confirm 1s --wait")
        check_equal(finished.code, 1, f"exit code when it is not confirmed ({finished.out} {finished.err})")
        check("threads: 2 -> 3" in finished.out and "not confirmed" in finished.err, f"{finished}")
        refused(t, real, "confirm", 1, "nothing waits")
        done(t, real, "reload --confirm 60s")
        check("unless `reactorctl confirm`" in done(t, real, "status"), "status does not tell")
        done(t, real, "confirm")
        daemon.config_path.write_text(real.config(threads=4), encoding="utf-8")
        done(t, real, "reload --confirm 60s")
        daemon.send_signal(signal.SIGHUP)
        t.eventually(lambda: real.reload()["state"] == "idle", "SIGHUP confirms")
        check_equal((real.reload()["count"], real.reload()["reverted"]), (6, 1), "reloads, and those reverted")
        daemon.has_notified("READY=1")  # reads what it says: it waits when the socket is full
        daemon.config_path.write_text(real.config(threads="many"), encoding="utf-8")
        refused(t, real, "reload", 1, "reactord-0.ini:7", "threads")
        daemon.config_path.write_text(real.config(threads=3), encoding="utf-8")


@test()
def real_token(t):
    """a real daemon on TCP wants the token of its file"""
    real = Real(t)
    address, path = t.address(), t.write("token", "0123456789abcdef0123456789abcdef\n")
    os.chmod(path, 0o600)
    with t.daemon(real.config(sock=f"{address}\ntoken_file = {path}")):
        real.address = address
        refused(t, real, "status", 1, "token", "--token-file")
        refused(t, real, f"status --token-file {t.write('wrong', 'x' * 32)}", 1, "token")
        done(t, real, f"status --token-file {path}")


# Completion

@test(each=[
    {"words": "", "wanted": ["status", "kill", "help"]},
    {"words": "help ", "wanted": ["status", "kill"]},
    {"words": "drain ", "wanted": ["back/a", "back/b"]},
    {"words": "pause ", "wanted": ["front", "back"]},
    {"words": "sessions --sort ", "wanted": ["age", "idle", "load", "bytes"]},
    {"words": "sessions --loop ", "wanted": ["wrkr-2-1"]},
    {"words": "kill --", "wanted": ["--listener", "--dry-run", "--json"]},
    {"words": "set ", "wanted": ["io_ratio", "log_level"]},
    {"words": "frobnicate ", "wanted": []},
])
def completion(t, words, wanted):
    """after "reactorctl {words}" the shell offers {wanted}"""
    with AdminMock(t.path("a.sock")) as mock:
        finished = t.reactorctl("__complete", "-s", mock.address, *words.split(" "))
    check_equal((finished.code, finished.err), (0, ""), "exit code and stderr")
    offered = finished.out.split()
    check(set(wanted) <= set(offered) if wanted else not offered, f"it offers {offered}")


@test()
def completion_in_bash(t):
    """bash completes a command and the name of a server by the script that is installed"""
    script = t.options.source_dir / "conf/bash-completion/reactorctl"
    with AdminMock(t.path("a.sock")) as mock:
        for line, wanted in ((("dr",), "drain"), (("drain", "back/a"), "back/a"), (("shed", "back/b"), "back/b")):
            words = " ".join(f"'{word}'" for word in (t.reactorctl_path, *line))
            code = (f"source {script}; COMP_WORDS=({words}); COMP_CWORD={len(line)}; _reactorctl; "
                    f"printf '%s\\n' \"${{COMPREPLY[@]}}\"")
            done_by = t.run("bash", "-c", code, env={**os.environ, "REACTORCTL_ADDRESS": mock.address})
            check_equal(done_by.out.split(), [wanted], f"candidates for {line}")
