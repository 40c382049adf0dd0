"""upgrade: the processes that were replaced: their sessions, counters and end."""

import contextlib
import os
import signal
import time

from support import net
from support.case import check, check_equal, test
from support.chain import Chain, echo, exchange_once
from support.daemon import alive
from test_proxy import proxy

THEME = "upgrade"


@test(timeout=60)
def counters_of_old_sessions(t):
    """what sessions of replaced processes transfer is in the counters of the one that is left"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        sessions = []
        for _ in range(3):
            client = net.connect(front)
            sessions.append((client, net.accept(listener)))
            chain.upgrade()
        chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 3, "three are open")
        for client, server in sessions:
            client.sendall(b"x" * 1000)
            net.read_exactly(server, 1000)
        for client, server in sessions:
            client.close()
            server.close()
        for pid in chain.old:
            chain.wait_gone(pid)
        chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 0, "none is open")
        now = chain.statistics("listen front")
        check_equal((now["sessions_total"], now["bytes_in"]), (3, 3000), "sessions and bytes")
        check_equal(chain.statistics("server back/only")["connects"], 3, "connects")
        check_equal(len(chain.lines("has drained and ended")), 3, "ends that were logged")
        chain.stop()


@test(timeout=60)
def counters_of_a_killed_one(t):
    """a process that is killed while it drains takes only its own sessions along in the counters, not those of
    an older one"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener):
            chain.upgrade()
            with net.proxied(front, listener):
                killed = chain.upgrade()
                os.kill(killed, signal.SIGKILL)
                chain.wait_line(f"process {killed} ended before it had drained", chain.pid)
                now = chain.statistics("listen front")
                check_equal((now["sessions"], now["error"]), (1, 1), "open sessions, and ends by errors")
        chain.wait_line(f"process {chain.old[0]} has drained and ended", chain.pid)

        def ends():
            now = chain.statistics("listen front")
            return now["sessions_total"], now["sessions"], now["error"]
        chain.eventually(lambda: ends() == (2, 0, 1), "the control loop has the last report")
        chain.stop()


@test(timeout=60)
def counters_of_what_came_back(t):
    """a listener and an upstream that a reload removed and another brought back, in the old process or in the
    new one, count no session of those that had their names"""
    front, back, other = t.address(), t.address(), t.address()
    kept = "drain_timeout = 0\n" + echo(other)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, kept + proxy(front, back)))

        def remove_and_bring_back():
            for more in ("", proxy(front, back)):
                done = len(chain.lines("reload: done", chain.pid))
                chain.daemon.config_path.write_text(f"[reactord]\npid_file = {chain.pid_path}\n{kept}{more}",
                                                    encoding="utf-8")
                os.kill(chain.pid, signal.SIGHUP)
                chain.wait_line("reload: done", chain.pid, done + 1)

        def numbers():
            return [chain.statistics(what)[key] for what in ("listen front", "upstream back", "server back/only")
                    for key in ("sessions", "sessions_total")]

        def end(client, server):
            client.close()
            server.close()

        first = stack.enter_context(net.proxied(front, listener))
        remove_and_bring_back()
        second, third = [stack.enter_context(net.proxied(front, listener)) for _ in range(2)]
        old = chain.upgrade()
        end(*second)
        chain.eventually(lambda: numbers() == [1, 2, 1, 2, 1, 2], "one is open, one has ended")
        remove_and_bring_back()
        end(*third)
        end(*first)
        chain.wait_gone(old)
        chain.wait_line("has drained and ended", chain.pid)
        chain.eventually(lambda: numbers() == [0] * 6, "open sessions and all, of listener, upstream and server")
        chain.stop()


@test(timeout=60)
def one_at_a_time(t):
    """a second upgrade is refused while one is under way, and one of a replaced process too"""
    address = t.address()
    with Chain(t, f"drain_timeout = 0\n{echo(address)}") as chain:
        chain.becomes_reactord("sleep 1")
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            new = chain.begin()
            os.kill(chain.pid, signal.SIGUSR2)
            chain.wait_line("upgrade: refused: another is under way", chain.pid)
            chain.wait_line("upgrade: took over", new)
            os.kill(chain.pid, signal.SIGUSR2)
            chain.wait_line("upgrade: refused: draining", chain.pid)
        check_equal(len(chain.started()), 1, "processes started")
        chain.wait_gone(chain.pid)
        chain.pid = new
        exchange_once(address)
        chain.stop()


@test(timeout=60)
def old_processes(t):
    """max_old_processes bounds those that drain; when one has ended another upgrade may come"""
    front, back = t.address(), t.address()
    config = "drain_timeout = 0\nmax_old_processes = 2\n" + proxy(front, back)
    with net.listen(back) as listener, Chain(t, config) as chain:
        with net.proxied(front, listener):
            first, port = chain.upgrade(), int(front.rpartition(":")[2])
            chain.eventually(lambda: not net.listens(first, port), "the next client comes to the second")
            with net.proxied(front, listener):
                chain.upgrade()
                os.kill(chain.pid, signal.SIGUSR2)
                chain.wait_line("upgrade: refused: max_old_processes is reached", chain.pid)
            chain.wait_gone(chain.old[1])
            chain.wait_line("has drained and ended", chain.pid)
            chain.upgrade()
            check(alive(chain.old[0]), "the first one has ended")
        chain.wait_gone(chain.old[0])
        chain.stop()


@test(timeout=60)
def stop_waits_for_old(t):
    """SIGTERM lets the sessions of replaced processes finish, too, and ends with the last of them"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener) as (client, server):
            old = chain.upgrade()
            os.kill(chain.pid, signal.SIGTERM)
            chain.wait_line("replaced processes that still drain: 1", chain.pid)
            client.sendall(b"still")
            check_equal(net.read_exactly(server, 5), b"still", "what the server got")
            check(alive(old) and alive(chain.pid), "one of them has ended")
        chain.wait_gone(old)
        chain.wait_gone(chain.pid)


@test(each={"number": [signal.SIGTERM, signal.SIGINT]}, timeout=60)
def stop_ends_old(t, number):
    """{number!r}, twice, ends the replaced processes at once"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener):
            old = chain.upgrade()
            os.kill(chain.pid, number)
            if number == signal.SIGTERM:
                chain.wait_line("replaced processes that still drain: 1", chain.pid)
                os.kill(chain.pid, number)
            chain.wait_gone(chain.pid)
            chain.wait_gone(old)


@test(timeout=60)
def upgrade_drain_timeout(t):
    """a replaced process resets what is left after upgrade_drain_timeout, and that is counted"""
    front, back = t.address(), t.address()
    config = "upgrade_drain_timeout = 1s\ndrain_timeout = 1h\n" + proxy(front, back)
    with net.listen(back) as listener, Chain(t, config) as chain:
        with net.proxied(front, listener):
            old = chain.upgrade()
            chain.wait_gone(old)
        chain.eventually(lambda: chain.statistics("listen front").get("drain") == 1, "one has drained")
        chain.stop()


@test(timeout=60)
def sessions_go_on(t):
    """sessions of a replaced process go on longer than drain_timeout; when the new process is told to end they
    have drain_timeout, too"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 300ms\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener) as (client, server):
            old = chain.upgrade()
            time.sleep(1)
            client.sendall(b"still here")
            check_equal(net.read_exactly(server, 10), b"still here", "what the server gets")
            os.kill(chain.pid, signal.SIGTERM)
            chain.wait_gone(old)
            chain.wait_gone(chain.pid)


@test(timeout=60)
def stop_meanwhile(t):
    """SIGTERM while another program starts ends both"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        chain.becomes("sleep 60\n")
        new = chain.begin()
        os.kill(chain.pid, signal.SIGTERM)
        chain.wait_gone(chain.pid)
        chain.wait_gone(new)
        chain.wait_line(f"upgrade: cancelled: this process drains; process {new} is killed", chain.pid)
        check_equal(chain.lines("upgrade: failed", chain.pid), [], "lines about a failure")
        check(not os.path.exists(chain.pid_path), "the pid file is still there")


@test(timeout=60)
def stop_of_the_new(t):
    """SIGTERM to a program that starts leaves the old one, its socket files and its pid file alone"""
    path = t.path("echo.sock")
    with Chain(t, echo(path)) as chain:
        chain.becomes_reactord("sleep 1")
        new = chain.begin()
        os.kill(new, signal.SIGTERM)
        chain.wait_line("upgrade: failed: killed by signal 15", chain.pid)
        exchange_once(path)
        check_equal(chain.pid_file(), chain.pid, "the pid file")
        chain.stop()


@test(timeout=60)
def other_counters(t):
    """what was denied, refused per client, mirrored and cut by frames before an upgrade is in the counters
    after it"""
    front, back, copy = t.address(), t.address(), t.address()
    options = ("mirror = copy\npipeline = frame\nframe_length_width = 2\nframe_max_length = 100\n"
               "frame_on_error = close\n[upstream copy]\nserver.only = " + copy + "\n")
    denied, few = t.address(), t.address()
    options += (f"[listen denied]\naddress = {denied}\nservice = echo\ndeny = 127.0.0.1\n"
                f"[listen few]\naddress = {few}\nservice = echo\nmax_connections_per_client = 1\n")
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        mirror = stack.enter_context(net.listen(copy))
        chain = stack.enter_context(Chain(t, proxy(front, back, options)))
        with net.proxied(front, listener) as (client, server), net.accept(mirror) as copied:
            client.sendall(b"\0\5hello")
            net.read_exactly(server, 7)
            net.read_exactly(copied, 7)
            client.sendall(b"\1\0")
            net.ending(client)
        with contextlib.suppress(ConnectionResetError), net.connect(denied) as client:
            net.ending(client)
        with net.connect(few) as client, contextlib.suppress(ConnectionResetError), net.connect(few) as second:
            net.exchange(client, b"x")
            net.ending(second)
        chain.eventually(lambda: chain.statistics("listen denied").get("denied") == 1, "denied")
        chain.eventually(lambda: chain.statistics("listen few").get("over_max_connections_per_client") == 1, "few")
        chain.eventually(lambda: chain.statistics("frame front").get("too_long") == 1, "too long")
        chain.eventually(lambda: chain.statistics("listen front").get("mirrors") == 1, "mirrored")
        before = {what: chain.statistics(what) for what in ("listen", "frame", "upstream")}
        chain.upgrade()
        for what, counts in before.items():
            now = chain.statistics(what)
            for key, value in counts.items():
                check(now[key] >= value or key == "clients_known", f"{what}: {key} has fallen from {value} to {now[key]}")
        chain.stop()


@test(timeout=60)
def health(t):
    """a server that is down is down in the new process from its start"""
    front, back = t.address(), t.address()
    options = "check = tcp\ncheck_interval = 200ms\ncheck_timeout = 100ms\nfall = 1\nrise = 1000\n"
    with Chain(t, proxy(front, back, "", options)) as chain:
        chain.wait_line("server only", chain.pid)
        chain.eventually(lambda: "down" in " ".join(chain.lines("server only", chain.pid)), "it is down")
        with net.listen(back):
            chain.upgrade()
            chain.statistics("server")
            states = chain.lines("stats server back/only state=", chain.pid)
            check("state=down" in states[-1], f"not down: {states[-1]}")
        chain.stop()
