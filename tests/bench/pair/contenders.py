"""contenders: the pairs that are compared; a node of each: the proxy, and keepalived beside it."""

import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from pair import network
from runner.contender import CONF, fill_in
from runner.process import BenchError

PORT = 7000
SERVER_PORT = 9000
LIMIT_S = 20
PRIORITIES = {"one": 250, "two": 240}
KEPT_ADDRESS = f"static_ipaddress {{\n    {network.VIP}/32 dev lo\n}}"


def wait(probe, what):
    """Wait until the probe is true; what it gives."""
    end = time.monotonic() + LIMIT_S
    while not (value := probe()):
        if time.monotonic() > end:
            raise BenchError(f"not within {LIMIT_S} s: {what}")
        time.sleep(0.01)
    return value


class Pair:
    """How the nodes of a contender are made; ${values}: what its configuration has besides."""

    def __init__(self, command, template, values, keeps=False):
        self.words = shlex.split(str(command)) if command else []
        chrooted = self.words and Path(self.words[0]).name == "chroot"
        self.root = Path(self.words[1]).resolve() if chrooted else Path("/")
        if self.words and not chrooted:
            self.words[0] = str(Path(self.words[0]).absolute())
        self.template, self.values, self.keeps = template, values, keeps
        self.drain_signal = signal.SIGTERM
        self.script = ""
        self.arguments = []

    def why_missing(self):
        """Why this contender cannot run, or None."""
        if not self.words:
            return "not given"
        program = str(self.root / self.words[-1].lstrip("/"))
        for name in (program, "keepalived", "socat", *(["nft", "ping"] if self.keeps else [])):
            if not shutil.which(name):
                return f"no {name}"
        return None


def all_pairs(options):
    """{name: Pair}."""
    def reactord(values, keeps=False):
        pair = Pair(options.reactord, "pair-reactord.ini.in", values, keeps)
        ctl = Path(options.reactord).resolve().with_name("reactorctl")
        pair.script = f"{ctl} -s @DIRECTORY@/admin.sock --timeout 900ms ready"
        pair.arguments = ["-c"]
        return pair

    def haproxy(command):
        pair = Pair(command, "pair-haproxy.cfg.in", {"ADDRESS": f"{network.VIP}:{PORT}"})
        pair.script = ("/bin/sh -c 'echo show info | socat - UNIX:@OUTSIDE@/stats.sock | "
                       "grep -q \\\"Stopping: 0\\\"'")
        pair.arguments = ["-db", "-q", "-f"]
        pair.drain_signal = signal.SIGUSR1
        return pair
    return {
        "reactord": reactord({"ADDRESS": f"*:{PORT}", "FREEBIND": ""}, keeps=True),
        "reactord-plain": reactord({"ADDRESS": f"{network.VIP}:{PORT}", "FREEBIND": "freebind = yes"}),
        "haproxy": haproxy(options.haproxy),
        "haproxy3": haproxy(options.haproxy3),
    }


class Node:
    """A node of a pair, running for the time of the block."""

    def __init__(self, name, pair):
        self.name, self.pair = name, pair
        self.proxy = self.keepalived = None
        self.directory = Path(tempfile.mkdtemp(prefix="reactord-bench-", dir=pair.root / "tmp"))
        inside = "/" / self.directory.relative_to(pair.root)
        peer = next(node for node in network.NODES if node != name)
        self.values = {"DIRECTORY": inside, "OUTSIDE": self.directory, "NODE": name,
                       "VIP": network.VIP, "SOURCE": network.HOSTS[name],
                       "PEER": network.HOSTS[peer], "PRIORITY": PRIORITIES[name],
                       "SERVER": f"{network.HOSTS['server']}:{SERVER_PORT}", "PORT": PORT,
                       "STATIC": KEPT_ADDRESS if pair.keeps else "",
                       "NOTIFY": f"notify {self.directory}/notify" if pair.keeps else "",
                       **pair.values}
        self.values["SCRIPT"] = fill_in(pair.script, self.values)
        self._write("conf", pair.template)
        self._write("keepalived.conf", "pair-keepalived.conf.in")
        if pair.keeps:
            self._write("pair.nft", "pair-nft.conf.in")
            self._write("notify", "pair-notify.in").chmod(0o755)

    def _write(self, name, template):
        text = (CONF / template).read_text(encoding="utf-8")
        path = self.directory / name
        path.write_text(fill_in(text, self.values), encoding="utf-8")
        return path

    def __enter__(self):
        try:
            self.start()
            self._start_keepalived()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child, limit_s in ((self.keepalived, LIMIT_S), (self.proxy, 0)):
            if not child:
                continue
            child.terminate()
            try:
                child.wait(limit_s)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _spawn(self, name, *words):
        with open(self.directory / name, "ab") as log:
            return subprocess.Popen(network.inside(self.name, *words), stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def start(self):
        """Start the proxy, when it does not run any more."""
        if self.proxy:
            self.proxy.wait(LIMIT_S)
        self.proxy = self._spawn("log", *self.pair.words, *self.pair.arguments,
                                 str(self.values["DIRECTORY"] / "conf"))

    def _start_keepalived(self):
        files = self.directory
        self.keepalived = self._spawn(
            "keepalived.log", "keepalived", "-P", "-n", "-l", "-D", "-f", str(files / "keepalived.conf"),
            *(word for kind in "prcb" for word in (f"-{kind}", str(files / f"{kind}.pid"))))

    def log(self):
        """What both have written."""
        return "".join((self.directory / name).read_text(encoding="utf-8", errors="replace")
                       for name in ("log", "keepalived.log"))

    def kill(self):
        """The proxy is killed; the node is not."""
        self.proxy.kill()

    def drain(self):
        """The proxy is told to end."""
        self.proxy.send_signal(self.pair.drain_signal)

    def has_vip(self):
        """Is it the master?"""
        for child in (self.proxy, self.keepalived):
            if child.poll() not in (None, -signal.SIGKILL, 0):
                raise BenchError(f"node {self.name}: a program ended:\n{self.log()}")
        return network.has_vip(self.name)
