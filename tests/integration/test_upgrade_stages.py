"""upgrade_stages: whichever process dies at whichever stage of a hand-off, or answers nonsense, each session is served
by one process, or by none if that one died."""

import array
import contextlib
import os
import socket

from support import net
from support.admin import get
from support.case import check, check_equal, test
from support.chain import Chain
from test_proxy import proxy
from test_upgrade_records import ECHO, HEAD, INLINE, NAME, OVER, REFUSED, SESSION, TAKEN, WANT, Old, connection, record
from test_upgrade_sessions import TAKES, handed_over, is_served

SESSIONS = 4

# A new process as far as its starter sees; the socket for sessions goes to the test.
PLAYED = """
import os, socket
old = socket.socket(fileno=3 + os.environ["LISTEN_FDNAMES"].split(":").index("reactord-upgrade"))
old.setblocking(True)

def wait(word):
    while True:
        text, fds, _, _ = socket.recv_fds(old, 4096, 1)
        if text.startswith(word):
            return fds
        for fd in fds:
            os.close(fd)

old.send(b"ready")
wait(b"go")
old.send(b"taken")
wait(b"main")
test = socket.socket(socket.AF_UNIX)
test.connect({path!r})
sessions, = wait(b"sessions")
socket.send_fds(test, [b"x"], [sessions])
os.close(sessions)
test.recv(1)
"""


class New:
    """A new process, played by the test, and reactord as the old one, with sessions between clients and servers."""

    def __init__(self, t, stack):
        front, back, path = t.address(), t.address(), t.path("test.sock")
        self.chain = stack.enter_context(Chain(t, TAKES + proxy(front, back)))
        listener = stack.enter_context(net.listen(back))
        self.pairs = [stack.enter_context(net.proxied(front, listener)) for _ in range(SESSIONS)]
        self.chain.becomes(f"exec python3 {t.write('played.py', PLAYED.format(path=path))}\n")
        with stack.enter_context(net.listen(path)) as waits:
            self.chain.begin()
            self.helper = stack.enter_context(net.accept(waits))
        _, fds, _, _ = socket.recv_fds(self.helper, 1, 1)
        self.sessions = stack.enter_context(socket.socket(fileno=fds[0]))
        self.sessions.settimeout(net.LIMIT_S)

    def die(self):
        self.sessions.close()
        self.helper.close()

    def say(self, kind, number=0, why=0, fds=()):
        with_fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sessions.sendmsg([HEAD.pack(kind, why, number)], with_fds)

    def read(self):
        """The numbers of all sessions; our descriptors of them are closed."""
        numbers = []
        while len(numbers) < SESSIONS:
            data, fds, _, _ = socket.recv_fds(self.sessions, HEAD.size + INLINE, 8)
            for fd in fds:
                os.close(fd)
            if HEAD.unpack_from(data)[0] == SESSION:
                check_equal(len(fds), 2, "descriptors of a session")
                numbers.append(HEAD.unpack_from(data)[2])
        return numbers

    def want(self):
        self.say(WANT, 1000)
        return self.read()


def dies_unasked(_new):
    return 0


def dies_before_it_reads(new):
    new.say(WANT, 1000)
    return 0


def dies_before_it_answers(new):
    new.want()
    return 0


def dies_between_answers(new):
    for number in new.want()[:2]:
        new.say(TAKEN, number)
    return 2


def dies_after_all_answers(new):
    for number in new.want():
        new.say(TAKEN, number)
    return SESSIONS


NEW_DIES = {"before it asks": dies_unasked, "before it reads": dies_before_it_reads,
            "before it answers": dies_before_it_answers, "between answers": dies_between_answers,
            "after its last answer": dies_after_all_answers}


@test(each={"stage": list(NEW_DIES)}, timeout=60)
def the_new_process_dies(t, stage):
    """when the new process dies {stage}, the old one serves all sessions that it had not taken, and no other"""
    with contextlib.ExitStack() as stack:
        new = New(t, stack)
        taken = NEW_DIES[stage](new)
        new.die()
        if stage != "before it asks":
            moved, _ = handed_over(new.chain, new.chain.pid)
            check_equal(moved, taken, "sessions handed over")
        check_equal(sum(is_served(pair) for pair in new.pairs), SESSIONS - taken, "served by the old process")


@test(timeout=60)
def answers_without_sense(t):
    """answers that are short, unknown, for no session, given twice or with a descriptor change nothing"""
    with contextlib.ExitStack() as stack:
        new = New(t, stack)
        numbers = new.want()
        new.sessions.send(b"short")
        new.say(99, numbers[0])
        new.say(TAKEN, numbers[0], fds=[new.sessions.fileno()])
        for number in (numbers[0] + 64, numbers[0] ^ (1 << 63), 0):
            new.say(TAKEN, number)
        new.say(TAKEN, numbers[0])
        new.say(TAKEN, numbers[0])
        new.say(REFUSED, numbers[0], NAME)
        new.say(REFUSED, numbers[1], 0)
        new.say(REFUSED, numbers[2], 1 << 31)
        new.say(REFUSED, numbers[3], NAME)
        check_equal(handed_over(new.chain, new.chain.pid), (1, {"record": 2, "name": 1}), "what was handed over")
        check_equal(sum(is_served(pair) for pair in new.pairs), SESSIONS - 1, "served by the old process")


OLD_DIES = {"before it gives any": 0, "when some were taken": 2, "after it said that all were given": 2}


@test(each={"stage": list(OLD_DIES)}, timeout=60)
def the_old_process_dies(t, stage):
    """when the old process dies {stage}, the new one serves what it was sent, and can be replaced in its turn"""
    admin = t.path("admin.sock")
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Old(t, f"[admin]\naddress = {admin}\n" + ECHO.format(t.address())))
        old.wanted()
        clients = []
        for _ in range(OLD_DIES[stage]):
            client, ours = stack.enter_context(connection(t))
            check_equal(old.give(record(), [ours.fileno()]), (TAKEN, 0), "the answer")
            ours.close()
            clients.append(client)
        if stage.startswith("after"):
            old.sessions.send(HEAD.pack(OVER, 0, 0) + b"figures of another version")
        old.sessions.close()
        t.eventually(lambda: get(admin, "/v1/status").json["upgrade"]["handoff"]
                     == {"under_way": False, "moved": len(clients), "stayed": {}}, "the hand-off is over")
        for client in clients:
            net.exchange(client, b"hello")
