"""admin: the admin interface: who may use it, what it refuses, and that nothing holds it or the traffic up."""

import json
import os
import re
import stat
import subprocess

from support import net
from support.admin import get, read_answer, section
from support.admin_place import KINDS, Place, TOKEN
from support.case import check, check_equal, test
from support.chain import Chain, echo, exchange_once


# ---- what it answers ----

@test(each=KINDS)
def status_is_told(t, kind):
    """over {kind} it tells health, readiness, status and configuration"""
    place = Place(t, kind)
    with place.daemon() as daemon, net.connect(place.front) as client:
        net.exchange(client, b"hello")
        check_equal(place.get("/healthz").body, b"ok\n", "/healthz")
        check_equal(place.get("/readyz").body, b"ready\n", "/readyz")
        answer = place.get("/v1/status")
        check_equal(answer.headers["content-type"], "application/json", "the type")
        status = answer.json
        check_equal(status["pid"], daemon.pid, "pid")
        check_equal(status["state"], "serving", "state")
        check_equal(status["sessions"], 1, "sessions")
        check_equal(status["config_path"], str(daemon.config_path), "config_path")
        check_equal(status["reload"], {"state": "idle", "count": 0, "failed": 0,
                                       "reverted": 0, "confirm_in_s": None}, "reload")
        check_equal(status["upgrade"], {"old_processes": 0, "handoff": {"under_way": False, "moved": 0, "stayed": {}}}, "upgrade")
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", status["started_at"]), "started_at")
        dump = t.reactord("--dump-config", "-c", str(daemon.config_path)).out
        check_equal(place.get("/v1/config").body.decode(), dump, "/v1/config")


@test(needs=("curl",), each=KINDS)
def curl_is_answered(t, kind):
    """curl is answered over {kind}, several times on one connection, and to HEAD"""
    place = Place(t, kind)
    how = ["--unix-socket", place.address] if kind == "unix" else \
        ["-H", f"Authorization: Bearer {TOKEN}"]
    base = "http://localhost" if kind == "unix" else f"http://{place.address}"
    with place.daemon():
        done = subprocess.run(
            ["curl", "-sSg", *how, "-w", "\n%{num_connects}\n", f"{base}/v1/status", "-o", "/dev/null", f"{base}/v1/status"],
            capture_output=True, timeout=20 * t.scale, check=True)
        _, first, *status, second, _ = done.stdout.decode().split("\n")
        check_equal((first, second), ("1", "0"), "new connections of the first and of the second request")
        check_equal(json.loads("".join(status))["state"], "serving", "state")
        done = subprocess.run(["curl", "-sSgI", *how, f"{base}/v1/status"], capture_output=True,
                              timeout=20 * t.scale, check=True)
        check(done.stdout.startswith(b"HTTP/1.1 200"), done.stdout)


@test()
def nothing_without_a_section(t):
    """without an address there is no admin interface and no loop of it"""
    with t.daemon(echo(t.address())) as daemon:
        check_equal(daemon.statistics("admn"), [], "its loop")


@test()
def the_loop_is_in_the_statistics(t):
    """the admin loop is shown with the others, and watched"""
    place = Place(t)
    with place.daemon() as daemon:
        place.get("/healthz")
        check(any("admn-5-1" in line for line in daemon.statistics("admn-5-1 state")), "admn-5-1")


# ---- who may use it ----

@test()
def the_socket_is_private(t):
    """its unix socket has mode 0600 or the one configured, and goes with the process"""
    place = Place(t)
    with place.daemon():
        check_equal(stat.S_IMODE(os.stat(place.address).st_mode), 0o600, "mode")
    check(not os.path.exists(place.address), "the file is gone")
    place = Place(t, more="mode = 660\n")
    with place.daemon():
        check_equal(stat.S_IMODE(os.stat(place.address).st_mode), 0o660, "mode")


@test()
def sockets_left_behind(t):
    """a socket that a killed process left is replaced; that of a live one is not, and a file neither"""
    place = Place(t)
    with place.daemon() as daemon:
        daemon.kill()
        daemon.process.returncode = 0
    check(os.path.exists(place.address), "the file was left")
    with place.daemon():
        config = t.write("second.ini", section(place.address) + echo(t.address()))
        done = t.reactord("-c", config)
        check_equal(done.code, 3, "exit code")
        check("cannot listen: Address already in use" in done.err, done.err)
        check_equal(place.get("/healthz").status, 200, "the first still answers")
    t.write("admin.sock", "a file")
    done = t.reactord("-c", t.write("second.ini", section(place.address) + echo(t.address())))
    check("cannot listen: Socket operation on non-socket" in done.err, done.err)
    check_equal(open(place.address, encoding="ascii").read(), "a file", "the file")


@test(each={"kind": ["TCP", "IPv6"]})
def tokens(t, kind):
    """over {kind} no token, a wrong or a cut one is refused with 401; health needs none"""
    place = Place(t, kind)
    with place.daemon() as daemon:
        for token in (None, TOKEN[:-1], TOKEN + "x", TOKEN[:-1] + "x", "x" * 4000):
            answer = place.get("/v1/status", token=token)
            check_equal(answer.status, 401, f"with {token}")
            check_equal(answer.headers["www-authenticate"], "Bearer", "the challenge")
            check_equal(place.get("/nothing", token=token).status, 401, "an unknown path")
        check_equal(place.get("/v1/status", token=None,
                              headers={"Authorization": f"Basic {TOKEN}"}).status, 401, "Basic")
        check_equal(place.get("/healthz", token=None).status, 200, "/healthz")
        check_equal(place.get("/readyz", token=None).status, 200, "/readyz")
        check_equal(place.get("/v1/status").status, 200, "with the token")
        check(daemon.log_lines(r"admin: .*: refused: (no|wrong) token"), "a line in the log")


@test(each={"kind": ["TCP", "IPv6"]})
def hosts(t, kind):
    """over {kind} a Host or Origin of another site is refused, as pages in a browser send it"""
    place = Place(t, kind)
    port = place.address.rpartition(":")[2]
    with place.daemon():
        for host in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]", "[::1]:80", "127.1.2.3:9",
                     place.address):
            check_equal(place.get("/healthz", host=host).status, 200, host)
        for host in ("evil.example", f"evil.example:{port}", "192.0.2.1", "[2001:db8::1]",
                     "localhost.evil.example", "localhost:x", "127.0.0.1.nip.io", "[::1", "::1", "@"):
            check_equal(place.get("/healthz", host=host).status, 403, host)
        for origin, status in ((f"http://{place.host}", 200), ("http://evil.example", 403),
                               ("null", 403), (place.host, 403)):
            answer = place.get("/v1/status", headers={"Origin": origin})
            check_equal(answer.status, status, origin)
        with place.connect() as s:
            s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            check_equal(read_answer(s).status, 403, "without Host")


@test()
def read_only(t):
    """with `write = no` actions are refused with 403 and logged; a reload changes that at once"""
    place = Place(t, more="write = no\n")
    with place.daemon() as daemon:
        answer = place.post("/v1/reload")
        check_equal(answer.status, 403, "status")
        check(daemon.log_lines(r"admin: uid \d+ pid \d+: POST /v1/reload \{\}: refused: actions are not"),
              "a line in the log")
        check_equal(place.get("/v1/status").status, 200, "reading")
        daemon.reload(place.config.replace("write = no", "write = yes"))
        check_equal(place.post("/v1/reload").status, 200, "status")


@test()
def another_token(t):
    """another token in the same file is a change, and counts from the reload on"""
    place = Place(t, "TCP")
    with place.daemon() as daemon:
        t.write("token", "another-token-of-some-length")
        check_equal(place.get("/v1/status").status, 200, "before the reload")
        lines = daemon.reload()
        check(any("[admin] token_file: the token in the file has changed (live)" in line for line in lines),
              f"the change is told: {lines}")
        check(TOKEN not in daemon.log() and "another-token-of" not in daemon.log(), "no token is told")
        check_equal(place.get("/v1/status").status, 401, "the old one")
        check_equal(place.get("/v1/status", token="another-token-of-some-length").status, 200, "the new")


@test()
def addresses_need_an_upgrade(t):
    """another address or mode is refused by a reload, and used by an upgrade"""
    place = Place(t)
    other = t.path("other.sock")
    with Chain(t, place.config) as chain:
        daemon = chain.daemon
        config = daemon.config.replace(place.address, other)
        lines = daemon.reload(config, wanted="refused")
        check(any("[admin] address:" in line and "needs a new process" in line for line in lines), lines)
        chain.upgrade()
        check_equal(get(other, "/v1/status").json["pid"], chain.pid, "pid at the new address")
        t.eventually(lambda: not os.path.exists(place.address), "the old file is gone")
        chain.stop()
        check(not os.path.exists(other), "the new file is gone")


@test()
def an_upgrade_without_it(t):
    """an upgrade to a configuration without the section ends the interface, with its file"""
    place = Place(t)
    with Chain(t, place.config) as chain:
        config = chain.daemon.config.replace(section(place.address), "")
        chain.daemon.config_path.write_text(config, encoding="ascii")
        check_equal(place.post("/v1/upgrade").json, {}, "upgrade")
        chain.pid = chain.started()[-1]
        chain.eventually(lambda: not os.path.exists(place.address), "the file is gone")
        exchange_once(place.front)
        chain.stop()


@test()
def a_mode_changed_by_an_upgrade(t):
    """an inherited socket gets the mode of the new configuration when the new process takes over"""
    place = Place(t)
    with Chain(t, place.config) as chain:
        config = chain.daemon.config.replace("[admin]", "[admin]\nmode = 0666")
        chain.daemon.config_path.write_text(config, encoding="ascii")
        chain.upgrade()
        chain.eventually(lambda: stat.S_IMODE(os.stat(place.address).st_mode) == 0o666, "the mode")
        # The old process accepts until it hears that it was replaced.
        chain.eventually(lambda: place.get("/v1/status").json["pid"] == chain.pid, "the new one answers")
        chain.stop()


@test()
def sockets_of_systemd(t):
    """sockets of a .socket unit are used and left, and stored ones of another start are found"""
    place = Place(t)
    with net.listen(place.address) as listener:
        with place.daemon(inherited=[("reactord.socket", listener.fileno())]) as daemon:
            check_equal(place.get("/v1/status").json["pid"], daemon.pid, "pid")
        check(os.path.exists(place.address), "the file is left")
    os.unlink(place.address)
    with place.daemon(environment={"FDSTORE": "10"}) as daemon:
        t.eventually(lambda: daemon.has_notified("") or any("admin.sock" in name for name, _ in daemon.stored),
                     "it is stored")
        stored = daemon.stored
        daemon.stop()
    with place.daemon(environment={"FDSTORE": "10"}, inherited=stored) as daemon:
        check_equal(place.get("/v1/status").json["pid"], daemon.pid, "pid")
    for _, fd in stored:
        os.close(fd)
