"""unit: reactord.service in the machine."""

import time
from pathlib import Path

POLL_S = 0.02


class Unit:
    """The service and its configuration, as `make install` left them before each test."""

    def __init__(self, machine, name="reactord.service"):
        self.machine = machine
        self.name = name
        self.config_path = "/etc/reactord/reactord.ini"
        self.shipped = self._file(self.config_path).read_text(encoding="utf-8")
        self.since = 0

    def configure(self, text):
        self._file(self.config_path).write_text(text, encoding="utf-8")

    def drop_in(self, text, unit=None):
        """Override settings of the unit until the end of the test."""
        directory = self._file(f"/run/systemd/system/{unit or self.name}.d")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "test.conf").write_text(text, encoding="utf-8")
        self.systemctl("daemon-reload")

    def systemctl(self, *arguments, may_fail=False):
        return self.machine.run("systemctl", *arguments, may_fail=may_fail)

    def start(self):
        self.systemctl("start", self.name)

    def stop(self):
        self.systemctl("stop", self.name)

    def restart(self):
        self.systemctl("restart", self.name)

    def show(self, name):
        return self.systemctl("show", "--value", f"--property={name}", self.name)[0].strip()

    def pid(self):
        return int(self.show("MainPID"))

    def kill(self, number):
        self.systemctl("kill", "--kill-whom=main", f"--signal={number}", self.name)

    def log(self):
        """What it has logged in this test."""
        self.machine.run("journalctl", "--sync")
        return self.machine.run("journalctl", "--quiet", "--output=cat", f"--since=@{self.since}",
                                "--unit=reactord.*")[0]

    def reset(self):
        """Back to what was installed, stopped; log() begins here."""
        self.systemctl("stop", "reactord.socket", self.name, may_fail=True)
        self.machine.run("rm", "-rf", f"/run/systemd/system/{self.name}.d",
                         "/run/systemd/system/reactord.socket.d")
        self.systemctl("daemon-reload")
        self.systemctl("reset-failed", self.name, may_fail=True)
        self.configure(self.shipped)
        self.since = time.time()

    def eventually(self, probe, what, within_s=20):
        """Wait until the probe is true; returns what it gave."""
        end = time.monotonic() + within_s
        while True:
            value = probe()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"not within {within_s} s: {what}")
            time.sleep(POLL_S)

    def _file(self, path):
        return Path(self.machine.path(path))
