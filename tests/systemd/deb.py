#!/usr/bin/env python3
"""The Debian package in a booted root: deb_installed.sh calls this, in mount and network namespaces of its own.

    python3 tests/systemd/deb.py ROOT

ROOT has systemd, what the package depends on, and the package in two versions in /root.
"""

import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "integration"))  # behind our own tests

from machine import CannotBoot, Machine  # noqa: E402
from support import net  # noqa: E402
from support.case import check, check_equal  # noqa: E402

ADDRESS = "127.0.0.1:7007"
CONFIG = "/etc/reactord/reactord.ini"
COMMAND_LIMIT_S = 300  # dpkg syncs files, which takes long on a busy disk


def eventually(condition, what, within=30):
    end = time.monotonic() + within
    while not condition():
        check(time.monotonic() < end, f"not within {within} s: {what}")
        time.sleep(0.1)


def serves():
    try:
        with net.connect(ADDRESS) as client:
            return net.exchange(client, b"hello") == b"hello"
    except (OSError, EOFError):
        return False


class Talk:
    """A session that goes on: a quiet one is ended when the old process drains."""

    def __init__(self, address):
        self.client = net.connect(address)
        self.answered = 0
        self.ends = threading.Event()
        self.task = net.Task(self._run)

    def _run(self):
        while not self.ends.wait(0.1):
            self.answered += net.exchange(self.client, b"hello") == b"hello"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.task.result()
        self.client.close()


class Package:
    def __init__(self, machine):
        self.machine = machine

    def sh(self, command):
        return self.machine.run("sh", "-c", f"DEBIAN_FRONTEND=noninteractive {command}",
                                limit_s=COMMAND_LIMIT_S)[0].strip()

    def main_pid(self):
        return self.sh("systemctl show --property=MainPID --value reactord")

    def installs(self):
        """after the installation the service runs as the package's user, is enabled, and serves"""
        self.sh("dpkg -i /root/reactord_0*.deb")
        eventually(serves, "it serves")
        check_equal(self.sh("systemctl is-enabled reactord"), "enabled", "the service")
        check_equal(self.sh("systemctl is-enabled reactord.socket || :"), "disabled", "the socket unit")
        check_equal(self.sh(f"stat -c %U /proc/{self.main_pid()}"), "reactord", "its user")
        self.sh("systemd-analyze security --threshold=15 reactord.service > /dev/null")
        check_equal(self.sh("test -e /usr/share/doc/reactord/examples/grafana/reactord.json && echo there"), "there",
                    "the dashboard")
        check_equal(self.sh("dpkg-query -W -f '${Conffiles}' reactord | awk '{print $1}' | sort | xargs"),
                    f"/etc/logrotate.d/reactord {CONFIG}", "conffiles")

    def rotates(self):
        """logrotate moves a log, and reactord goes on in a new one"""
        self.sh(f"sed -i '0,/^#log = .*/s//log = \\/var\\/log\\/reactord\\/reactord.log/' {CONFIG}")
        self.sh("systemctl restart reactord")
        eventually(serves, "it serves")
        self.sh("logrotate --force /etc/logrotate.d/reactord")
        eventually(lambda: "reopened" in self.sh("cat /var/log/reactord/reactord.log 2> /dev/null || :"),
                   "the new log has lines")
        check("ready" in self.sh("cat /var/log/reactord/reactord.log.1"), "the old log is gone")

    def upgrades(self):
        """a newer version replaces the running program, under an open session, and keeps a changed conffile"""
        before = self.main_pid()
        with Talk(ADDRESS) as talk:
            said = self.sh("dpkg -i --force-confold /root/reactord_9.9.9_*.deb")
            check("was not replaced" not in said, said)
            check(self.main_pid() != before, "the old program is the main one")
            check(serves(), "a new client is not served")
            answered = talk.answered
            eventually(lambda: talk.answered > answered + 5, "the open session goes on")
        check("9.9.9" in self.sh("reactord --version"), "version")
        check_equal(self.sh(f"grep -c '^log = /var/log' {CONFIG}"), "1", "the changed line")

    def stays(self):
        """when the new program refuses the configuration, the old one goes on, and apt says so"""
        self.sh(f"echo nonsense >> {CONFIG}")
        before = self.main_pid()
        said = self.sh("dpkg -i --force-confold /root/reactord_0*.deb")
        check("was not replaced" in said, said)
        check_equal(self.main_pid(), before, "the main process")
        check(serves(), "it does not serve")

    def removes(self):
        """removed, nothing runs and the configuration stays; purged, nothing is left but user and logs"""
        self.sh("dpkg -r reactord")
        check(not serves(), "it serves")
        check_equal(self.sh(f"test -e {CONFIG} && echo there"), "there", "the configuration")
        self.sh("dpkg -P reactord")
        left = self.sh("find / -xdev -iname '*reactord*' -not -path '/proc/*' -not -path '/root/*' -not -path '/src/*' "
                       "-not -path '/var/log/*' -not -path '/sys/*'")
        check_equal(left, "", "files that are left")


def main():
    tests = ("installs", "rotates", "upgrades", "stays", "removes")
    try:
        with Machine(sys.argv[1]) as machine:
            package = Package(machine)
            for name in tests:
                function = getattr(package, name)
                try:
                    function()
                except Exception:
                    print(f"FAILED deb: {function.__doc__}\n{package.sh('journalctl -n 40 --no-pager -u reactord || :')}")
                    raise
                print(f"ok deb: {function.__doc__}", flush=True)
    except CannotBoot as error:
        print(f"deb: skipped: systemd-nspawn cannot boot here: {error}")
        return 0
    print(f"deb: {len(tests)} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
