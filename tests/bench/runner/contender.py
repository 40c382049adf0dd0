"""contender: the servers that are compared, and how each is started from its template."""

import shlex
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from runner.certificates import pem
from runner.process import Process

CONF = Path(__file__).resolve().parent.parent / "conf"
SERVER_CPU = 1
LOAD_CPU = 0


class Contender:
    """
    A server program: `command` may be several words ("chroot DIR PROGRAM"); `arguments` and the
    template's text are filled in with PORT, UPSTREAM_PORT, DIRECTORY, CONFIG, CERTIFICATE and
    `values`.
    """

    def __init__(self, name, command, arguments, templates=None, services=("echo", "proxy"),
                 has_worker=False, values=None):
        self.name = name
        self.words = shlex.split(str(command)) if command else []
        self.arguments = arguments
        self.templates = templates or {}
        self.services = services
        self.has_worker = has_worker  # the process started is a master, its only child works
        self.values = values or {}

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
                      "CONFIG": inside / "conf", "CERTIFICATE": inside / "certificate.pem",
                      **self.values}
            if certificate:
                path = Path(directory) / "certificate.pem"
                path.touch(0o600)
                path.write_text(pem(certificate), encoding="ascii")
            if service in self.templates:
                text = (CONF / self.templates[service]).read_text(encoding="utf-8")
                (Path(directory) / "conf").write_text(fill_in(text, values), encoding="utf-8")
            arguments = [fill_in(argument, values) for argument in self.arguments]
            with Process(self.words + arguments, SERVER_CPU) as process:
                process.wait_until_listening(port)
                yield process.worker_pid() if self.has_worker else process.child.pid

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

    def balanced(name, balance):
        return Contender(name, options.reactord, ["-c", "@CONFIG@"],
                         {"proxy": "reactord-proxy.ini.in"}, services=("proxy",),
                         values={"BALANCE": balance})

    contenders = [
        Contender("reactord", options.reactord, ["-c", "@CONFIG@"],
                  {"echo": "reactord-echo.ini.in", "proxy": "reactord-proxy.ini.in",
                   "tls": "reactord-tls.ini.in", "tls-echo": "reactord-tls-echo.ini.in"},
                  services=("echo", "proxy", "tls", "tls-echo"), values={"BALANCE": "round_robin"}),
        balanced("reactord-least", "least_connections"),
        balanced("reactord-maglev", "maglev"),
        Contender("reactord-log", options.reactord, ["-c", "@CONFIG@"],
                  {"proxy": "reactord-log.ini.in"}, services=("proxy",)),
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
