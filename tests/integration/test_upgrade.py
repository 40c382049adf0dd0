"""upgrade: SIGUSR2 replaces the program, and no client notices; a program that fails changes nothing."""

import contextlib
import os
import re
import signal
import socket
import sys
import time

from support import descriptors, net, tls
from support.case import Skipped, check, check_equal, is_root, test
from support.chain import Chain, echo, exchange_once, has_ended
from support.net import Task
from support.own_network import own_names
from test_proxy import proxy
from test_reload_listeners import inodes, range_host

MIB = 1024 * 1024
CAP_NET_ADMIN, CAP_NET_RAW = 12, 13  # linux/capability.h


class Knocking:
    """Clients that come all the time, in a thread; each must be served."""

    def __init__(self, address):
        self.address, self.count, self.ending = address, 0, False

    def __enter__(self):
        self.task = Task(self.knock)
        return self

    def knock(self):
        while not self.ending:
            exchange_once(self.address)
            self.count += 1

    def __exit__(self, *_):
        self.ending = True
        self.task.result()


@test(timeout=60)
def three_upgrades(t):
    """a stream and idle sessions outlive three upgrades, no client is refused, and no counter falls"""
    front, back, knock = t.address(), t.address(), t.address()
    config = "drain_timeout = 0\n" + proxy(front, back) + echo(knock)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config))
        idle = [stack.enter_context(net.proxied(front, listener)) for _ in range(20)]
        client, server = stack.enter_context(net.proxied(front, listener))
        received = Task(net.receive_sha256, server, 256 * MIB)
        sent = Task(net.send_pattern, client, 256 * MIB)
        seen = 0
        with Knocking(knock) as knocking:
            for number in range(3):
                before = knocking.count
                t.eventually(lambda: knocking.count > before + 20, "clients are served")
                counted = chain.statistics("listen echo")
                chain.upgrade()
                check_equal(chain.pid_file(), chain.pid, "the pid file")
                now = chain.statistics("listen echo")["sessions_total"]
                check(now >= counted["sessions_total"] >= seen, "a counter has fallen")
                seen = now
                chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 21, "21 are open")
                front_now = chain.statistics("listen front")
                check_equal(front_now["sessions_total"], 21, "sessions of front")
                check_equal(front_now["sessions"], 21, f"open sessions after {number + 1}")
        sent.result()
        check_equal(received.result(), net.pattern_sha256(256 * MIB), "the bytes of the stream")
        for one, other in idle:
            one.sendall(b"still")
            check_equal(net.read_exactly(other, 5), b"still", "what the server got")
            one.close()
            other.close()
        client.close()
        server.close()
        for pid in chain.old:
            chain.wait_gone(pid)
        chain.stop()


@test(timeout=60)
def unix_socket(t):
    """a unix socket stays at its path through upgrades, and is removed with the last process"""
    path = t.path("echo.sock")
    with Chain(t, echo(path)) as chain:
        with Knocking(path):
            for _ in range(3):
                chain.upgrade()
                time.sleep(0.1)
        for pid in chain.old:
            chain.wait_gone(pid)
        exchange_once(path)
        chain.stop()
        check(not os.path.exists(path), "the socket file is still there")
        check(not os.path.exists(chain.pid_path), "the pid file is still there")


@test(timeout=60)
def several_sockets(t):
    """clients in the queues of several sockets of an address are served by the new process"""
    address = t.address()
    config = f"[boss]\nthreads = 2\n{echo(address)}reuseport = 4\n"
    with Chain(t, config) as chain:
        with Knocking(address) as knocking:
            for _ in range(5):
                chain.upgrade()
            check(knocking.count > 0, "nobody was served")
        inherited = chain.lines("inherited", chain.pid)
        check_equal(len(inherited), 4, "inherited sockets")
        chain.stop()


@test(timeout=60)
def range_of_ports(t):
    """an upgrade hands over the sockets of a range of ports, and clients of each are served"""
    host = range_host(t)
    with Chain(t, f"[boss]\nthreads = 1\n[listen range]\naddress = {host}:4100-4139\nservice = echo\n") as chain:
        before = inodes(host)
        chain.upgrade()
        check_equal(inodes(host), before, "the sockets")
        for port in before:
            exchange_once(f"{host}:{port}")
        check_equal(len(chain.lines("inherited", chain.pid)), 40, "inherited sockets")
        chain.stop()


@test(timeout=60)
def names_that_are_gone(t):
    """a process that replaces another has the addresses of its names, also when they cannot be looked up now"""
    front, back = t.address(), t.address()
    name = back.replace("127.0.0.1", "back.test")
    own_names(t, hosts="127.0.0.1 back.test\n")
    with net.listen(back) as listener, Chain(t, proxy(front, name)) as chain:
        t.write("hosts", "")
        chain.upgrade()
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"known")
            check_equal(net.read_exactly(server, 5), b"known", "what the server got")
        chain.stop()


def settings(listener, path):
    """What a process may have changed of the sockets that it shares with another."""
    info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
    return {"SO_REUSEPORT": listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT),
            "TCP_NODELAY": listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
            "backlog": int.from_bytes(info[28:], sys.byteorder),
            "mode": os.stat(path).st_mode & 0o777}


@test(timeout=60)
def settings_of_shared_sockets(t):
    """sockets get the options of the new configuration when the new process has taken over, not before"""
    address, path, back = t.address(), t.path("echo.sock"), t.address()
    config = f"[boss]\nthreads = 1\n[listen unix]\naddress = {path}\nservice = echo\n{echo(address)}"
    changed = config.replace(path, f"{path}\nunix_mode = 0606") + (
        "reuseport = 3\nbacklog = 77\nnodelay = no\n")
    waits = proxy(t.address(), back, "", "check = tcp\ncheck_expect = never\ncheck_timeout = 60s\n"
                  "initial_state = checked\n")
    with net.listen(address) as listener, net.listen(back), \
            Chain(t, config, inherited=[("web", listener.fileno())]) as chain:
        before = settings(listener, path)
        chain.daemon.config_path.write_text(chain.daemon.config.replace(
            config, changed + "[listen no]\naddress = 192.0.2.1:7\nservice = echo\n"))
        chain.fail("192.0.2.1:7")
        check_equal(settings(listener, path), before, "settings after a failure")
        chain.daemon.config_path.write_text(chain.daemon.config.replace(config, changed + waits))
        new = chain.begin()
        chain.wait_line(f"listen echo: echo on {address}", new)
        for _ in range(20):
            exchange_once(address)
        os.kill(new, signal.SIGKILL)
        chain.wait_line("upgrade: failed: killed by signal 9", chain.pid)
        check_equal(settings(listener, path), before, "settings after a kill")
        chain.daemon.config_path.write_text(chain.daemon.config.replace(config, changed))
        with Knocking(address), Knocking(path):
            chain.upgrade()
            after = {"SO_REUSEPORT": 1, "TCP_NODELAY": 0, "backlog": 77, "mode": 0o606}
            chain.eventually(lambda: settings(listener, path) == after, "the new settings")
            chain.upgrade()
        check_equal(len(chain.lines(f"listen address {address}: inherited", chain.pid)), 3, "sockets")
        chain.stop()


@test(timeout=60)
def other_configuration(t):
    """the new process has the configuration of now: other listeners, another pid file"""
    first, second, path = t.address(), t.address(), t.path("other.pid")
    with Chain(t, echo(first)) as chain:
        chain.daemon.config_path.write_text(
            f"[reactord]\npid_file = {path}\n{echo(second)}", encoding="utf-8")
        before = chain.pid_path
        chain.upgrade()
        exchange_once(second)
        t.eventually(lambda: not net.listening(int(first.rpartition(":")[2])), "the first is closed")
        check(not os.path.exists(before), "the old pid file is still there")
        chain.pid_path = path
        check_equal(chain.pid_file(), chain.pid, "the pid file")
        chain.stop()


@test(each={"kind": ["TCP", "unix"]}, timeout=60)
def removed_address(t, kind):
    """a {kind} address that the configuration no longer has is given up, and not before it took over"""
    kept, gone = t.address(), t.address() if kind == "TCP" else t.path("gone.sock")
    with Chain(t, f"[listen echo]\naddress = {kept}, {gone}\nservice = echo\n",
               environment={"FDSTORE": "16"}) as chain:
        def stored():
            return {name for name, _ in chain.daemon.stored}
        chain.eventually(lambda: len(stored()) == 2, "both are stored")
        chain.daemon.config_path.write_text(chain.daemon.config.replace(f", {gone}", ""))
        chain.becomes_reactord("sleep 0.5")
        new = chain.begin()
        os.kill(chain.pid, signal.SIGSTOP)
        chain.wait_line(" ready$", new)
        os.kill(new, signal.SIGKILL)
        t.eventually(lambda: not os.path.exists(f"/proc/{new}"), "the new process is gone")
        time.sleep(0.2)  # its parent, which waited for it, tells how it ended
        os.kill(chain.pid, signal.SIGCONT)
        chain.wait_line("upgrade: failed: killed by signal 9", chain.pid)
        check_equal(len(stored()), 2, "stored sockets")
        exchange_once(gone)
        chain.upgrade()
        chain.eventually(lambda: set(stored()) == {kept.replace(":", "%3A")}, "the other is stored")
        if kind == "unix":
            chain.eventually(lambda: not os.path.exists(gone), "the socket file is gone")
        exchange_once(kept)
        chain.stop()


@test(timeout=60)
def service_manager(t):
    """the service manager hears of the new main process, and then from that one only"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        old = chain.upgrade()
        chain.daemon.wait_notified(f"MAINPID={chain.pid}", 5)
        chain.eventually(lambda: chain.daemon.notified.count("READY=1") == 2, "it is ready")
        chain.wait_gone(old)
        check(not chain.daemon.has_notified("STOPPING=1"), "the old one has told STOPPING=1")
        chain.stop()
        check(chain.daemon.has_notified("STOPPING=1"), "the new one has not told STOPPING=1")


@test(timeout=60)
def reload_meanwhile(t):
    """a reload is refused while another program starts, and works before and after"""
    first, second = t.address(), t.address()
    with Chain(t, echo(first)) as chain:
        chain.daemon.config_path.write_text(
            chain.daemon.config.replace(first, second), encoding="utf-8")
        os.kill(chain.pid, signal.SIGHUP)
        chain.eventually(lambda: net.listening(int(second.rpartition(":")[2])), "the new listener")
        chain.becomes_reactord("sleep 1")
        new = chain.begin()
        os.kill(chain.pid, signal.SIGHUP)
        chain.wait_line("reload: refused: an upgrade is under way", chain.pid)
        chain.wait_line("upgrade: took over", new)
        chain.old.append(chain.pid)
        chain.pid = new
        exchange_once(second)
        chain.daemon.config_path.write_text(chain.daemon.config, encoding="utf-8")
        os.kill(chain.pid, signal.SIGHUP)
        chain.eventually(lambda: net.listening(int(first.rpartition(":")[2])), "the first listener")
        exchange_once(first)
        chain.upgrade()
        exchange_once(first)
        chain.stop()


@test(timeout=60)
def unconfirmed_reload(t):
    """an upgrade is refused while a reload is not confirmed"""
    first, second = t.address(), t.address()
    with Chain(t, "reload_confirm = 30s\n" + echo(first)) as chain:
        chain.daemon.config_path.write_text(
            chain.daemon.config.replace(first, second), encoding="utf-8")
        os.kill(chain.pid, signal.SIGHUP)
        chain.eventually(lambda: net.listening(int(second.rpartition(":")[2])), "the new listener")
        os.kill(chain.pid, signal.SIGUSR2)
        chain.wait_line("upgrade: refused: a reload is under way, or not confirmed yet", chain.pid)
        check_equal(chain.started(), [], "processes started")
        chain.stop()


@test(timeout=60)
def other_user(t):
    """a process that has given up root is replaced, and the next may still bind a low port"""
    if not is_root():
        raise Skipped("only root can change to another user")
    address = t.address()
    low = "127.0.0.1:1013"
    os.chmod(t.dir, 0o755)
    with Chain(t, f"user = nobody\n{echo(address)}") as chain:
        os.chmod(chain.daemon.config_path, 0o644)
        chain.upgrade()
        exchange_once(address)
        chain.daemon.config_path.write_text(
            chain.daemon.config + f"[listen low]\naddress = {low}\nservice = echo\n")
        chain.upgrade()
        exchange_once(low)
        with open(f"/proc/{chain.pid}/status", encoding="ascii") as f:
            check("\nCapPrm:\t0000000000000400\n" in f.read(), "other capabilities")
        chain.stop()


def capabilities(pid):
    """Those of socket options that a process has: a set of numbers for each of its sets, such as CapEff."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        found = re.findall(r"^(Cap(?:Inh|Prm|Eff|Amb)):\s*(\w+)", f.read(), re.M)
    return {name: {bit for bit in (CAP_NET_ADMIN, CAP_NET_RAW) if int(bits, 16) & 1 << bit} for name, bits in found}


@test(timeout=60)
def capabilities_of_socket_options(t):
    """with user = nobody each upgrade keeps the capabilities that its configuration needs, and no others"""
    both = {CAP_NET_ADMIN, CAP_NET_RAW}
    if not is_root() or capabilities("self")["CapPrm"] != both:
        raise Skipped("needs root with CAP_NET_ADMIN and CAP_NET_RAW")
    os.chmod(t.dir, 0o755)
    text = f"user = nobody\n{echo(t.address())}"
    with Chain(t, text + "mark = 7\ntransparent = yes\n") as chain:
        os.chmod(chain.daemon.config_path, 0o644)
        for wanted, options in ((both, "mark = 7\ntransparent = yes\n"), ({CAP_NET_RAW}, "transparent = yes\n"),
                                (set(), "")):
            config = chain.daemon.config.replace("mark = 7\ntransparent = yes\n", options)
            chain.daemon.config_path.write_text(config, encoding="utf-8")
            chain.upgrade()
            found = capabilities(chain.pid)
            check_equal(found["CapEff"], wanted, "effective")
            check_equal(found["CapPrm"], wanted, "permitted")
            check_equal(found["CapAmb"], set(), "ambient")
            check(found["CapInh"] <= wanted, f"inheritable: {found['CapInh']}")
        chain.stop()


def resume(front, context, session, version):
    """A client's connection with that session; whether it was resumed, and the session that follows."""
    with context.wrap_socket(net.connect(front), server_hostname="a.example", session=session) as client:
        client.sendall(b"hello")
        check_equal(client.recv(5), b"hello", "the echo")  # behind the tickets
        check_equal(client.version(), f"TLSv{version}", "the version")
        return client.session_reused, client.session


@test(each={"version": ["1.2", "1.3"]})
def ticket_keys(t, version):
    """a client of TLS {version} resumes its session after one and two upgrades, and no memory file with the keys is left"""
    front = t.address()
    ca = tls.Authority(t)
    certificate = ca.issue("a.example")
    text = (f"[tls front]\ncertificate = {certificate}\nkey = {certificate}\n"
            f"[listen front]\naddress = {front}\ntls = front\nservice = echo\n")
    context = tls.client_context(ca.path, version)
    with Chain(t, text) as chain:
        _, session = resume(front, context, None, version)
        for turn in range(2):
            chain.upgrade()
            reused, session = resume(front, context, session, version)
            check(reused, f"a full handshake after upgrade {turn + 1}")
            pids = [chain.pid] + [pid for pid in chain.old if not has_ended(pid)]
            t.eventually(lambda: not any(memory_files(pid) for pid in pids), "no memory file is left")
        chain.stop()


def memory_files(pid):
    """Those that the process has open."""
    return [link for link in descriptors.of_process(pid).values() if "memfd" in link]
