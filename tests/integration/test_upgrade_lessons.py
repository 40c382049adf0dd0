"""upgrade_lessons: the seven problems for which pgbouncer gave up handing connections to a new process, one by one.

Of these, upgrade_sessions shows that bytes in buffers are not lost (quiet_and_busy_sessions_go_along), that another
configuration breaks nothing (what_stays, handlers_that_stay), and that what only some sessions have, such as a part of
a frame, goes along (handlers_go_along).
"""

import contextlib
import re
import time

from support import net, tls
from support.admin import get
from support.case import check, check_equal, test
from support.chain import Chain
from support.log_lines import lines_of, whole_lines
from support.tls_listeners import certificate_of, tls_proxy
from test_proxy import proxy
from test_upgrade_records import TAKEN, Old, connection, record
from test_upgrade_sessions import TAKES, handed_over, is_served


@test(timeout=60)
def sessions_with_tls(t):
    """a session with TLS is not cut: the old process serves it on, and new clients come to the new one"""
    front, back, plain = t.address(), t.address(), t.address()
    ca, certificate = certificate_of(t)
    context = tls.client_context(ca.path)
    config = TAKES + tls_proxy(front, back, certificate) \
        + f"[listen plain]\naddress = {plain}\nservice = proxy\nupstream = back\n"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config))
        client = stack.enter_context(tls.connect(front, context))
        server = stack.enter_context(net.accept(listener))
        other, other_server = stack.enter_context(net.proxied(plain, listener))
        old = chain.upgrade()
        check_equal(handed_over(chain, old), (1, {"tls": 1}), "what was handed over")
        for ours, theirs in ((client, server), (other, other_server)):
            ours.sendall(b"still")
            check_equal(net.read_exactly(theirs, 5), b"still", "what the server got")
            theirs.sendall(b"here!")
            check_equal(net.read_exactly(ours, 5), b"here!", "what the client got")
        with tls.connect(front, context) as late, net.accept(listener) as late_server:
            late.sendall(b"hello")
            check_equal(net.read_exactly(late_server, 5), b"hello", "of a new client")
        client.close()
        server.close()
        chain.wait_gone(old)


@test(timeout=60)
def nothing_about_a_session_is_forgotten(t):
    """the access log has one line of a session that was handed over, with its ID, number, bytes, server and times"""
    front, back, admin, path = t.address(), t.address(), t.path("admin.sock"), t.path("access.log")
    form = "$unique_id $connection $client_port $server $server_address $bytes_in $bytes_out $tries $duration $reason"
    options = f"access_log = {path}\naccess_log_format = {form}\n"
    config = f"{TAKES}[admin]\naddress = {admin}\n" \
        + proxy(front, back).replace("service = proxy\n", "service = proxy\n" + options)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config))
        client, server = stack.enter_context(net.proxied(front, listener))
        began = time.monotonic()
        port = client.getsockname()[1]
        client.sendall(b"before")
        check_equal(net.read_exactly(server, 6), b"before", "what the server got")
        before, = get(admin, "/v1/sessions").json["sessions"]
        old = chain.upgrade()
        check_equal(handed_over(chain, old), (1, {}), "what was handed over")
        chain.wait_gone(old)
        least = time.monotonic() - began
        after, = get(admin, "/v1/sessions").json["sessions"]
        check_equal(after["id"], before["id"], "its ID")
        check(after["age_s"] >= before["age_s"], f"its age: {before}, then {after}")
        server.sendall(b"after")
        check_equal(net.read_exactly(client, 5), b"after", "what the client got")
        check_equal(lines_of(path), [], "lines while it goes on")
        client.close()
        check_equal(server.recv(1), b"", "what the server got after the client's end")
        server.close()
        t.eventually(lambda: whole_lines(path), "a line")
        chain.stop()
        line, = lines_of(path)
        wanted = rf"{before['id']} 1 {port} only {re.escape(back)} 6 5 1 (\d+\.\d+) client_fin"
        found = re.fullmatch(wanted, line.decode())
        check(found, f"the line is {line}, not {wanted}")
        check(float(found[1]) >= least * 0.99, f"it took {found[1]} s, not {least} s or more")


@test()
def instants_go_along(t):
    """a session ends when the old process had set its end, whatever the new one would set, and is served until then"""
    config = "[listen echo]\naddress = {0}\nservice = echo\nmax_lifetime = 1h\n"
    with Old(t, config.format(t.address())) as old:
        old.wanted()
        for expires_ns, ends in ((time.monotonic_ns(), True), ((1 << 63) - 1, False)):
            with connection(t) as (client, ours):
                check_equal(old.give(record(expires_ns=expires_ns), [ours.fileno()]), (TAKEN, 0), "the answer")
                ours.close()
                if ends:
                    check_equal(net.ending(client), "fin", "its end")
                else:
                    net.exchange(client, b"hello")


@test(timeout=60)
def the_service_manager_follows(t):
    """the service manager is told the new process, and hears nothing of the end of the old one, whose sessions went on"""
    front, back = t.address(), t.address()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, TAKES + proxy(front, back)))
        pairs = [stack.enter_context(net.proxied(front, listener)) for _ in range(4)]
        for _ in range(2):
            old = chain.upgrade()
            check_equal(handed_over(chain, old), (4, {}), "what was handed over")
            chain.wait_gone(old)
            chain.eventually(lambda: chain.daemon.has_notified(f"MAINPID={chain.pid}"), "the new process is the main one")
        check("STOPPING=1" not in chain.daemon.notified, f"it was told {chain.daemon.notified}")
        check_equal(sum(is_served(pair) for pair in pairs), 4, "sessions that are served")
