"""check_steps: health checks in steps, of one's own and for protocols, exchanges byte by byte; see check_programs for real servers."""

import contextlib

from support import net, tls
from support.case import check, check_equal, test
from support.server import Moody
from test_check_kinds import holds, in_tls
from test_checks import checked, wait_down, wait_up
from test_tls_upstream import NAME, Echo, authority


def steps(*list_):
    return {"check": "steps", **{f"check_step.{i}": f'"{step}"' for i, step in enumerate(list_, 1)}}


class Script(Moody):
    """A server that answers each request of its mood, a list of (request, answer), and keeps the rest open."""

    def __init__(self, name, address, mood):
        super().__init__(name, address)
        self.mood, self.passed, self.bytewise = mood, 0, False

    def _answer(self, s, mood):
        s.settimeout(net.LIMIT_S)
        with contextlib.suppress(EOFError, OSError):
            for request, answer in mood:
                if request and net.read_exactly(s, len(request)) != request:
                    return
                for part in [answer[i:i + 1] for i in range(len(answer))] if self.bytewise else [answer]:
                    s.sendall(part)
            if s.recv(1) == b"":
                self.passed += 1


MYSQL_HELLO = (b"\x4a\0\0\0\x0a5.5.5-10.11\0\1\0\0\0" + b"saltsalt" + b"\0\xfe\xf7\x2d\2\0\xff\x81\x15" + bytes(10)
               + b"saltsaltsalt\0mysql_native_password\0")
MYSQL_LOGIN = b"\x2a\0\0\1\1\x82\0\0\0\0\0\1\x21" + bytes(23) + b"reactord\0\0"
LDAP_BIND = bytes.fromhex("300c020101600702010304008000")
SPOKEN = {
    "redis": ([(b"PING\r\n", b"+PONG\r\n")],
              [(b"PING\r\n", b"-LOADING Redis is loading the dataset in memory\r\n")],
              r"step 2 \(expect !~\^-\): unwanted text in the answer: '-LOADING .*"),
    "mysql": ([(b"", MYSQL_HELLO), (MYSQL_LOGIN, b"\7\0\0\2\0\0\0\2\0\0\0"), (b"\1\0\0\0\1", b"")],
              [(b"", b"\x17\0\0\0\xff\x10\4Too many connections")],
              r"step 1 \(expect !~.*\): unwanted text in the answer: .*Too many connections'"),
    "smtp": ([(b"", b"220-a\r\n220 b ESMTP\r\n"), (b"EHLO localhost\r\n", b"250-x\r\n250 SIZE\r\n"),
              (b"QUIT\r\n", b"221 bye\r\n")],
             [(b"", b"421 too busy\r\n")],
             r"step 1 \(expect !~\^\[45\].*\): unwanted text in the answer: '421.*"),
    "ldap": ([(LDAP_BIND, bytes.fromhex("300c02010161070a010004000400")), (bytes.fromhex("30050201024200"), b"")],
             [(LDAP_BIND, bytes.fromhex("300c02010161070a013504000400"))],
             r"step 3 \(expect !~.*\): unwanted text in the answer: .*"),
}


@test(each={"name": list(SPOKEN), "bytewise": [False, True]})
def spoken(t, name, bytewise):
    """check = {name}: a server that speaks it is up, byte by byte ({bytewise}) as at once, and an error takes it down"""
    front = t.address()
    right, wrong, why = SPOKEN[name]
    with Script("a", t.address(), right) as a:
        a.bytewise = bytewise
        with t.daemon(checked(front, {"a": a.address}, log="debug", check=name)) as daemon:
            holds(t, daemon, lambda: a.passed)
            a.becomes(wrong)
            wait_down(t, daemon, why=why if not bytewise else r"step \d .*")


@test()
def steps_fail(t):
    """each step has its own reason; what is sent is not in it"""
    front = t.address()
    with Script("a", t.address(), [(b"secret\r\n", b"OK 1\r\n"), (b"more", b"42 is it\r\n")]) as a:
        ways = [(("send secret\\r\\n", "expect ~^OK \\d$", "send more", "expect it"), None),
                (("send secret\\r\\n", "expect KO"), r"step 2 \(expect KO\): wrong answer: 'OK 1.*"),
                (("send secret\\r\\n", "expect ~^OK", "send more", "expect !is", "expect it"),
                 r"step 4 \(expect !is\): unwanted text in the answer: .*"),
                (("send secret\\r\\n", "expect OK", f"connect port {t.port()}"), r"step 3 \(connect port \d+\): connection refused"),
                (("expect hello",), r"step 1 \(expect hello\): timed out waiting for the answer")]
        for list_, why in ways:
            options = {"check_timeout": "400ms", **steps(*list_)}
            with t.daemon(checked(front, {"a": a.address}, log="debug", **options)) as daemon:
                if why:
                    wait_down(t, daemon, why=why)
                    check("secret" not in daemon.log(), "what is sent is in the log")
                else:
                    holds(t, daemon, lambda: a.passed)


@test()
def steps_connect(t):
    """steps may make several connections: plain at another port, then in TLS at that of clients"""
    front = t.address()
    with authority(t) as (ca, context), Echo(t.address(), context) as a, Script("b", t.address(), [(b"live?", b"yes")]) as b:
        port = b.address.rpartition(":")[2]
        options = {"check_tls": "back", "check_tls_name": NAME,
                   **steps(f"connect port {port}", "send live?", "expect yes", "connect tls", "send ping", "expect ping")}
        with t.daemon(in_tls(checked(front, {"a": a.address}, log="debug", **options), f"ca = {ca.path}")) as daemon:
            holds(t, daemon, lambda: min(a.ended, b.passed))
            with tls.Peer(net.connect(front), tls.client_context(ca.path), NAME).handshake() as client:
                check_equal(client.tls.version() is not None, True, "TLS of the client")
            b.becomes([(b"live?", b"no!")])
            wait_down(t, daemon, why=r"step 3 \(expect yes\): wrong answer: 'no!'")
