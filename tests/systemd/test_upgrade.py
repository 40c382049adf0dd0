"""upgrade: systemd follows the main process, and keeps the sockets."""

from pathlib import Path

from support.case import check, check_equal, test
from test_inherited import TWO, Visitors, is_refused, stored
from test_service import ADDRESS, ECHO, serves


def main_pid(unit):
    return int(unit.show("MainPID"))


@test()
def three_upgrades(unit):
    """three upgrades refuse no client, and the service stays the same for systemd"""
    unit.configure(ECHO)
    unit.start()
    unit.eventually(lambda: stored(unit) == 1, "the socket is stored")
    with Visitors(ADDRESS) as visitors:
        for _ in range(3):
            before = main_pid(unit)
            unit.systemctl("kill", "--kill-whom=main", "--signal=USR2", unit.name)
            unit.eventually(lambda old=before: main_pid(unit) not in (0, old), "another main process")
            serves()
    check_equal((visitors.refused, visitors.cut), (0, 0), "clients refused and cut")
    check(visitors.answered > 0, "nobody was served")
    check_equal(unit.show("NRestarts"), "0", "restarts")
    unit.eventually(lambda: stored(unit) == 1, "the socket is stored once")
    check("reception only permitted" not in unit.log(), "systemd took no message")
    unit.stop()


# Says what reactord says until it takes over, and hears no more.
DEAF = """#!/usr/bin/perl
my @names = split /:/, $ENV{LISTEN_FDNAMES};
my ($i) = grep { $names[$_] eq "reactord-upgrade" } 0 .. $#names;
open(my $socket, "+<&=", 3 + $i);
send($socket, "ready", 0);
recv($socket, my $go, 99, 0);
shutdown($socket, 2);
sleep 60;
"""


@test()
def failure_at_the_last_step(unit):
    """when the new process fails after "go", systemd has heard nothing of it, and the next one is the main process"""
    unit.configure(ECHO)
    unit.start()
    before = main_pid(unit)
    path = Path(unit.machine.path("/usr/sbin/reactord"))
    kept = path.rename(path.with_suffix(".kept"))
    try:
        path.write_text(DEAF, encoding="ascii")
        path.chmod(0o755)
        unit.kill("USR2")
        unit.eventually(lambda: "upgrade: failed: " in unit.log(), "it failed")
        check_equal(main_pid(unit), before, "the main process")
        serves()
    finally:
        kept.rename(path)
    unit.eventually(lambda: unit.show("StatusText").startswith("Accepting; the upgrade failed"), "the status")
    unit.kill("USR2")
    unit.eventually(lambda: main_pid(unit) not in (0, before), "another main process")
    check("which is not our child" not in unit.log(), "systemd would not notice its end")
    check_equal(unit.show("NRestarts"), "0", "restarts")
    unit.stop()


@test()
def removed_address(unit):
    """systemd gives up the socket of an address that the next configuration no longer has"""
    unit.configure(TWO)
    unit.start()
    unit.eventually(lambda: stored(unit) == 3, "the sockets are stored")
    unit.configure(ECHO)
    before = main_pid(unit)
    unit.kill("USR2")
    unit.eventually(lambda: main_pid(unit) not in (0, before), "another main process")
    unit.eventually(lambda: stored(unit) == 1, "one is stored")
    unit.eventually(lambda: is_refused("127.0.0.1:7008"), "the removed address refuses clients")
    serves()
    unit.stop()
