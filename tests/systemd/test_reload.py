"""reload: systemctl reload, good and bad, and what systemd and its store know of it."""

from support import net
from support.case import check, check_equal, test
from test_inherited import is_refused, stored
from test_service import ADDRESS, ECHO, serves

OTHER = "[listen other]\naddress = 127.0.0.1:7008\nservice = echo\n"


def is_done(unit, status):
    unit.eventually(lambda: unit.show("ActiveState") == "active" and unit.show("StatusText") == status, status)


@test()
def good(unit):
    """a reload that adds a listener is made by the same process, with its open connections"""
    unit.start()
    pid = unit.pid()
    with net.connect(ADDRESS) as client:
        check_equal(net.exchange(client, b"before"), b"before", "the echo")
        unit.configure(ECHO + OTHER)
        unit.systemctl("reload", unit.name)
        is_done(unit, "Accepting, listen addresses: 2")
        check_equal(net.exchange(client, b"after"), b"after", "the echo")
    serves("127.0.0.1:7008")
    check_equal(unit.pid(), pid, "process")


@test()
def invalid(unit):
    """a reload of an invalid configuration fails, says why, and changes nothing"""
    unit.start()
    unit.configure("[listen echo]\naddress = nonsense\nservice = echo\n")
    said, code = unit.systemctl("reload", unit.name, may_fail=True)
    check(code != 0, f"systemctl reload succeeded: {said}")
    check("reactord.ini:2: [listen echo] address: " in unit.log(), "the reason is not in the journal")
    check("SIGHUP" not in unit.log(), "the process was asked")
    check_equal(unit.show("ActiveState"), "active", "state")
    serves()


@test()
def refused(unit):
    """a reload that cannot be applied is told in the status, and the next good one is made"""
    unit.start()
    unit.configure(ECHO + OTHER)
    with net.listen("127.0.0.1:7008"):
        unit.systemctl("reload", unit.name)
        is_done(unit, "Accepting, listen addresses: 1; the last reload was refused, see the log")
        serves()
    unit.systemctl("reload", unit.name)
    is_done(unit, "Accepting, listen addresses: 2")


@test()
def sockets_come_and_go(unit):
    """a new listener's socket is stored, and survives kill -9; a removed one's is removed from the store"""
    unit.drop_in("[Service]\nRestartSec=500ms\n")
    unit.start()
    unit.configure(ECHO + OTHER)
    unit.systemctl("reload", unit.name)
    unit.eventually(lambda: stored(unit) == 2, "two sockets are stored")
    unit.kill("KILL")
    serves("127.0.0.1:7008")
    unit.configure(ECHO)
    unit.eventually(lambda: unit.show("ActiveState") == "active", "it runs again")
    unit.systemctl("reload", unit.name)
    unit.eventually(lambda: stored(unit) == 1, "one socket is stored")
    unit.eventually(lambda: is_refused("127.0.0.1:7008"), "a client is refused")
    serves()


@test()
def a_socket_of_the_unit(unit):
    """a reload gives a socket of the socket unit to another listener, and leaves its file alone"""
    unit.drop_in("[Socket]\nListenStream=\nListenStream=/run/web.sock\n", "reactord.socket")
    path = str(unit.machine.path("/run/web.sock"))
    unit.configure("[listen web]\naddress = /run/web.sock\nservice = echo\n" + OTHER)
    unit.systemctl("start", "reactord.socket")
    unit.start()
    unit.configure("[listen file]\naddress = /run/web.sock\nservice = echo\n" + OTHER)
    unit.systemctl("reload", unit.name)
    unit.eventually(lambda: "reload: done" in unit.log(), "it is done")
    serves(path)
    unit.configure(OTHER)
    unit.systemctl("reload", unit.name)
    is_done(unit, "Accepting, listen addresses: 1")
    check(unit.machine.path("/run/web.sock").exists(), "the file is gone")
