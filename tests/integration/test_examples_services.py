"""examples: those for application servers, SMTP and syslog, with real ones."""

import contextlib
import http.client
import json
import os
import re
import shutil
import smtplib
import socket
import threading
from pathlib import Path

from support import net, program
from support.case import Skipped, check, check_equal, is_root, test
from support.example_files import EXAMPLES, example, port_of, servers

THEME = "examples"

# Application servers: nginx

APP_SERVER = """
    server {{
        listen {address} proxy_protocol;
        location = /healthz {{ return 200 ok; }}
        location / {{ return 200 "$proxy_protocol_addr {name}"; }}
    }}
"""


@contextlib.contextmanager
def app_servers_of(t, addresses):
    """nginx as all of these servers, which answer with the client's address and their name."""
    blocks = "".join(APP_SERVER.format(name=name, address=address) for name, address in addresses.items())
    config = re.sub(r"    server \{.*?\n    \}\n", lambda _: blocks,
                    program.NGINX_CONF.format(dir=t.dir, port=0), flags=re.DOTALL)
    command = ["nginx", "-p", t.dir, "-e", t.path("nginx-error.log"), "-c", t.write("nginx.conf", config)]
    with program.server(t, command, max(map(port_of, addresses.values()))):
        yield


class Browser:
    """A client of that address, which keeps its connection."""

    def __init__(self, front, client):
        self.connection = http.client.HTTPConnection(front, timeout=net.LIMIT_S, source_address=(client, 0))

    def get(self):
        """Client and server, as the server says."""
        self.connection.request("GET", "/")
        return self.connection.getresponse().read().decode().split()

    def close(self):
        self.connection.close()


@test(needs=["nginx"], timeout=60, plain_only=True)
def app_servers(t):
    """app-servers.ini: each of ten servers sees its clients' addresses; a client has 50 connections; when
    all servers have 20, a client waits until one of these ends; each has its line of JSON"""
    front, log = t.address(), t.path("app.json")
    addresses = {f"app{n:02}": t.address() for n in range(1, 11)}
    places = {f"10.0.1.{10 + n}:8080": address for n, address in enumerate(addresses.values(), 1)}
    config = example("app-servers.ini", {"*:80": front, "/var/log/reactord/app.json": log, **places})
    with contextlib.ExitStack() as stack:
        stack.enter_context(app_servers_of(t, addresses))
        daemon = stack.enter_context(t.daemon(config))
        open_ones = [Browser(front, f"127.0.0.{2 + n // 50}") for n in range(200)]
        for browser in open_ones:
            stack.callback(browser.close)
        answers = [browser.get() for browser in open_ones]
        check_equal([client for client, _ in answers], [f"127.0.0.{2 + n // 50}" for n in range(200)], "clients")
        check_equal({name: [got for _, got in answers].count(name) for name in addresses}, dict.fromkeys(addresses, 20),
                    "connections of each server")
        with contextlib.suppress(ConnectionError):
            check(not Browser(front, "127.0.0.2").get(), "a client has 51 connections")

        late = Browser(front, "127.0.0.6")
        stack.callback(late.close)
        waiting = net.Task(late.get)
        t.eventually(lambda: daemon.counts("upstream app ").get("waiting") == 1, "the client waits", within=8)
        open_ones[0].close()
        check_equal(waiting.result(), ["127.0.0.6", answers[0][1]], "who is served where")
    lines = [json.loads(line) for line in Path(log).read_text(encoding="utf-8").splitlines()]
    check_equal(len(lines), 202, "lines of the access log")
    check_equal({line["client"] for line in lines}, {f"127.0.0.{n}" for n in range(2, 7)}, "clients in the log")
    check_equal([line["server"] for line in lines if line["reason"] == "limit"], [None], "clients above their limit")
    check_equal(len({line["unique_id"] for line in lines}), 202, "IDs")
    check(max(line["queue_time"] or 0 for line in lines) > 0, "nobody waited")


# SMTP: Postfix

POSTFIX_MAIN = """
compatibility_level = 3.6
queue_directory = {dir}/queue
data_directory = {dir}/data
maillog_file = /dev/stdout
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.example.com
mydestination =
alias_maps =
smtpd_peername_lookup = no
smtpd_recipient_restrictions = reject_unauth_destination
virtual_mailbox_domains = example.com
virtual_mailbox_base = {dir}/mail
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
"""

POSTFIX_MASTER = """
127.0.0.1:{mx1} inet n - n - - smtpd -o smtpd_upstream_proxy_protocol=haproxy
127.0.0.1:{mx2} inet n - n - - smtpd -o smtpd_upstream_proxy_protocol=haproxy
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
"""


@contextlib.contextmanager
def postfix(t, mx1, mx2):
    """Postfix, which expects the PROXY protocol on both; gives the directory of the mail that came."""
    home = t.path("postfix")
    for name in ("", "/etc", "/queue", "/data", "/mail"):
        os.mkdir(home + name)
    shutil.chown(home + "/data", "postfix")
    os.chmod(home + "/mail", 0o777)  # the user that mail is delivered as makes its inbox
    t.write("postfix/etc/main.cf", POSTFIX_MAIN.format(dir=home))
    t.write("postfix/etc/master.cf", POSTFIX_MASTER.format(mx1=port_of(mx1), mx2=port_of(mx2)))
    program.run(["postfix", "-c", home + "/etc", "check"])
    with program.server(t, ["/usr/lib/postfix/sbin/master", "-c", home + "/etc", "-d"], port_of(mx2)):
        yield home + "/mail/inbox/new"


def send_mail(front, client):
    with smtplib.SMTP("127.0.0.1", port_of(front), "client.example.net", net.LIMIT_S, (client, 0)) as smtp:
        smtp.sendmail("me@example.net", "you@example.com", f"Subject: from {client}\r\n\r\nhello\r\n")


@test(needs=["postfix"], timeout=60, plain_only=True)
def smtp(t):
    """smtp.ini: mail comes through to Postfix, which notes the client's address; a client of the list is reset, and an
    eleventh connection closed; Postfix takes the checks"""
    if not is_root():
        raise Skipped("Postfix runs as root only")
    front, mx1, mx2, log = t.address(), t.address(), t.address(), t.path("smtp.log")
    config = example("smtp.ini", {"*:25": front, "10.0.2.11:10025": mx1, "10.0.2.12:10025": mx2,
                                  "/var/log/reactord/smtp.log": log})
    deny = t.write("deny", (EXAMPLES / "smtp.deny").read_text(encoding="ascii") + "127.0.0.9\n")
    with postfix(t, mx1, mx2) as inbox, t.daemon(config, environment={"SMTP_DENY": deny}) as daemon:
        for client in ("127.0.0.2", "127.0.0.3"):
            send_mail(front, client)
        t.eventually(lambda: os.path.isdir(inbox) and len(os.listdir(inbox)) == 2, "both are delivered", within=20)
        mails = [Path(inbox, name).read_text(encoding="ascii") for name in os.listdir(inbox)]
        said = {(re.search(r"\[(\S+)\]", mail).group(1), re.search("from (127.*)", mail).group(1)) for mail in mails}
        check_equal(said, {(client, client) for client in ("127.0.0.2", "127.0.0.3")}, "Received from, and Subject")

        try:
            send_mail(front, "127.0.0.9")
            check(False, "a client of the list is served")
        except (ConnectionError, smtplib.SMTPServerDisconnected):
            check_equal(daemon.counts("listen smtp").get("denied"), 1, "clients denied")
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                client = stack.enter_context(net.connect(front))
                check_equal(net.read_exactly(client, 4), b"220 ", "greeting")
            check_equal(net.fate(front), "fin", "end of one too many")
        t.eventually(lambda: "lost connection after CONNECT from" in postfix_log(t), "a check is made", within=20)
        check_equal({s["state"] for s in servers(daemon).values()}, {"up"}, "states of the servers")
        check("proxy" not in postfix_log(t), postfix_log(t))
    check_equal(len(Path(log).read_text(encoding="ascii").splitlines()), 14, "lines of the access log")


def postfix_log(t):
    return Path(t.path("master.log")).read_text(encoding="utf-8", errors="replace")


# syslog: rsyslog

RSYSLOG_CONF = """
module(load="imtcp")
template(name="message" type="string" string="%msg%\\n")
input(type="imtcp" address="127.0.0.1" port="{port}")
action(type="omfile" file="{out}" template="message")
"""


@contextlib.contextmanager
def rsyslog(t, name, address):
    config = t.write(f"{name}.conf", RSYSLOG_CONF.format(port=port_of(address), out=t.path(f"{name}.out")))
    with program.server(t, ["rsyslogd", "-n", "-f", config, "-i", t.path(f"{name}.pid")], port_of(address)):
        yield


def received(t, *names):
    """The messages that these receivers have."""
    found = []
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found += Path(t.path(f"{name}.out")).read_text(encoding="ascii").split()
    return sorted(found)


def steer(t, *command):
    """What reactorctl says to the daemon with the example's admin socket."""
    finished = t.reactorctl("-s", t.path("admin.sock"), "--timeout", "20s", *command)
    check_equal((finished.code, finished.err), (0, ""), f"reactorctl {command}")


class Sender:
    """Sends numbered messages, some on each connection, until it is told to end; each connection ends with
    its half-close and that of the receiver."""

    def __init__(self, name, address, frame):
        self.name, self.address, self.frame = name, address, frame
        self.sent, self.ending = [], threading.Event()
        self.task = net.Task(self._send)

    def _send(self):
        while not self.ending.is_set():
            with net.connect(self.address) as s:
                for _ in range(50):
                    self.sent.append(f"{self.name}-{len(self.sent)}")
                    s.sendall(self.frame(f"<13>1 2026-11-24T12:00:00Z host app - - - {self.sent[-1]}".encode()))
                    self.ending.wait(0.002)
                s.shutdown(socket.SHUT_WR)
                check_equal(net.read_to_end(s), b"", "what a receiver says")

    def end(self):
        self.ending.set()
        self.task.result()


@test(needs=["rsyslogd", "logger"], timeout=60, plain_only=True)
def syslog(t):
    """syslog.ini: a receiver is replaced while six senders go on, with octet counting and in lines, and
    each message has come to one receiver, once"""
    counted, lines, a, b, c, new = (t.address() for _ in range(6))
    config = example("syslog.ini", {"/run/reactord/admin.sock": t.path("admin.sock"), "*:601": counted, "*:514": lines, "10.0.3.11:601": a, "10.0.3.12:601": b,
                                    "10.0.3.13:601": c})
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(contextlib.ExitStack())
        old.enter_context(rsyslog(t, "a", a))
        stack.enter_context(rsyslog(t, "b", b))
        stack.enter_context(rsyslog(t, "c", c))
        daemon = stack.enter_context(t.daemon(config))
        senders = [Sender(f"s{n}", *kind) for n, kind in enumerate(3 * [
            (counted, lambda m: b"%d %s" % (len(m), m)), (lines, lambda m: m + b"\n")])]
        t.eventually(lambda: received(t, "a") and received(t, "b") and received(t, "c"), "all receive")

        steer(t, "drain", "receivers/a", "--wait")
        check_equal(servers(daemon)["receivers/a"]["connections"], "0", "senders of a")
        old.close()
        stack.enter_context(rsyslog(t, "new", new))
        daemon.config_path.write_text(config.replace(f"server.a = {a}", f"server.a = {new}"), encoding="utf-8")
        steer(t, "reload")
        t.eventually(lambda: received(t, "new"), "the new one receives")
        for sender in senders:
            sender.end()
        for address, option in ((counted, "--octet-count"), (lines, "-i")):
            program.run(["logger", "-n", "127.0.0.1", "-P", port_of(address), "-T", "--rfc5424", option, "logger"])
        sent = sorted([message for sender in senders for message in sender.sent] + ["logger", "logger"])
        t.eventually(lambda: len(received(t, "a", "b", "c", "new")) >= len(sent), "all have come")
        check_equal(received(t, "a", "b", "c", "new"), sent, "messages received")
