"""inherited: what systemd keeps open while reactord is replaced, and what it opens before reactord starts."""

import threading

from support import net
from support.case import check, check_equal, test
from test_service import ADDRESS, ECHO, SOON, serves

TWO = "[listen web]\naddress = 127.0.0.1:7007, 127.0.0.1:7008, @web\nservice = echo\n"


class Visitors:
    """Clients, one after the other, of which each must be connected at once and answered in the end."""

    def __init__(self, address):
        self.address = address
        self.refused = self.cut = self.answered = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.is_set():
            try:
                client = net.connect(self.address)
            except OSError:
                self.refused += 1
                continue
            with client:
                try:
                    self.answered += net.exchange(client, b"hello") == b"hello"
                except (OSError, EOFError):  # it was connected to a process that was killed
                    self.cut += 1


def is_refused(address):
    try:
        net.connect(address).close()
    except ConnectionRefusedError:
        return True
    return False


def stored(unit):
    return int(unit.show("NFileDescriptorStore"))


@test()
def sockets_are_stored_once(unit):
    """each listen socket is stored once, however often it is restarted"""
    unit.configure(TWO)
    unit.start()
    for _ in range(3):
        unit.eventually(lambda: stored(unit) == 3, "three sockets are stored")
        for address in ("127.0.0.1:7007", "127.0.0.1:7008", "@web"):
            serves(address)
        unit.restart()
    check_equal(unit.log().count("listen address 127.0.0.1:7008: inherited as 127.0.0.1%3A7008"), 3, "inherited")
    unit.stop()
    unit.eventually(lambda: stored(unit) == 0, "a stop closes them")
    check(is_refused(ADDRESS), "a client is not refused")


@test()
def several_sockets_of_an_address_are_stored(unit):
    """with reuseport = 3 three sockets are stored, and all of them accept after a restart"""
    unit.configure("[boss]\nthreads = 3\n" + ECHO + "reuseport = 3\n")
    unit.start()
    unit.restart()
    unit.eventually(lambda: stored(unit) == 3, "three sockets are stored")
    for _ in range(50):
        serves()


@test()
def fewer_sockets_of_an_address_after_a_restart(unit):
    """with reuseport = 1 after 3 all three stay open, as closing one resets the clients in its queue"""
    unit.configure(ECHO + "reuseport = 3\n")
    unit.start()
    unit.configure(ECHO)
    for _ in range(2):
        unit.restart()
        for _ in range(50):
            serves()
    unit.eventually(lambda: stored(unit) == 3, "three sockets are stored")


@test()
def more_sockets_of_an_address_after_a_restart(unit):
    """with reuseport = 3 after 1 the others are bound beside the stored one"""
    unit.start()
    unit.configure(ECHO + "reuseport = 3\n")
    unit.restart()
    unit.eventually(lambda: stored(unit) == 3, "three sockets are stored")
    for _ in range(50):
        serves()


@test()
def a_restart_refuses_nobody(unit):
    """clients that come during a restart are served, by the old process or the next"""
    unit.drop_in("[Unit]\nStartLimitIntervalSec=0\n")
    unit.start()
    with Visitors(ADDRESS) as visitors:
        for _ in range(5):
            unit.restart()
    check_equal((visitors.refused, visitors.cut), (0, 0), "clients refused, cut")
    check(visitors.answered > 10, f"only {visitors.answered} clients")


@test()
def a_restart_that_drains_refuses_nobody(unit):
    """a client that comes while the old process waits for a session is served by the next"""
    with net.listen("127.0.0.1:7100") as server:
        unit.configure("[reactord]\ndrain_timeout = 3s\n" + ECHO +
                       "[listen front]\naddress = 127.0.0.1:7008\nservice = proxy\nupstream = back\n"
                       "[upstream back]\nserver.a = 127.0.0.1:7100\n")
        unit.start()
        with net.proxied("127.0.0.1:7008", server):
            unit.systemctl("restart", "--no-block", unit.name)
            unit.eventually(lambda: unit.show("StatusText").startswith("Draining"), "it drains")
            serves()
    check_equal(unit.show("ActiveState"), "active", "state")


@test()
def a_kill_refuses_nobody(unit):
    """after kill -9 clients wait for the next process"""
    unit.drop_in("[Service]\nRestartSec=1s\n")
    unit.start()
    with Visitors(ADDRESS) as visitors:
        for restarts in range(1, 4):
            unit.kill("KILL")
            unit.eventually(lambda: unit.show("NRestarts") == str(restarts) and
                            unit.show("ActiveState") == "active", "the next process runs")
            answered = visitors.answered
            unit.eventually(lambda: visitors.answered > answered + 5, "it serves")
    check_equal(visitors.refused, 0, "clients refused")
    check(visitors.cut <= 3, f"{visitors.cut} clients were cut by 3 kills")


@test()
def a_hang_refuses_nobody(unit):
    """clients that come while it hangs are served after the watchdog has replaced it"""
    unit.drop_in(SOON)
    unit.start()
    unit.kill("STOP")
    serves()
    check_equal(unit.show("NRestarts"), "1", "restarts")


@test()
def a_socket_without_listener_is_removed(unit):
    """a stored socket that the next configuration has no listener for is closed and removed"""
    unit.configure(TWO)
    unit.start()
    unit.configure(ECHO)
    unit.restart()
    unit.eventually(lambda: stored(unit) == 1, "one socket is stored")
    check("inherited socket @web (@web): no listener has this address; closed" in unit.log(), "not logged")
    check(is_refused("127.0.0.1:7008"), "a client is not refused")
    serves()


@test()
def a_unix_socket_that_went_with_its_directory_is_made_anew(unit):
    """a unix socket below RuntimeDirectory, which a restart removes, is bound again"""
    unit.configure("[listen web]\naddress = /run/reactord/web.sock\nservice = echo\n")
    unit.start()
    unit.restart()
    check("inherited socket /run/reactord/web.sock (/run/reactord/web.sock): its file is gone; closed"
          in unit.log(), "not logged")
    serves(str(unit.machine.path("/run/reactord/web.sock")))
    unit.eventually(lambda: stored(unit) == 1, "one socket is stored")


@test()
def a_failed_start_leaves_the_sockets(unit):
    """clients wait while a restart fails, until a start succeeds"""
    unit.drop_in(SOON)
    unit.start()
    unit.configure(ECHO + "[listen other]\naddress = 127.0.0.1:7100\nservice = echo\n")
    with net.listen("127.0.0.1:7100"):
        unit.systemctl("restart", unit.name, may_fail=True)
        client = net.connect(ADDRESS)
        unit.eventually(lambda: unit.log().count("cannot listen: Address already in use") > 1, "it is retried")
    with client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


# Socket activation


@test()
def the_socket_unit_is_valid(unit):
    """systemd-analyze finds nothing to say about the socket unit"""
    said, _ = unit.machine.run("systemd-analyze", "verify", "--man=no", "reactord.socket")
    check_equal(said, "", "systemd-analyze")


@test()
def the_first_client_starts_it(unit):
    """with reactord.socket the first client starts reactord and is served"""
    unit.systemctl("start", "reactord.socket")
    check_equal(unit.show("ActiveState"), "inactive", "state")
    serves()
    check_equal(unit.show("ActiveState"), "active", "state")
    check("listen address 127.0.0.1:7007: inherited as reactord.socket" in unit.log(), "not logged")
    check_equal(stored(unit), 0, "stored descriptors")


@test()
def with_the_socket_unit_a_stop_refuses_nobody(unit):
    """with reactord.socket a client that comes after a stop starts it again"""
    unit.systemctl("start", "reactord.socket")
    for _ in range(3):
        serves()
        unit.stop()
    check_equal(unit.log().count("main: ready"), 3, "starts")


@test()
def sockets_of_both_kinds(unit):
    """sockets of the socket unit and sockets that are stored survive a restart side by side"""
    unit.drop_in("[Socket]\nListenStream=\nListenStream=127.0.0.1:7008\nListenStream=/run/web.sock\n",
                 "reactord.socket")
    unit.configure(TWO + "[listen file]\naddress = /run/web.sock\nservice = echo\n")
    unit.systemctl("start", "reactord.socket")
    unit.start()
    for _ in range(2):
        for address in ("127.0.0.1:7007", "127.0.0.1:7008", "@web", str(unit.machine.path("/run/web.sock"))):
            serves(address)
        unit.eventually(lambda: stored(unit) == 2, "two sockets are stored")
        unit.restart()
    check_equal(unit.log().count("no listener has this address"), 0, "sockets closed")


@test()
def both_families_of_a_port(unit):
    """`*:80` is served with a socket of the unit for each family, which an unprivileged user cannot bind"""
    unit.drop_in("[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\n")
    unit.drop_in("[Socket]\nListenStream=\nListenStream=0.0.0.0:80\nListenStream=[::]:80\n", "reactord.socket")
    unit.configure("[listen web]\naddress = *:80\nservice = echo\n")
    unit.systemctl("start", "reactord.socket")
    for address in ("127.0.0.1:80", "[::1]:80"):
        serves(address)
    check_equal(unit.log().count(": inherited as reactord.socket"), 2, "inherited")


@test()
def the_unit_has_one_socket_for_several(unit):
    """with reuseport = 3 and one socket of the socket unit, which is root's, that one serves alone"""
    unit.configure(ECHO + "reuseport = 3\n")
    unit.systemctl("start", "reactord.socket")
    unit.start()
    for _ in range(10):
        serves()
    check("listen echo: 127.0.0.1:7007: sockets: 1, reuseport = 3: cannot bind more: "
          "Address already in use" in unit.log(), "not logged")


@test()
def an_unwanted_socket_of_the_unit_is_closed(unit):
    """a socket of the socket unit that no listener wants is closed with a log line"""
    unit.drop_in("[Socket]\nListenStream=127.0.0.1:7008\nFileDescriptorName=web\n", "reactord.socket")
    unit.systemctl("start", "reactord.socket")
    unit.start()
    serves()
    check("inherited socket 127.0.0.1:7008 (web): no listener has this address; closed" in unit.log(),
          "not logged")


@test()
def a_socket_of_both_families_is_refused(unit):
    """a wildcard socket that takes IPv4, too, is closed with the setting that helps"""
    unit.drop_in("[Socket]\nListenStream=\nListenStream=7008\nBindIPv6Only=both\n", "reactord.socket")
    unit.systemctl("start", "reactord.socket")
    unit.start()
    check("inherited socket [::]:7008 (reactord.socket): takes IPv4 clients too; set "
          "BindIPv6Only=ipv6-only in its .socket unit; closed" in unit.log(), "not logged")
