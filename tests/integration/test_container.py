"""container: the OCI image as process 1, with a read-only root, as user 65532, with limits, as kubelet would start it."""

import json
import signal
import socket
from pathlib import Path

from support import net
from support.case import check, check_equal, test
from support.container import USER, ConfigMap, Container, build_image
from support.own_network import own_network
from support.program import run
from test_overload import Flood

BIND_SERVICE_BIT = 1 << 10  # CAP_NET_BIND_SERVICE of linux/capability.h
ECHO = "127.0.0.1:80"
PROBES = "127.0.0.1:9180"
NEEDS = ("crun", "unshare", "nsenter", "strip")
MAX_MB = 40
TOKEN = "0123456789abcdef\n"
MIB = 1 << 20
CROWD = 1000  # of clients that do not read: 64 kB each


def config(more="", settings="", listen=""):
    return f"""
[reactord]
watch = yes
{settings}
[admin]
address = /run/reactord/admin.sock, {PROBES}
token_file = /etc/reactord/token
[listen web]
address = {ECHO}
service = echo
{listen}
{more}
"""


def pod(t, text, **how):
    """A container with that configuration, in a network of its own, and its ConfigMap."""
    own_network()
    files = ConfigMap(t, "config-map", **{"reactord.ini": text, "token": TOKEN})
    return files, Container(t, files, **how)


def echoes(address=ECHO):
    with net.connect(address) as client:
        return net.exchange(client, b"hello") == b"hello"


@test(needs=("strip",))
def same_digest(t):
    """two builds of the image are the same byte for byte, and its size is below 40 MB"""
    said = [build_image(t, t.path(name)) for name in ("a", "b")]
    print(said[0])
    archives = [Path(t.path(name), "reactord-test.tar").read_bytes() for name in ("a", "b")]
    check(archives[0] == archives[1], f"two digests: {said}")
    unpacked = float(said[0].partition(" MB unpacked")[0].split()[-1])
    check(t.sanitized or unpacked < MAX_MB, f"the image has {unpacked} MB")


@test(needs=NEEDS, timeout=60)
def process_1(t):
    """a client is served on port 80 as user 65532, with that capability alone and a read-only root, without resolv.conf"""
    by_name = "[upstream back]\nserver.a = no-such-host:7\n[listen front]\naddress = 127.0.0.1:7008\n" \
              "service = proxy\nupstream = back\n"
    _, container = pod(t, config(by_name))
    with container:
        check(echoes(), "no echo")
        check_equal(container.status("NSpid").split()[-1], "1", "its number in the container")
        check_equal(container.status("Uid").split(), [str(USER)] * 4, "its user")
        for name in ("CapEff", "CapPrm", "CapBnd"):
            check(int(container.status(name), 16) & ~BIND_SERVICE_BIT == 0, f"{name}: {container.status(name)}")
        check_equal(container.status("NoNewPrivs"), "1", "no new privileges")
        mounts = Path(f"/proc/{container.pid}/mountinfo").read_text(encoding="ascii").splitlines()
        [root] = [line.split()[5] for line in mounts if line.split()[4] == "/"]
        check("ro" in root.split(","), f"the root is mounted {root}")
        check(not Path(container.root, "etc/resolv.conf").exists(), "there is an /etc/resolv.conf")
        check_equal(container.get("/readyz", PROBES), 200, "/readyz")
        container.execute("/usr/bin/reactorctl", "ready")
        status = json.loads(container.execute("/usr/bin/reactorctl", "--json", "status"))
        check_equal(status["pid"], 1, "the process of the status")
        container.execute("/usr/sbin/reactord", "-t", "-c", "/etc/reactord/reactord.ini")
        container.stop()


@test(needs=NEEDS, timeout=60)
def signals_and_orphans(t):
    """it reaps orphans, reloads on SIGHUP from outside, and refuses an upgrade without harm"""
    _, container = pod(t, config())
    with container:
        run(["nsenter", "-t", container.pid, "-p", "sh", "-c", "sleep 0.1 &"])
        children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
        t.eventually(lambda: not children.read_text(encoding="ascii"), "no orphan is left")
        container.send_signal(signal.SIGHUP)
        t.eventually(lambda: container.log_lines("reload: nothing has changed"), "the reload")
        container.send_signal(signal.SIGUSR2)
        t.eventually(lambda: container.log_lines("upgrade: .*process 1"), "the refusal of the upgrade")
        check(echoes(), "no echo afterwards")
        container.stop()


@test(needs=NEEDS, timeout=60)
def termination(t):
    """SIGTERM: not ready at once, clients go on being accepted for drain_delay, sessions end in peace, exit code 0"""
    _, container = pod(t, config(settings="drain_delay = 3s\ndrain_timeout = 30s"))
    with container, net.connect(ECHO) as client:
        check_equal(net.exchange(client, b"before"), b"before", "the echo before")
        container.send_signal(signal.SIGTERM)
        t.eventually(lambda: container.get("/readyz", PROBES) == 503, "not ready")
        check(echoes(), "a client that came in spite of that")
        check_equal(net.exchange(client, b"after"), b"after", "the echo after")
        client.shutdown(socket.SHUT_WR)
        check_equal(net.read_to_end(client), b"", "the end of the session")
        check_equal(container.wait(), 0, "exit code")


@test(needs=NEEDS, timeout=60)
def grace(t):
    """a session that does not end is reset after drain_timeout, with exit code 0: before the grace would be over"""
    _, container = pod(t, config(settings="drain_timeout = 1s", listen="pipeline = frame\nframe_max_length = 1k\n"
                                     "frame_length_offset = 0\nframe_length_width = 4"))
    with container, net.connect(ECHO) as client:
        client.sendall(b"\0")  # a part of a frame
        t.eventually(lambda: container.get("/readyz", PROBES) == 200, "ready")
        container.send_signal(signal.SIGTERM)
        check_equal(container.wait(), 0, "exit code")


@test(needs=NEEDS, timeout=60)
def config_map(t):
    """a ConfigMap that kubelet replaces is loaded, also twice; a bad one changes nothing"""
    files, container = pod(t, config(listen="idle_timeout = 1h"))

    def publish(idle):
        files.publish(**{"reactord.ini": config(listen=f"idle_timeout = {idle}"), "token": TOKEN})

    with container:
        publish("2h")
        t.eventually(lambda: container.log_lines("idle_timeout: 1h -> 2h"), "the first")
        publish("soon")
        t.eventually(lambda: container.log_lines("reload: refused"), "the refusal")
        check(echoes(), "no echo after the refusal")
        publish("3h")
        t.eventually(lambda: container.log_lines("idle_timeout: 2h -> 3h"), "the third")
        container.stop()


def limits(memory):
    return {"cpu": {"quota": 150000, "period": 100000}, "memory": {"limit": memory}}


@test(needs=NEEDS, timeout=60, plain_only=True)
def cgroup_limits(t):
    """the quota of processors gives the number of threads, and max_memory keeps it below the limit of memory"""
    own = "max_memory = 40m\n[worker]\nthreads = 0"
    _, container = pod(t, config(settings=own, listen="splice = off"), resources=limits(64 * MIB))
    with container:
        check(container.log_lines("the control group's quota is 1.50 processors"), "no line about the quota")
        with Flood(ECHO, CROWD) as flood:
            flood.go_on(lambda: None, 20 * t.scale)
            check(container.running() and echoes(), "it does not serve any more")
            check(container.log_lines("overload: .*max_memory"), "no line about the overload")
        container.stop()


@test(needs=NEEDS, timeout=60)
def start_time(t):
    """how long it takes from `crun run` to ready (printed)"""
    _, container = pod(t, config())
    with container:
        print(f"start: {container.start_ms:.0f} ms with crun")
        container.stop()
