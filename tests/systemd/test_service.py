"""service: the shipped unit, from start to stop, and what systemd does when reactord fails."""

from support import net
from support.case import check, check_equal, test

ADDRESS = "127.0.0.1:7007"  # of the installed configuration
ECHO = f"[listen echo]\naddress = {ADDRESS}\nservice = echo\n"
# A watchdog and a restart that a test can wait for.
SOON = "[Service]\nWatchdogSec=1s\nRestartSec=50ms\n"


def serves(address=ADDRESS):
    with net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
    return True


def expect_restarted(unit, pid, result):
    """systemd has noticed the failure, and the next process serves."""
    unit.eventually(lambda: unit.pid() not in (0, pid) and unit.show("ActiveState") == "active",
                    "another process runs")
    check_equal(unit.show("NRestarts"), "1", "restarts")
    check(f"Failed with result '{result}'" in unit.log(), f"the result is not {result}")
    serves()


@test()
def the_unit_is_valid(unit):
    """systemd-analyze finds nothing to say about the unit"""
    said, _ = unit.machine.run("systemd-analyze", "verify", "--man=no", unit.name)
    check_equal(said, "", "systemd-analyze")


@test()
def the_unit_is_confined(unit):
    """systemd-analyze rates the exposure of the unit as at most 1.5"""
    said, code = unit.machine.run("systemd-analyze", "security", "--threshold=15", unit.name, may_fail=True)
    check(code == 0, said)


@test()
def start_returns_when_it_serves(unit):
    """systemctl start returns when clients are served, and status says so"""
    unit.start()
    serves()
    check_equal(unit.show("ActiveState"), "active", "state")
    check_equal(unit.show("StatusText"), "Accepting, listen addresses: 1", "status")
    check(unit.show("UID") != "0", "it runs as root")


@test()
def stop_drains(unit):
    """systemctl stop lets an open session finish, says so in the status, and succeeds"""
    with net.listen("127.0.0.1:7100") as server:
        unit.configure("[listen front]\naddress = 127.0.0.1:7007\nservice = proxy\nupstream = back\n"
                       "[upstream back]\nserver.a = 127.0.0.1:7100\n")
        unit.start()
        with net.proxied(ADDRESS, server) as (client, served):
            unit.systemctl("stop", "--no-block", unit.name)
            unit.eventually(lambda: unit.show("StatusText") == "Draining, sessions left: 1", "it drains")
            check_equal(unit.show("ActiveState"), "deactivating", "state")
            client.sendall(b"last words")
            check_equal(net.read_exactly(served, 10), b"last words", "what the server got")
    unit.eventually(lambda: unit.show("ActiveState") == "inactive", "it has stopped")
    check_equal(unit.show("Result"), "success", "result")


@test()
def restart_is_another_process(unit):
    """systemctl restart returns when another process serves"""
    unit.start()
    pid = unit.pid()
    unit.restart()
    serves()
    check(unit.pid() != pid, "the same process")
    check_equal(unit.show("NRestarts"), "0", "restarts by systemd itself")


@test()
def a_bad_configuration_is_not_retried(unit):
    """a start with an invalid configuration fails once, with the reason in the journal"""
    unit.drop_in(SOON)
    unit.configure("[listen echo]\naddress = nonsense\nservice = echo\n")
    _, code = unit.systemctl("start", unit.name, may_fail=True)
    check(code != 0, "systemctl start succeeded")
    check_equal(unit.show("ActiveState"), "failed", "state")
    check_equal(unit.show("ExecMainStatus"), "1", "exit status")
    check_equal(unit.show("NRestarts"), "0", "restarts")
    check("reactord.ini:2: [listen echo] address: " in unit.log(), "the reason is not in the journal")


@test()
def an_address_in_use_is_retried(unit):
    """a start that fails for an address in use is retried until the address is free"""
    unit.drop_in(SOON)
    with net.listen(ADDRESS):
        _, code = unit.systemctl("start", unit.name, may_fail=True)
        check(code != 0, "systemctl start succeeded")
        check("cannot listen: Address already in use" in unit.log(), "the reason is not in the journal")
    unit.eventually(lambda: unit.show("ActiveState") == "active", "it has started")
    serves()


@test()
def a_stopped_process_is_replaced(unit):
    """after SIGSTOP the watchdog ends the process and the next one serves"""
    unit.drop_in(SOON)
    unit.start()
    pid = unit.pid()
    unit.kill("STOP")
    expect_restarted(unit, pid, "watchdog")


@test()
def a_killed_process_is_replaced(unit):
    """after kill -9 the next process serves"""
    unit.drop_in(SOON)
    unit.start()
    pid = unit.pid()
    unit.kill("KILL")
    expect_restarted(unit, pid, "signal")


@test()
def a_healthy_process_is_left_alone(unit):
    """a process that feeds the watchdog lives on for several of its periods"""
    unit.drop_in(SOON)
    unit.start()
    pid = unit.pid()
    with net.connect(ADDRESS) as client:
        for _ in range(40):
            check_equal(net.exchange(client, b"x"), b"x", "the echo")
            unit.machine.run("sleep", "0.1")
    check_equal(unit.pid(), pid, "process")
    check_equal(unit.show("NRestarts"), "0", "restarts")


@test()
def a_group_of_the_unit(unit):
    """unix_group is one of the unit's SupplementaryGroups, once the unit allows the system call"""
    unit.configure("[listen echo]\naddress = /run/reactord/echo.sock\nservice = echo\n"
                   "unix_mode = 660\nunix_group = adm\n")
    unit.drop_in("[Service]\nSupplementaryGroups=adm\n")
    _, code = unit.systemctl("start", unit.name, may_fail=True)
    check(code != 0, "systemctl start succeeded")
    check("echo.sock: cannot listen: Operation not permitted" in unit.log(), "the reason is not in the journal")
    unit.drop_in("[Service]\nSupplementaryGroups=adm\nSystemCallFilter=fchownat\n")
    unit.systemctl("reset-failed", unit.name, may_fail=True)
    unit.start()
    owner, _ = unit.machine.run("stat", "--format=%G %a", "/run/reactord/echo.sock")
    check_equal(owner.strip(), "adm 660", "group and mode")


@test()
def its_own_filter_beside_that_of_the_unit(unit):
    """seccomp = yes works with the unit's filter; SIGUSR2 is refused, and the same process serves on"""
    unit.configure(f"[reactord]\nseccomp = yes\n{ECHO}")
    unit.start()
    pid = unit.pid()
    unit.kill("USR2")
    unit.eventually(lambda: "upgrade: refused: seccomp forbids executing a program" in unit.log(), "it is refused")
    serves()
    check_equal(unit.pid(), pid, "main process")
    unit.restart()
    serves()


@test()
def another_root_directory(unit):
    """with RootDirectory of the unit, which stands for chroot, it starts, reloads, is upgraded and stops"""
    unit.machine.run("mkdir", "-p", "/srv/root")
    unit.drop_in("[Service]\nRootDirectory=/srv/root\nBindReadOnlyPaths=/usr /lib /lib64 /bin /etc\n")
    unit.configure(ECHO)
    unit.start()
    serves()
    pid = unit.pid()
    _, code = unit.machine.run("test", "-e", f"/proc/{pid}/root/var/lib/dpkg", may_fail=True)
    check(code != 0, "its root directory is that of all others")
    unit.systemctl("reload", unit.name)
    unit.kill("USR2")
    unit.eventually(lambda: unit.pid() not in (0, pid), "another main process")
    serves()
    unit.stop()
