"""scrapes: scrapes of a daemon's metrics."""

import contextlib
import subprocess
import threading

from support import net
from support.admin import get, section
from support.case import check, check_equal


def socket_of(t):
    return t.path("admin.sock")


def config(t, front, servers, options="", more="", admin=""):
    lines = "".join(f"server.{name} = {address}\n" for name, address in servers.items())
    return (section(socket_of(t), admin) + more
            + f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            + f"access_log = {t.path('access.log')}\n"
            + f"[upstream back]\n{lines}{options}\n")


def scrape(t):
    answer = get(socket_of(t), "/metrics")
    check_equal((answer.status, answer.headers["content-type"]),
                (200, "text/plain; version=0.0.4; charset=utf-8"), "the answer")
    return answer.body.decode()


def promtool(*words, stdin=""):
    done = subprocess.run(["promtool", *words], input=stdin, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"promtool {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


@contextlib.contextmanager
def echo(t):
    """An echo server of ours; another listener of the daemon would be a proxy loop."""
    with contextlib.ExitStack() as stack:
        address = t.address()
        listener = stack.enter_context(net.listen(address, 64))

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    s = listener.accept()[0]
                    threading.Thread(target=answer, args=(s,), daemon=True).start()

        def answer(s):
            with s, contextlib.suppress(OSError):
                while data := s.recv(65536):
                    s.sendall(data)

        listener.settimeout(None)
        threading.Thread(target=serve, daemon=True).start()
        yield address
        listener.shutdown(2)


def talk(front, times=1):
    for _ in range(times):
        with net.connect(front) as s:
            check_equal(net.exchange(s, b"hello"), b"hello", "the answer")
