"""contender: the servers that are compared, and how each is started from its template."""

import shlex
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from runner.certificates import pem
from runner.process import Process, wait_for_file

CONF = Path(__file__).resolve().parent.parent / "conf"
SYSLOG = Path(__file__).resolve().parent / "syslog.py"
SERVER_CPU = 1
LOAD_CPU = 0


class Contender:
    """
    A server program: `command` may be several words ("chroot DIR PROGRAM"); `arguments` and the
    template's text are filled in with PORT, UPSTREAM_PORT, DIRECTORY, CONFIG, CERTIFICATE and
    `values`.
    """

    def __init__(self, name, command, arguments, templates=None, services=("echo", "proxy"),
                 has_worker=False, values=None, reads_syslog=None):
        self.name = name
        self.words = shlex.split(str(command)) if command else []
        self.arguments = arguments
        self.templates = templates or {}
        self.services = services
        self.has_worker = has_worker  # the process started is a master, its only child works
        self.values = values or {}
        self.reads_syslog = reads_syslog  # whether the syslog beside it reads; None: there is none

    def why_missing(self):
        """Why this contender cannot run, or None."""
        if not self.words:
            return "not given"
        program = self.words[-1]
        if self._root() != Path("/"):
            program = str(self._root() / program.lstrip("/"))
        return None if shutil.which(program) else f"{program} is not installed"

    @contextmanager
    def running(self, service, upstream_port, port, certificate=""):
        """Run the server on ${port} for the time of the block; gives the pid that does the work."""
        root = self._root()
        with tempfile.TemporaryDirectory(prefix="reactord-bench-", dir=root / "tmp") as directory:
            inside = "/" / Path(directory).relative_to(root)  # as the server sees it
            values = {"PORT": port, "UPSTREAM_PORT": upstream_port, "DIRECTORY": inside,
                      "CONFIG": inside / "conf", "CERTIFICATE": inside / "certificate.pem"}
            values |= {name: fill_in(str(value), values) for name, value in self.values.items()}
            if certificate:
                path = Path(directory) / "certificate.pem"
                path.touch(0o600)
                path.write_text(pem(certificate), encoding="ascii")
            if service in self.templates:
                text = (CONF / self.templates[service]).read_text(encoding="utf-8")
                (Path(directory) / "conf").write_text(fill_in(text, values), encoding="utf-8")
            arguments = [fill_in(argument, values) for argument in self.arguments]
            with self._syslog(directory), Process(self.words + arguments, SERVER_CPU) as process:
                process.wait_until_listening(port)
                yield process.worker_pid() if self.has_worker else process.child.pid

    @contextmanager
    def _syslog(self, directory):
        """The syslog beside the server, for the time of the block."""
        if self.reads_syslog is None:
            yield
            return
        path = Path(directory) / "syslog"
        command = [sys.executable, str(SYSLOG), str(path), "read" if self.reads_syslog else "wait"]
        with Process(command, LOAD_CPU):
            wait_for_file(path)
            yield

    def _root(self):
        """The directory the server takes for /."""
        if Path(self.words[0]).name == "chroot":
            return Path(self.words[1]).resolve()
        return Path("/")


def fill_in(text, values):
    """Replace @NAME@ by its value."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def all_contenders(options):
    """Every contender there is, by name, in the order of the table's columns."""
    def bare_proxy(mode):
        return Contender(f"bare-{mode}", options.build / "bare_proxy",
                         ["--mode", mode, "--listen", "127.0.0.1:@PORT@",
                          "--upstream", "127.0.0.1:@UPSTREAM_PORT@"], services=("proxy",))

    def bare_tls(service, *upstream):
        return Contender("bare-" + service, options.build / "bare_proxy",
                         ["--mode", "tls", "--listen", "127.0.0.1:@PORT@",
                          "--certificate", "@CERTIFICATE@", *upstream], services=(service,))

    def haproxy(name, command):
        return Contender(name, command, ["-db", "-q", "-f", "@CONFIG@"],
                         {"proxy": "haproxy.cfg.in", "tls": "haproxy-tls.cfg.in"},
                         services=("proxy", "tls"))

    def balanced(name, balance, bosses="1", workers="1"):
        return Contender(name, options.reactord, ["-c", "@CONFIG@"],
                         {"proxy": "reactord-proxy.ini.in"}, services=("proxy",),
                         values={"BALANCE": balance, "BOSSES": bosses, "WORKERS": workers})

    def threads(bosses, workers):
        return balanced(f"reactord-{bosses}-{workers}", "round_robin", bosses, workers)

    def logging(name, target, reads_syslog=None):
        return Contender(name, options.reactord, ["-c", "@CONFIG@"],
                         {"proxy": "reactord-log.ini.in"}, services=("proxy",),
                         values={"ACCESS_LOG": target}, reads_syslog=reads_syslog)

    contenders = [
        Contender("reactord", options.reactord, ["-c", "@CONFIG@"],
                  {"echo": "reactord-echo.ini.in", "proxy": "reactord-proxy.ini.in",
                   "tls": "reactord-tls.ini.in", "tls-echo": "reactord-tls-echo.ini.in"},
                  services=("echo", "proxy", "tls", "tls-echo"), values={"BALANCE": "round_robin", "BOSSES": "1", "WORKERS": "1"}),
        *(threads(bosses, workers) for workers in "124" for bosses in "10"),
        balanced("reactord-least", "least_connections"),
        balanced("reactord-maglev", "maglev"),
        logging("reactord-log", "@DIRECTORY@/access.log"),
        logging("reactord-syslog", "syslog @DIRECTORY@/syslog", reads_syslog=True),
        logging("reactord-syslog-full", "syslog @DIRECTORY@/syslog", reads_syslog=False),
        logging("reactord-syslog-down", "syslog @DIRECTORY@/syslog"),
        Contender("bare-echo", options.build / "bare_echo", ["127.0.0.1", "@PORT@"],
                  services=("echo",)),
        bare_proxy("copy"),
        bare_proxy("splice"),
        bare_tls("tls", "--upstream", "127.0.0.1:@UPSTREAM_PORT@"),
        bare_tls("tls-echo"),
        haproxy("haproxy", options.haproxy),
        haproxy("haproxy3", options.haproxy3),
        Contender("nginx", options.nginx, ["-e", "stderr", "-c", "@CONFIG@"],
                  {"proxy": "nginx.conf.in", "tls": "nginx-tls.conf.in"},
                  services=("proxy", "tls"), has_worker=True),
    ]
    return {contender.name: contender for contender in contenders}
