"""names: a name server on 127.0.0.1:53 of our own network, whose records change while it runs."""

import contextlib
import re
import signal

from support import program

# As in /etc/resolv.conf: a name server that does not answer is given up after 2 s.
RESOLVER = "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n"


class NameServer:
    """dnsmasq, which answers for names below .test, and for no other."""

    def __init__(self, t, records):
        self.t = t
        self.path = t.path("records")
        self.pid_path = t.dir / "dnsmasq.pid"
        self.log_path = t.path("dnsmasq.log")
        self.process = None
        self.srv = ()
        self._open = contextlib.ExitStack()
        self.write(records)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.process = self._open.enter_context(program.server(self.t, [
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root",
            f"--pid-file={self.pid_path}", "--listen-address=127.0.0.1", "--bind-interfaces",
            "--no-resolv", "--local=/test/", "--no-hosts", f"--addn-hosts={self.path}",
            "--log-queries", "--log-facility=-", *self.services()], path=self.pid_path))

    def services(self):
        """The SRV records, for when it is started: it reads them no other time."""
        return [f"--srv-host={name},{host},{port},{priority},{weight}"
                for name, host, port, priority, weight in self.srv]

    def serves(self, *srv):
        """From now on these are the SRV records: (name, host, port, priority, weight)."""
        self.srv = srv
        self.stop()
        self.start()

    def stop(self):
        self._open.close()
        self.pid_path.unlink(missing_ok=True)

    def changes(self, records):
        """From now on these are the records; those who are not there any more have no address."""
        before = self._loads()
        self.write(records)
        self.process.send_signal(signal.SIGHUP)
        self.t.eventually(lambda: self._loads() > before, "the name server has read its records")

    def asked(self, name):
        """How many times its IPv4 address was asked for."""
        return len(re.findall(rf"query\[A\] {re.escape(name)} ", self._log()))

    def write(self, records):
        """(name, address) pairs, for when it is started."""
        self.t.write("records", "".join(f"{address} {name}\n" for name, address in records))

    def _loads(self):
        return len(re.findall(rf"read {re.escape(self.path)} - ", self._log()))

    def _log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()
