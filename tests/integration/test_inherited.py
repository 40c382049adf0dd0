"""inherited: listen sockets that the service manager hands over, and those that it keeps for the next process."""

import contextlib
import os
import signal
import socket
import subprocess

from support import net
from support.case import check, check_equal, test

ECHO = "[listen {name}]\naddress = {address}\nservice = echo\n"


def echo(*addresses, name="echo"):
    return ECHO.format(name=name, address=", ".join(addresses))


def serves(address):
    with net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


def is_refused(address):
    try:
        net.connect(address).close()
    except ConnectionRefusedError:
        return True
    return False


def storing(t, config, inherited=()):
    """A daemon whose service manager stores descriptors."""
    return t.daemon(config, environment={"FDSTORE": "16"}, inherited=inherited)


@test(each={"kind": ["TCP", "IPv6", "unix", "abstract"]})
def queued_clients(t, kind):
    """a client that waits in the queue of an inherited {kind} socket before the start is served"""
    address = {"TCP": t.address(), "IPv6": f"[::1]:{t.port()}", "unix": t.path("web.sock"),
               "abstract": f"@{t.path('web')}"}[kind]
    with net.listen(address) as listener, net.connect(address) as early:
        with t.daemon(echo(address), inherited=[("web", listener.fileno())]) as daemon:
            check_equal(net.exchange(early, b"early"), b"early", "the echo")
            serves(address)
            check(f"listen address {address}: inherited as web" in daemon.log(), daemon.log())


@test()
def several(t):
    """inherited and own sockets serve side by side, found by their address in any order"""
    addresses = [t.address() for _ in range(4)]
    with net.listen(addresses[2]) as one, net.listen(addresses[0]) as other:
        with t.daemon(echo(*addresses), inherited=[("b", one.fileno()), ("a", other.fileno())]) as daemon:
            for address in addresses:
                serves(address)
            check_equal(daemon.log().count(": inherited as "), 2, "inherited")


@test()
def unwanted(t):
    """an inherited socket that no listener wants is closed, and the log says so"""
    address, other = t.address(), t.address()
    listener = net.listen(other)
    with t.daemon(echo(address), inherited=[("web", listener.fileno())]) as daemon:
        listener.close()
        check(is_refused(other), "it is open")
        check(f"inherited socket {other} (web): no listener has this address; closed" in daemon.log(),
              daemon.log())
        serves(address)


@test(each={"n_open": [0, 1]})
def missing(t, n_open):
    """where LISTEN_FDS counts three descriptors, of which {n_open} is open, none is inherited, and it serves and stops"""
    address = t.address()
    with net.listen(t.address()) as listener:
        inherited = [("a", listener.fileno() if n_open else -1), ("b", -1), ("c", -1)]
        with t.daemon(echo(address), inherited=inherited) as daemon:
            check("cannot read LISTEN_FDS and LISTEN_FDNAMES: Bad file descriptor; no descriptor is inherited" in daemon.log(),
                  daemon.log())
            check("inherited descriptor" not in daemon.log(), "it has taken its own for inherited ones")
            serves(address)


@test()
def unusable(t):
    """descriptors that are no listening stream sockets are closed, and the log says so"""
    address = t.address()
    with socket.socket() as idle, socket.socket(type=socket.SOCK_DGRAM) as datagram, \
            open("/dev/null", encoding="ascii") as file:
        inherited = [("idle", idle.fileno()), ("datagram", datagram.fileno()), ("file", file.fileno())]
        with t.daemon(echo(address), inherited=inherited) as daemon:
            serves(address)
            for number, (name, _) in enumerate(inherited, 3):
                check(f"inherited descriptor {number} ({name}): is not a listening stream socket; closed"
                      in daemon.log(), daemon.log())


@test()
def of_another_process(t):
    """descriptors for another process are none of its business"""
    address = t.address()
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "1"}
    with t.daemon(echo(address), environment=environment) as daemon:
        serves(address)
        check("inherited" not in daemon.log(), daemon.log())


@test()
def all_of_an_address(t):
    """of an address with several inherited sockets all accept, also beyond reuseport"""
    address = t.address()
    with contextlib.ExitStack() as stack:
        listeners = []
        for _ in range(3):
            listener = stack.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(net.parse(address)[1])
            listener.listen()
            listeners.append(("web", listener.fileno()))
        with t.daemon(echo(address), inherited=listeners) as daemon:
            for _ in range(30):
                serves(address)
            check_equal(daemon.log().count(f"listen address {address}: inherited as web"), 3, "inherited")


@test()
def the_file_stays(t):
    """the file of an inherited unix socket stays when it stops"""
    address = t.path("web.sock")
    with net.listen(address) as listener:
        with t.daemon(echo(address), inherited=[("web", listener.fileno())]):
            serves(address)
        check(os.path.exists(address), "the file is gone")


@test()
def the_mode_of_its_file(t):
    """unix_mode is set on an inherited socket's file, too"""
    address = t.path("web.sock")
    with net.listen(address) as listener:
        with t.daemon(echo(address) + "unix_mode = 0640\n", inherited=[("web", listener.fileno())]):
            check_equal(os.stat(address).st_mode & 0o777, 0o640, "mode")


@test(needs=("systemd-socket-activate",))
def activated(t):
    """systemd-socket-activate starts it for the first client, which is served"""
    addresses = [t.address(), f"[::1]:{t.port()}", t.path("web.sock")]
    config = t.write("activated.ini", echo(*addresses))
    listen = [f"--listen={address}" for address in addresses]
    with open(t.path("activate.log"), "wb") as log:
        process = subprocess.Popen(["systemd-socket-activate", *listen, "--fdname=a:b:c", t.options.reactord,
                                    "-c", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        t.eventually(lambda: os.path.exists(addresses[2]), "it listens")
        for address in addresses:
            serves(address)
        process.send_signal(signal.SIGTERM)
        check_equal(process.wait(10 * t.scale), 0, "exit code")
    finally:
        process.kill()
        process.wait()
    with open(t.path("activate.log"), encoding="utf-8", errors="replace") as log:
        said = log.read()
    for address, name in zip(addresses, "abc"):
        check(f"listen address {address}: inherited as {name}" in said, said)


# The store


@test()
def a_kill_refuses_nobody(t):
    """after kill -9 clients wait for the next process, which gets the stored sockets"""
    addresses = [t.address(), f"[::1]:{t.port()}", t.path("web.sock"), f"@{t.path('web')}"]
    inherited, waiting = [], []
    for _ in range(3):
        daemon = storing(t, echo(*addresses), inherited)
        daemon.start()
        check_equal(len({name for name, _ in daemon.stored}), 4, "names of stored sockets")
        check_equal(daemon.log().count(": inherited as "), len(inherited), "inherited")
        for client in waiting:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            client.close()
        daemon.kill()
        inherited = daemon.stored
        waiting = [net.connect(address) for address in addresses]
    for client in waiting:
        client.close()


@test()
def a_stop_refuses_nobody(t):
    """after SIGTERM clients wait for the next process, also at a unix socket"""
    addresses = [t.address(), t.path("web.sock")]
    with storing(t, echo(*addresses)) as daemon:
        serves(addresses[0])
    waiting = [net.connect(address) for address in addresses]
    with storing(t, echo(*addresses), daemon.stored):
        for client in waiting:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            client.close()


@test()
def a_listener_fewer(t):
    """a stored socket without listener is closed and removed from the store, the others stay"""
    address, other = t.address(), t.address()
    with storing(t, echo(address, other)) as daemon:
        names = sorted({name for name, _ in daemon.stored})
        check_equal(names, sorted(each.replace(":", "%3A") for each in (address, other)), "names")
    with storing(t, echo(address), daemon.stored) as second:
        check("FDSTOREREMOVE=1" in second.notified, second.notified)
        check(f"FDNAME={other.replace(':', '%3A')}" in second.notified, second.notified)
        check_equal({name for name, _ in second.stored}, {address.replace(":", "%3A")}, "names")


@test()
def without_a_store(t):
    """where the service manager stores nothing, nothing is sent to it, and a unix socket's file goes"""
    addresses = [t.address(), t.path("web.sock")]
    with t.daemon(echo(*addresses)) as daemon:
        check_equal(daemon.stored, [], "stored sockets")
    check(not os.path.exists(addresses[1]), "the file is still there")
    check(is_refused(addresses[0]), "it is open")


@test()
def sockets_of_others_are_not_stored(t):
    """an inherited socket with a name of its own stays its owner's, and is not stored"""
    address, own = t.address(), t.address()
    with net.listen(address) as listener:
        with storing(t, echo(address, own), [("reactord.socket", listener.fileno())]) as daemon:
            check_equal({name for name, _ in daemon.stored}, {own.replace(":", "%3A")}, "names")
