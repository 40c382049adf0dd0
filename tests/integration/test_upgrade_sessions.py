"""upgrade_sessions: after an upgrade the new process serves the old one's sessions on, and nobody notices."""

import contextlib
import itertools
import os
import re
import signal
import socket

from support import net
from support.admin import get, post, request, section
from support.case import check, check_equal, test
from support.chain import Chain, echo
from support.daemon import alive
from support.net import Task
from test_proxy import proxy

MIB = 1024 * 1024
TAKES = "upgrade_sessions = yes\ndrain_timeout = 0\n"


def handed_over(chain, pid):
    """What the old process says at the end: (handed over, {reason: stayed})."""
    line = chain.wait_line("sessions handed over", pid)
    stayed = line.partition("they stay: ")[2]
    return (int(re.search(r"process: (\d+)", line)[1]),
            {word: int(n) for word, n in re.findall(r"(\w+) (\d+)", stayed)})


def reads_until_end(sock):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := sock.recv(65536):
            data += chunk
    return data


@test(timeout=60)
def quiet_and_busy_sessions_go_along(t):
    """idle, streaming, half-closed and blocked sessions go on in the new process; the old one ends"""
    front, back, knock = t.address(), t.address(), t.address()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, TAKES + proxy(front, back) + echo(knock)))
        idle = [stack.enter_context(net.proxied(front, listener)) for _ in range(20)]
        echoes = [stack.enter_context(net.connect(knock)) for _ in range(20)]
        client, server = stack.enter_context(net.proxied(front, listener))
        half, half_server = stack.enter_context(net.proxied(front, listener))
        half.sendall(b"request")
        half.shutdown(socket.SHUT_WR)
        check_equal(reads_until_end(half_server), b"request", "before the end of file")
        blocked, blocked_server = stack.enter_context(net.proxied(front, listener))
        blocked_sent = Task(net.send_pattern, blocked, 32 * MIB)
        for sock in echoes:
            net.exchange(sock, b"first")
        received = Task(net.receive_sha256, server, 128 * MIB)
        sent = Task(net.send_pattern, client, 128 * MIB)
        old = chain.upgrade()
        moved, stayed = handed_over(chain, old)
        check_equal((moved, stayed), (43, {}), "what was handed over")
        chain.wait_gone(old)
        check(alive(chain.pid), "the new process has ended")
        sent.result()
        check_equal(received.result(), net.pattern_sha256(128 * MIB), "the bytes of the stream")
        check_equal(net.receive_sha256(blocked_server, 32 * MIB), net.pattern_sha256(32 * MIB), "blocked bytes")
        blocked_sent.result()
        half_server.sendall(b"answer")
        half_server.close()
        check_equal(reads_until_end(half), b"answer", "after the hand-off")
        for one, other in idle:
            one.sendall(b"still")
            check_equal(net.read_exactly(other, 5), b"still", "what the server got")
            other.sendall(b"here")
            check_equal(net.read_exactly(one, 4), b"here", "what the client got")
        for sock in echoes:
            net.exchange(sock, b"second")
        numbers = chain.statistics("listen front")
        check_equal((numbers["sessions_total"], numbers["sessions"]), (23, 22), "sessions of front")
        numbers = chain.statistics("listen echo")
        check_equal((numbers["sessions_total"], numbers["sessions"]), (20, 20), "sessions of echo")
        for one in [*itertools.chain(*idle), *echoes, client, server, blocked, blocked_server]:
            one.close()
        chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 0, "all of front end")
        chain.eventually(lambda: chain.statistics("listen echo")["sessions"] == 0, "all of echo end")
        check_equal(chain.statistics("listen echo")["client_fin"], 20, "ends of echo")
        chain.stop()


def pipes_of(pid):
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            at = os.readlink(f"/proc/{pid}/fd/{name}")
            found |= {at} if at.startswith("pipe:") else set()
    return found


@test(timeout=60)
def filled_pipes_go_along(t):
    """the bytes that a client does not take yet go along in the pipe that they are in, and come first"""
    front, back = t.address(), t.address()
    config = TAKES + proxy(front, back).replace("service = proxy\n", "service = proxy\nsplice = on\n")
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config))
        before = pipes_of(chain.pid)
        client, server = stack.enter_context(net.proxied(front, listener))
        sent = Task(net.send_pattern, server, 32 * MIB)
        chain.eventually(lambda: pipes_of(chain.pid) - before, "a pipe is filled")
        pipes = pipes_of(chain.pid) - before
        old = chain.upgrade()
        check_equal(handed_over(chain, old), (1, {}), "what was handed over")
        chain.wait_gone(old)
        check(pipes & pipes_of(chain.pid), f"the new process has none of {pipes}")
        check_equal(net.receive_sha256(client, 32 * MIB), net.pattern_sha256(32 * MIB), "the bytes")
        sent.result()
        chain.eventually(lambda: not pipes & pipes_of(chain.pid), "the pipe is closed")


@test(timeout=60)
def not_by_default(t):
    """without upgrade_sessions the old process keeps its sessions"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener) as (client, server):
            old = chain.upgrade()
            chain.wait_line("draining", old)
            client.sendall(b"still")
            check_equal(net.read_exactly(server, 5), b"still", "what the server got")
            check(alive(old), "the old process has ended")
            check_equal(chain.lines("handed over", old), [], "lines about sessions")
        chain.wait_gone(old)
        chain.stop()


@test(timeout=60)
def what_stays(t):
    """sessions that the new configuration has no place for stay, and are told by reason"""
    front, back, gone, changed = (t.address() for _ in range(4))
    config = TAKES + proxy(front, back)
    other = f"[listen gone]\naddress = {gone}\nservice = echo\n"
    framed = f"[listen changed]\naddress = {changed}\nservice = echo\n"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config + other + framed))
        socks = [stack.enter_context(net.connect(address)) for address in (gone, changed)]
        for sock in socks:
            net.exchange(sock, b"first")
        client, server = stack.enter_context(net.proxied(front, listener))
        chain.rewrite(config + framed + "pipeline = log\n")
        old = chain.upgrade()
        check_equal(handed_over(chain, old), (1, {"name": 1, "changed": 1}), "what was handed over")
        client.sendall(b"still")
        check_equal(net.read_exactly(server, 5), b"still", "what the server got")


@test(timeout=60)
def a_removed_server(t):
    """a session whose server was removed before the upgrade goes on in the old process"""
    front, back, more, at = t.address(), t.address(), t.address(), t.path("admin.sock")
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(more))
        chain = stack.enter_context(Chain(t, TAKES + section(at) + proxy(front, back)))
        for answer in (request(at, "PUT", "/v1/server", {"server": "back/more", "line": more}),
                       post(at, "/v1/server", {"server": "back/only", "state": "disable"})):
            check_equal(answer.status, 200, f"the status of {answer.body}")
        client, server = stack.enter_context(net.proxied(front, listener))
        check_equal(request(at, "DELETE", "/v1/server", {"server": "back/more"}).status, 200, "the status of a removal")
        old = chain.upgrade()
        check_equal(handed_over(chain, old), (0, {"name": 1}), "what was handed over")
        client.sendall(b"still")
        check_equal(net.read_exactly(server, 5), b"still", "what the server got")


FRAMED = "pipeline = log, frame, idle, executor\nframe_length_width = 2\nidle_all = 1m\n"


@test(timeout=60)
def handlers_go_along(t):
    """a session with handlers goes along, in the middle of a frame, too; the admin is told how many did"""
    address, admin = t.address(), t.path("admin.sock")
    config = f"{TAKES}[admin]\naddress = {admin}\n{echo(address)}{FRAMED}"
    with contextlib.ExitStack() as stack:
        chain = stack.enter_context(Chain(t, config))
        socks = [stack.enter_context(net.connect(address)) for _ in range(8)]
        for number, sock in enumerate(socks):
            net.exchange(sock, b"\0\5first")
            sock.sendall(b"\0\5again"[:number % 8])
        old = chain.upgrade()
        check_equal(handed_over(chain, old), (8, {}), "what was handed over")
        chain.wait_gone(old)
        for number, sock in enumerate(socks):
            sock.sendall(b"\0\5again"[number % 8:])
            check_equal(net.read_exactly(sock, 7), b"\0\5again", "the frame")
        handoff = get(admin, "/v1/status").json["upgrade"]["handoff"]
        check_equal(handoff, {"under_way": False, "moved": 8, "stayed": {}}, "the status")
        check("hand-off       8 sessions moved\n" in t.reactorctl("-s", admin, "status").out, "in reactorctl")
        check(b"\nreactord_handoff_moved_total 8\n" in get(admin, "/metrics").body, "in the metrics")
        check_equal(chain.statistics("frame echo")["cut_off"], 0, "frames that were cut off")
        socks[0].sendall(b"\0\5cut")
        socks[0].close()
        chain.eventually(lambda: chain.statistics("frame echo")["cut_off"] == 1, "the new one cuts off")
        chain.stop()


@test(timeout=60)
def handlers_that_stay(t):
    """faults, mirrors, a busy executor and frames that are cut otherwise now stay, and are told by reason"""
    back, admin = t.address(), t.path("admin.sock")
    ways = {"fault": "fault_delay = 1ms\n", "mirror": "mirror = back\n", "changed": FRAMED,
            "busy": "pipeline = frame, executor\nframe_length_width = 2\nexecutor_delay = 1s\n"}
    places = {way: t.address() for way in ways}

    def config(framed):
        return f"{TAKES}allow_faults = yes\n[admin]\naddress = {admin}\n[upstream back]\nserver.only = {back}\n" + "".join(
            f"[listen {way}]\naddress = {places[way]}\nservice = echo\n{framed if way == 'changed' else options}"
            for way, options in ways.items())

    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config(FRAMED)))
        socks = {way: stack.enter_context(net.connect(place)) for way, place in places.items()}
        mirror = stack.enter_context(net.accept(listener))
        for way, sock in socks.items():
            sock.sendall(b"\0\5first" * (12 if way == "busy" else 1))  # each takes a second
            if way != "busy":
                check_equal(net.read_exactly(sock, 7), b"\0\5first", way)
        check_equal(net.read_exactly(mirror, 7), b"\0\5first", "the copy")
        chain.rewrite(config(FRAMED + "frame_max_length = 1k\n"))
        old = chain.upgrade()
        chain.eventually(lambda: get(admin, "/v1/status").json["upgrade"]["handoff"]["stayed"].get("fault"),
                         "the new process is told while it goes on")
        check_equal(handed_over(chain, old), (0, dict.fromkeys(ways, 1)), "what was handed over")
        chain.eventually(lambda: get(admin, "/v1/status").json["upgrade"]["handoff"]
                         == {"under_way": False, "moved": 0, "stayed": dict.fromkeys(ways, 1)}, "the status")
        os.kill(old, signal.SIGRTMIN)
        chain.wait_line("stats handoff under_way=no moved=0 .*stayed_busy=1 stayed_fault=1", old)


@test(timeout=60)
def other_threads(t):
    """sessions go along from workers that accept to one worker behind a boss, and back to more workers than there were"""
    address, admin = t.address(), t.path("admin.sock")
    front, back = t.address(), t.address()

    def config(boss, workers):
        return f"{TAKES}[admin]\naddress = {admin}\n[boss]\nthreads = {boss}\n[worker]\nthreads = {workers}\n" \
            + echo(address) + proxy(front, back)

    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config(0, 2)))
        echoes = [stack.enter_context(net.connect(address)) for _ in range(8)]
        pairs = [stack.enter_context(net.proxied(front, listener)) for _ in range(8)]
        for boss, workers in ((1, 1), (0, 3)):
            for sock in echoes:
                net.exchange(sock, b"before")
            chain.rewrite(config(boss, workers))
            old = chain.upgrade()
            check_equal(handed_over(chain, old), (16, {}), f"handed over to {workers} workers")
            chain.wait_gone(old)
            loops = {session["loop"] for session in get(admin, "/v1/sessions").json["sessions"]}
            check_equal(len(loops), workers, f"workers with sessions: {loops}")
            for sock in echoes:
                net.exchange(sock, b"after")
            check_equal(sum(is_served(pair) for pair in pairs), 8, "proxied sessions that are served")


def sessions_at_a_slow_pace(t, stack, n):
    front, back = t.address(), t.address()
    chain = stack.enter_context(Chain(t, TAKES + "handoff_rate = 40\n[worker]\nthreads = 2\n" + proxy(front, back)))
    listener = stack.enter_context(net.listen(back))
    return chain, [stack.enter_context(net.proxied(front, listener)) for _ in range(n)]


def is_served(pair):
    """Do bytes pass? Else both ends must have ended: it is not stuck."""
    client, server = pair
    try:
        client.sendall(b"again")
        return net.read_exactly(server, 5) == b"again"
    except (ConnectionResetError, BrokenPipeError, EOFError):
        check_equal(reads_until_end(client), b"", "what the client got")
        return False


def in_mid_hand_off(t, stack):
    """An upgrade with 60 sessions, of which the new process has some: the chain, the pairs, the old process."""
    chain, pairs = sessions_at_a_slow_pace(t, stack, 60)
    old = chain.upgrade()
    chain.eventually(lambda: len(descriptors_of(chain.pid)) > 10, "some are handed over")
    return chain, pairs, old


@test(timeout=60)
def the_new_process_is_killed(t):
    """a new process that is killed loses the sessions that it has; the old one serves the others on"""
    with contextlib.ExitStack() as stack:
        chain, pairs, old = in_mid_hand_off(t, stack)
        os.kill(chain.pid, signal.SIGKILL)
        moved, _ = handed_over(chain, old)
        check(0 < moved < 60, f"{moved} were handed over")
        check_equal(sum(is_served(pair) for pair in pairs), 60 - moved, "served by the old process")


@test(timeout=60)
def the_old_process_is_killed(t):
    """an old process that is killed loses the sessions that it has; the new one serves the others"""
    with contextlib.ExitStack() as stack:
        chain, pairs, old = in_mid_hand_off(t, stack)
        os.kill(old, signal.SIGKILL)
        chain.wait_line("ended before it had drained", chain.pid)
        served = sum(is_served(pair) for pair in pairs)
        check(0 < served < 60, f"{served} are served")
        chain.eventually(lambda: chain.statistics("listen front")["sessions"] == served, "the open ones")
        check_equal(chain.statistics("listen front")["error"], 60 - served, "those that were lost")


def descriptors_of(pid):
    """The sockets of a process that are TCP connections."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                found.append(name)
    return found
