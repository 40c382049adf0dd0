"""checks: the daemon finds out by itself which servers serve."""

import re
import signal
import time

from support import net, program
from support.admin import get, section
from support.case import check, check_equal, test
from support.health import Ready, Talker, lines_of, ready, served
from support.server import Moody, full_queue
from support.upstreams import config, statistics, who
from support.watch import Watch

INTERVAL_S = 0.05
RISE, FALL = 2, 3
CHECKED = {"check": "tcp", "check_interval": f"{INTERVAL_S * 1000:.0f}ms", "check_timeout": "2s",
           "rise": RISE, "fall": FALL}
PONG = b"+PONG\r\n"
TIME_WAIT = "06"  # as in /proc/net/tcp


def checked(front, servers, workers=2, log="notice", **options):
    """The configuration of a proxy whose servers are checked often."""
    lines = "\n".join(f"{key} = {value}" for key, value in {**CHECKED, **options}.items())
    return (f"[reactord]\nlog_level = {log}\ndrain_timeout = 500ms\n[worker]\nthreads = {workers}\n"
            + config(front, servers, lines))


def went_down(daemon, name="a", why=".*", fall=FALL):
    """The log lines of that server having gone down."""
    return daemon.log_lines(rf"warning \S+: upstream back: server {name}: down: "
                            rf"(its first check failed|checks failed in a row: {fall}, the last): {why}; "
                            r"servers up: \d+ of \d+$")


def came_up(daemon, name="a", rise=RISE):
    return daemon.log_lines(rf"notice \S+: upstream back: server {name}: up: checks passed in a row: {rise}, "
                            r"it was down for \d+\.\d s; servers up: \d+ of \d+$")


def wait_down(t, daemon, name="a", why=".*", times=1, fall=FALL):
    t.eventually(lambda: len(went_down(daemon, name, why, fall)) == times,
                 f"server {name} is down: {why}", within=10)


def wait_up(t, daemon, name="a", times=1, rise=RISE):
    t.eventually(lambda: len(came_up(daemon, name, rise)) == times, f"server {name} is up", within=10)


@test()
def down_and_up(t):
    """a server that stops listening is down after `fall` checks, no client is sent there, and it gets
    clients again when `rise` checks have passed, not before; the log says both"""
    front, rise = t.address(), 10
    with Moody("a", t.address()) as a, Moody("b", t.address()) as b:
        servers = {"a": a.address, "b": b.address}
        with t.daemon(checked(front, servers, rise=rise, eject_failures=0)) as daemon:
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers at first")
            a.becomes("refuses")
            stopped_at = time.monotonic()
            wait_down(t, daemon, why="connection refused")
            check(time.monotonic() - stopped_at >= (FALL - 2) * INTERVAL_S, "it was down too early")
            check("servers up: 1 of 2" in went_down(daemon)[0], "the log counts wrongly")
            tried = len(daemon.log_lines("cannot connect"))
            check_equal({who(front) for _ in range(20)}, {"b"}, "the servers while a is down")
            check_equal(len(daemon.log_lines("cannot connect")), tried, "tries while a is down")
            a.accepted.clear()
            works_at = time.monotonic()
            a.becomes("works")
            while not a.accepted:
                who(front)
                check(time.monotonic() < works_at + 10 * t.scale, "a got no client")
            down_for = a.accepted[0] - works_at
            # The first that passes may have begun just before.
            check(down_for >= (rise - 2) * INTERVAL_S, f"it had a client after {down_for:.3f} s")
            wait_up(t, daemon, rise=rise)
            check("servers up: 2 of 2" in came_up(daemon, rise=rise)[0], "the log counts wrongly")
            check_equal(len(went_down(daemon, "[ab]")), 1, "times that any was down")


@test()
def unseen(t):
    """20 checks that only connect are not seen by a server's accept"""
    front = t.address()
    with Moody("a", t.address()) as a:
        a.becomes("refuses")
        with t.daemon(checked(front, {"a": a.address}, rise=20, check_interval="10ms")) as daemon:
            wait_down(t, daemon)
            a.becomes("works")
            wait_up(t, daemon, rise=20)
            check_equal(a.accepted, [], "what accept gave")
            check_equal(who(front), "a", "the server")
            check_equal(len(a.accepted), 1, "what accept gave then")


@test(needs=("redis-server",))
def redis_ping(t):
    """redis is up as long as it answers PING, stopped and killed it is down, and checks leave no client
    in it"""
    front, port = t.address(), t.port()
    command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly",
               "no", "--dir", t.dir]
    options = {"check_send": r"PING\r\n", "check_expect": "+PONG", "check_timeout": "500ms"}
    with t.daemon(checked(front, {"a": f"127.0.0.1:{port}"}, **options)) as daemon:
        wait_down(t, daemon, why="connection refused")
        with program.server(t, command, port) as redis:
            wait_up(t, daemon)
            redis.send_signal(signal.SIGSTOP)
            wait_down(t, daemon, why="timed out waiting for the answer", times=1)
            redis.send_signal(signal.SIGCONT)
            wait_up(t, daemon, times=2)
            with net.connect(front) as client:
                t.eventually(lambda: b"connected_clients:1\r" in redis_info(client),
                             "nobody but us is connected", within=10)
        wait_down(t, daemon, why="connection refused", times=2)


def redis_info(client):
    client.sendall(b"INFO clients\r\n")
    head = b""
    while not head.endswith(b"\r\n"):
        head += net.read_exactly(client, 1)
    return net.read_exactly(client, int(head[1:-2]) + 2)


@test(needs=("redis-server", "redis-cli"))
def redis_role(t):
    """of two redis servers only the one that says role:master gets clients, and another one after a
    change of roles"""
    front = t.address()
    options = {"check_send": r"INFO replication\r\n", "check_expect": "role:master",
               "check_timeout": "500ms"}
    with program.redis(t) as a, program.redis(t) as b:
        port_a, port_b = (address.rpartition(":")[2] for address in (a, b))
        program.run(["redis-cli", "-p", port_b, "REPLICAOF", "127.0.0.1", port_a])
        with t.daemon(checked(front, {"a": a, "b": b}, **options)) as daemon:
            wait_down(t, daemon, "b", why=r"wrong answer: '\$\d+\\r\\n# Repl.*\.\.\.'")
            program.run(["redis-cli", "-p", port_b, "REPLICAOF", "NO", "ONE"])
            wait_up(t, daemon, "b")
            program.run(["redis-cli", "-p", port_a, "REPLICAOF", "127.0.0.1", port_b])
            wait_down(t, daemon, "a", why="wrong answer: .*")
            for _ in range(4):
                with net.connect(front) as client:
                    client.sendall(b"CONFIG GET port\r\n")
                    got = net.read_exactly(client, len(b"*2\r\n$4\r\nport\r\n$5\r\n") + 5)
                    check(got.endswith(port_b.encode()), f"the server is another: {got}")


@test(each=[
    {"how": "answers something else", "mood": b"-LOADING\r\n",
     "why": r"wrong answer: '-LOADING\\r\\n'"},
    {"how": "answers something else and ends", "mood": (b"-ERR\r\n", "ends"),
     "why": r"wrong answer: '-ERR\\r\\n'"},
    {"how": "talks without end", "mood": bytes(70000), "why": r"wrong answer: '\.{67}'"},
    {"how": "stalls in the middle of its answer", "mood": b"+PO",
     "why": r"timed out waiting for the answer: '\+PO'"},
    {"how": "answers nothing", "mood": b"", "why": "timed out waiting for the answer"},
    {"how": "ends without an answer", "mood": (b"", "ends"), "why": "closed before the answer"},
    {"how": "resets after accept", "mood": (b"", "resets"), "why": "connection reset"},
    {"how": "refuses", "mood": "refuses", "why": "connection refused"},
    {"how": "has a full queue", "mood": "is full", "why": "timed out connecting"}])
def broken_down(t, how, mood, why):
    """a server that {how} is down for that, and up when it answers as it should"""
    front = t.address()
    with Talker("a", t.address(), PONG) as a:
        options = {"check_send": r"PING\r\n", "check_expect": r"PONG\r\n", "check_timeout": "500ms"}
        with t.daemon(checked(front, {"a": a.address}, **options)) as daemon:
            t.eventually(lambda: sum(a.got.values()) >= 3, "checks are made")
            check_equal(went_down(daemon), [], "log lines about a server that works")
            a.becomes(mood)
            wait_down(t, daemon, why=why)
            a.becomes(PONG)
            wait_up(t, daemon)
            check_equal(set(a.got), {b"PING\r\n"}, "what the server got")
            check(set(a.ends) <= {"fin"}, f"how checks ended for the server: {a.ends}")


@test()
def answer_in_pieces(t):
    """an answer that comes byte by byte, behind other lines, is the right one"""
    front = t.address()

    class Slow(Talker):
        def _answer(self, s, mood):
            s.settimeout(net.LIMIT_S)
            self.kept.enter_context(s.dup())
            self.got[b""] += 1
            for byte in b"220 hello\r\n22220 ready":
                s.sendall(bytes([byte]))
                time.sleep(0.001)

    with Slow("a", t.address(), b"") as a:
        with t.daemon(checked(front, {"a": a.address}, log="debug",
                              check_expect='"2220 ready"')) as daemon:
            t.eventually(lambda: a.got[b""] >= 10, "checks are made", within=10)
            check_equal(went_down(daemon) + daemon.log_lines("a check failed"), [], "failures")


@test()
def full_queue_plain(t):
    """a server whose queue is full is down also when checks only connect"""
    front, back = t.address(), t.address()
    with full_queue(back), t.daemon(
            checked(front, {"a": back}, check_timeout="200ms")) as daemon:
        wait_down(t, daemon, why="timed out connecting")


@test()
def only_sending(t):
    """with check_send alone a check passes when it is sent, and the server gets it, and an end of
    file"""
    front = t.address()
    with Talker("a", t.address(), b"") as a:
        with t.daemon(checked(front, {"a": a.address}, log="debug",
                              check_send=r"\x00ping\t\\\0")) as daemon:
            t.eventually(lambda: a.ends["fin"] >= 5, "checks are made", within=10)
            check_equal(set(a.got), {b"\0ping\t\\\0"}, "what the server got")
            check_equal(went_down(daemon) + daemon.log_lines("a check failed"), [], "failures")
            check_equal(set(a.ends), {"fin"}, "how checks ended")


@test()
def check_port(t):
    """a server that serves, but whose check_port is closed, is down, and up when that is open"""
    front = t.address()
    with ready(t, "ab") as servers, t.daemon(checked(front, lines_of(servers))) as daemon:
        check_equal(served(servers, front, 8), {"a": 4, "b": 4}, "clients")
        servers[0].is_up(False)
        wait_down(t, daemon, why="connection refused")
        check_equal(served(servers, front, 8), {"a": 0, "b": 8}, "clients while a is down")
        servers[0].is_up(True)
        wait_up(t, daemon)
        check_equal(served(servers, front, 8), {"a": 4, "b": 4}, "clients afterwards")


@test()
def once_for_all_workers(t):
    """of eight workers a server gets one check an interval, not eight, and never one too early"""
    front = t.address()
    with Talker("a", t.address(), PONG) as a:
        began = time.monotonic()
        with t.daemon(checked(front, {"a": a.address}, workers=8, check_send="x", check_expect="+PONG",
                              check_interval="100ms")):
            t.eventually(lambda: len(a.accepted) >= 10, "checks are made", within=20)
            took = a.accepted[9] - began
            check(took >= 9 * 0.1, f"ten checks took {took:.3f} s")


@test()
def address_of_its_own(t):
    """check_address and check_port say where to check: a server that is checked elsewhere is down
    when nobody listens there, however well it answers itself"""
    front, back = t.address(), t.address()
    port = int(back.rpartition(":")[2])
    with Moody("a", back) as a:
        elsewhere = f"{a.address} check_address=127.0.0.9"
        with t.daemon(checked(front, {"a": elsewhere})) as daemon:
            wait_down(t, daemon, why="connection refused")
            with Moody("b", f"127.0.0.9:{port}"):
                wait_up(t, daemon)
                check_equal(who(front), "a", "the server")
            wait_down(t, daemon, why="connection refused", times=2)


@test()
def first_check(t):
    """the first check of a server is enough to take it down, whatever fall says; then fall counts"""
    front = t.address()
    with Moody("b", t.address()) as b:
        servers = {"a": t.address(), "b": b.address}
        with t.daemon(checked(front, servers, fall=1000, rise=1, eject_failures=0, retries=0,
                              log="debug")) as daemon:
            wait_down(t, daemon, why="connection refused")
            t.eventually(lambda: len(daemon.log_lines("server a: a check failed")) > 10, "b was checked, too")
            check_equal({who(front) for _ in range(6)}, {"b"}, "the servers while a is down")
            b.becomes("refuses")
            t.eventually(lambda: len(daemon.log_lines("server b: a check failed")) > 5, "b fails")
            check_equal(went_down(daemon, "b"), [], "that b is down")


def deaf_upstreams(count, size, port):
    """The configuration of so many upstreams whose servers, each at an address of its own, do not answer."""
    lines = []
    for i in range(count):
        lines += [f"[upstream deaf{i}]", "check = tcp", "check_interval = 1s", "check_timeout = 1s"]
        lines += [f"server.s{k} = 127.1.{i}.{k + 1}:{port}" for k in range(size)]
    return "\n".join(lines) + "\n"


@test(timeout=120, plain_only=True)
def slow_neighbours(t):
    """2,000 servers of other upstreams that do not answer do not keep a dead server from being found; checks
    of these begin late, which is counted and logged"""
    front, port = t.address(), t.port()
    with Moody("b", t.address()) as b, full_queue(f"0.0.0.0:{port}"):
        servers = {"a": t.address(), "b": b.address}
        config_text = checked(front, servers, check_interval="1s", check_timeout="1s", eject_failures=0)
        with t.daemon(config_text + deaf_upstreams(10, 200, port)) as daemon:
            # With one queue for all it took 15 s.
            t.eventually(lambda: len(went_down(daemon)) == 1, "server a is down", within=8)
            check_equal(who(front), "b", "the server")
            t.eventually(lambda: daemon.log_lines("upstream deaf.: server s[0-9]*: a check begins .* s late: "),
                         "late checks are logged", within=20)
            t.eventually(lambda: int(statistics(daemon, "upstream deaf0")["late_checks"]) > 0, "late checks are counted", within=20)
            # A busy machine delays them a little, a queue shared with the others by seconds.
            late = [line for line in daemon.log_lines("upstream back: server .*: a check begins")
                    if float(re.search(r"begins ([0-9.]+) s late", line).group(1)) > 1.5]
            check_equal(late, [], "late checks of back")


@test()
def first_state_checked(t):
    """with initial_state = checked none of 20 clients that come when reactord is ready is sent to a server that
    is dead, and a server that serves is used at once, without rise checks"""
    front = t.address()
    with Moody("b", t.address()) as b:
        servers = {"a": t.address(), "b": b.address}
        options = {"initial_state": "checked", "check_interval": "1h", "retries": 0, "eject_failures": 0}
        with t.daemon(checked(front, servers, **options)) as daemon:
            check_equal([who(front) for _ in range(20)], ["b"] * 20, "the servers of the first clients")
            check_equal(len(daemon.log_lines("warning.*upstream back: server a: down: its first check failed: "
                                             "connection refused; ")), 1, "log lines")


def figures(place):
    """The figures of the servers, by name."""
    return {one["name"]: one for one in get(place, "/v1/upstreams").json["upstreams"][0]["servers"]}


@test()
def reasons_in_the_figures(t):
    """JSON tells why a server is down, how often it went down, and that it is a backup; metrics count it"""
    front, place = t.address(), t.path("admin.sock")
    with Moody("b", t.address()) as b:
        servers = {"a": t.address(), "b": b.address + " backup", "c": t.address() + " disabled"}
        text = checked(front, servers, eject_failures=0) + section(place)
        with t.daemon(text) as daemon:
            t.eventually(lambda: went_down(daemon), "a is down", within=10)
            seen = figures(place)
            check_equal([seen["a"][key] for key in ("down_reason", "downs", "backup")],
                        ["connection refused", 1, False], "the server that is down")
            check_equal([seen["b"][key] for key in ("down_reason", "downs", "backup")], [None, 0, True], "the backup")
            check_equal(seen["c"]["down_reason"].split()[0], "disabled", "the reason of the disabled one")
            metrics = get(place, "/metrics").body.decode()
            for line in ('server_downs_total{server="a",upstream="back"} 1', 'server_backup{server="b",upstream="back"} 1'):
                check("reactord_" + line in metrics, f"{line} in the metrics")


@test()
def first_state_down(t):
    """with initial_state = down a server gets clients after rise checks"""
    front = t.address()
    with Moody("a", t.address()) as a:
        with t.daemon(checked(front, {"a": a.address}, initial_state="down", rise=5)) as daemon:
            wait_up(t, daemon, rise=5)
            check_equal(who(front), "a", "the server")
            check_equal(daemon.log_lines("cannot connect"), [], "failures")


def time_waits(*ports):
    """The connections that wait in TIME_WAIT with one of these ports at either end."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        pairs = {tuple(line.split()[1:3]) for line in f if line.split()[3] == TIME_WAIT}
    return {pair for pair in pairs if any(int(end.rpartition(":")[2], 16) in ports for end in pair)}


@test()
def nothing_left_behind(t):
    """200 checks, with and without an exchange, leave neither descriptors nor connections in
    TIME_WAIT"""
    front = t.address()
    with Talker("a", t.address(), PONG) as a, Ready(t, "b") as b:
        ports = [int(a.address.rpartition(":")[2]), b.check_port]
        of_earlier_tests = time_waits(*ports)
        with t.daemon(talking_and_plain(front, a, b)) as daemon:
            t.eventually(lambda: len(a.accepted) >= 20, "checks are made", within=10)
            # Between checks.
            before = min(daemon.fd_count() for _ in range(50))
            t.eventually(lambda: len(a.accepted) >= 220, "checks are made", within=20)
            t.eventually(lambda: daemon.fd_count() <= before, "as many descriptors as before")
            check_equal(time_waits(*ports) - of_earlier_tests, set(), "connections in TIME_WAIT")
            check_equal(daemon.log_lines("a check failed"), [], "failures")


def talking_and_plain(front, a, b):
    """Both are checked every 10 ms: a with an exchange, b without."""
    often = "check = tcp\ncheck_interval = 10ms\ncheck_timeout = 20s\n"
    return ("[reactord]\nlog_level = debug\n"
            + config(front, {"a": a.address}, often + "check_send = x\ncheck_expect = +PONG\n")
            + f"[upstream plain]\nserver.b = {b.line}\n{often}")


@test(each=[{"kind": "path", "talks": True}, {"kind": "path", "talks": False},
            {"kind": "abstract", "talks": True}, {"kind": "abstract", "talks": False}])
def unix_server(t, kind, talks):
    """a unix server ({kind}) that goes and returns is down and up (an exchange: {talks})"""
    front = t.address()
    address = t.path("a.sock") if kind == "path" else f"@reactord-{t.dir.name}-{t.port()}"
    options = {"check_send": "x", "check_expect": "+PONG"} if talks else {}
    with Talker("a", address, PONG) as a:
        with t.daemon(checked(front, {"a": a.address}, **options)) as daemon:
            t.eventually(lambda: len(a.accepted) >= 3, "checks are made")
            check_equal(went_down(daemon), [], "log lines about a server that works")
            a.open.close()
            wait_down(t, daemon, why="connection refused")
            if kind == "path":
                (t.dir / "a.sock").unlink()
                time.sleep(3 * INTERVAL_S)
            a.becomes(PONG)
            wait_up(t, daemon)


@test()
def stop_during_checks(t):
    """SIGTERM ends it at once while checks of 40 servers wait for a connection or for an answer"""
    front = t.address()
    hung = t.address()
    with full_queue(hung), Talker("s", t.address(), b"") as silent:
        lines = {f"h{i}": hung for i in range(20)} | {f"s{i}": silent.address for i in range(20)}
        with t.daemon(checked(front, lines, check_timeout="1h", check_send="x", check_expect="y")) as daemon:
            t.eventually(lambda: len(silent.accepted) == 20, "checks are under way")
            watch = Watch()
            daemon.stop()
            watch.expect(0, 10 * t.scale, "it took long")
