"""pair: two nodes with the configuration of reactord-fleet(7), their servers and clients, on one network."""

import contextlib
import os
import re
import subprocess
import threading
from pathlib import Path

from support import net
from support.case import Failed, Skipped, check
from support.mounts import bind, own_mounts
from support.namespaces import Namespace
from support.network import ip
from support.own_network import own_network
from support.server import Counted

PAGE = Path(__file__).resolve().parents[3] / "man/reactord-fleet.7"
ADDRESSES = {"one": "10.0.0.1", "two": "10.0.0.2"}
VIP, PORT = "10.0.0.100", 7000
FRONT = f"{VIP}:{PORT}"
SERVERS = ("10.0.1.11", "10.0.1.12")
CLIENTS = 4
PAUSE_S = 0.005
CLIENT_LIMIT_S = 10


def literal(first):
    """The example of the page that begins with this line."""
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", text, re.M | re.S):
        if block.startswith(first):
            return block
    raise Failed(f"{PAGE} has no example that begins with {first}")


class Node(Namespace):
    """A machine of the pair: a network namespace, a daemon and keepalived."""

    def __init__(self, t, name):
        self.t, self.daemon, self.keepalived = t, None, None
        self.admin = f"/run/{name}.sock"
        super().__init__(name)

    def _link_up(self):
        super()._link_up()
        ip("link", "add", "eth0", "type", "veth", "peer", "name", f"to-{self.name}", "netns",
           f"/proc/{os.getpid()}/fd/{self._here}")
        ip("address", "add", f"{ADDRESSES[self.name]}/24", "dev", "eth0")
        ip("link", "set", "eth0", "up")
        ip("route", "add", "default", "via", "10.0.0.254")

    def _example(self, first):
        """An example of the page, as this node has it."""
        text = literal(first).replace("/etc/keepalived", self.t.path(self.name))
        if self.name == "two":
            text = text.replace("priority 250", "priority 240")
            return re.sub(r"\b10\.0\.0\.([12])\b", lambda match: f"10.0.0.{3 - int(match[1])}", text)
        return text

    def start(self):
        """Start the daemon, once more if it ran before."""
        self.daemon = self.t.daemon(self._example("[reactord]").replace("/run/reactord/admin.sock", self.admin))
        with self.there():
            self.daemon.start()

    def start_keepalived(self):
        """Start keepalived."""
        os.mkdir(self.t.path(self.name))
        # Of the test's folders more than root may write to some.
        text = self._example("global_defs {").replace("    enable_script_security\n", "")
        text = text.replace("/usr/bin/reactorctl", f"{self.t.reactorctl_path} -s {self.admin}")
        path = self.t.write(f"{self.name}/keepalived.conf", text)
        self.t.write(f"{self.name}/pair.nft", self._example("table ip pair").replace("\\e\n", "\\\n"))
        os.chmod(self.t.write(f"{self.name}/pair", self._example("#!/bin/sh")), 0o755)
        files = [word for kind in "prcb" for word in (f"-{kind}", self.t.path(f"{self.name}/{kind}.pid"))]
        with self.there(), open(self.t.path(f"{self.name}/log"), "wb") as log:
            for setting in literal("net.ipv4.conf.all.arp_ignore = 1").splitlines():
                name, value = setting.split(" = ")
                Path("/proc/sys", *name.split(".")).write_text(value, encoding="ascii")
            self.keepalived = subprocess.Popen(["keepalived", "-P", "-n", "-l", "-D", "-f", path, *files],
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def keepalived_log(self):
        return Path(self.t.path(f"{self.name}/log")).read_text(encoding="utf-8", errors="replace")

    def ctl(self, *words):
        return self.t.reactorctl("-s", self.admin, *words)

    def has_vip(self):
        check(self.keepalived.poll() is None, f"keepalived of {self.name} has ended:\n{self.keepalived_log()}")
        with self.there():
            shown = subprocess.run(["ip", "-4", "-o", "address", "show", "dev", "eth0"], capture_output=True, text=True,
                                   check=True).stdout
        return f" {VIP}/" in shown

    def hear(self, is_on):
        """Hear the other node's keepalived, or not."""
        rules = ("add table ip deaf; add chain ip deaf in { type filter hook input priority 0; };"
                 " add rule ip deaf in ip protocol 112 drop")
        with self.there():
            subprocess.run(["nft", "delete table ip deaf" if is_on else rules], check=True)

    def stop(self):
        for process in (self.keepalived, self.daemon and self.daemon.process):
            if process:
                process.kill()
                process.wait()


class Pair:
    """Both nodes; the test itself is on the network of the clients and servers."""

    def __init__(self, t):
        self.t = t
        own_network()
        done = t.run("nft", "add table ip probe; delete table ip probe")
        if done.code != 0:
            raise Skipped(f"no nf_tables: {done.err.strip()}")
        own_mounts()
        run = t.path("run")
        os.makedirs(f"{run}/netns")
        bind(run, "/run")
        ip("link", "add", "lan", "type", "bridge", "forward_delay", "0")
        for address in ("10.0.0.254", *SERVERS):
            ip("address", "add", f"{address}/24", "dev", "lan")
        ip("link", "set", "lan", "up")
        self.nodes = [Node(t, name) for name in ADDRESSES]
        for node in self.nodes:
            ip("link", "set", f"to-{node.name}", "master", "lan", "up")

    def __enter__(self):
        self.open = contextlib.ExitStack()
        for address in SERVERS:
            self.open.enter_context(Counted(f"{address}:{PORT}"))
        for node in self.nodes:
            self.open.callback(node.stop)
            node.start()
            node.start_keepalived()
        self.settled()
        return self

    def __exit__(self, *_):
        self.open.close()

    def masters(self):
        return [node for node in self.nodes if node.has_vip()]

    def settled(self):
        """Wait until one node has the address and both are ready; the master and the other one."""
        self.t.eventually(lambda: len(self.masters()) == 1, "one node has the address")
        [master] = self.masters()
        [other] = [node for node in self.nodes if node is not master]
        self.t.eventually(lambda: "Entering BACKUP STATE" in other.keepalived_log().rpartition("FAULT")[2],
                          f"node {other.name} is a backup")
        return master, other


class Clients:
    """Clients that come one after the other, several at a time: each connects, has random bytes echoed, closes."""

    def __init__(self):
        self.served, self.failed = 0, []
        self._lock, self._over = threading.Lock(), threading.Event()
        self._tasks = [net.Task(self._come) for _ in range(CLIENTS)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def _come(self):
        while not self._over.wait(PAUSE_S):
            why = self._visit()
            with self._lock:
                self.served += why is None
                self.failed += [why] if why else []

    @staticmethod
    def _visit():
        """None, or why the client was not served."""
        step, message = "connect", os.urandom(100)
        try:
            with net.connect(FRONT, limit_s=CLIENT_LIMIT_S) as s:
                step = "exchange"
                if net.exchange(s, message) != message:
                    return "wrong bytes"
        except (OSError, EOFError) as error:
            return f"{step}: {error}"
        return None

    def end(self):
        """Let the last ones finish; why clients failed."""
        self._over.set()
        for task in self._tasks:
            task.result()
        return self.failed


class Sessions:
    """Clients that stay."""

    def __init__(self, count):
        self.all = [net.connect(FRONT, limit_s=CLIENT_LIMIT_S) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in self.all:
            s.close()

    def work(self):
        """How many of them have bytes echoed."""
        working = 0
        for s in self.all:
            message = os.urandom(100)
            with contextlib.suppress(OSError, EOFError):
                working += net.exchange(s, message) == message
        return working
