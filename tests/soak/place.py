"""place: a configuration drawn from the seed: listeners of all kinds, upstreams, servers, names; and how it changes."""

import random
import socket
import struct
import threading

from support import net, tls
from support.tls_listeners import NAME, profile

import load as loads

# name: (service, options, upstream, TLS with the client, share of the usual bytes)
KINDS = {
    "echo": ("echo", "", None, False, 1),
    "framed": ("echo", "pipeline = frame\nframe_by = delimiter\nframe_delimiter = \\n\nframe_max_length = 1m\n",
               None, False, 1),
    "queued": ("echo", "pipeline = executor\n", None, False, 0.3),
    "idle": ("echo", "pipeline = idle\nidle_read = 60s\nidle_action = close\n", None, False, 1),
    "chain": ("proxy", "pipeline = idle, log, frame, executor\nframe_by = delimiter\nframe_delimiter = \\n\n"
              "frame_max_length = 1m\nidle_all = 60s\n", "back", False, 0.02),
    "proxy": ("proxy", "", "back", False, 1),
    "copied": ("proxy", "splice = off\n", "back", False, 1),
    "spliced": ("proxy", "splice = on\n", "back", False, 2),
    "timed": ("proxy", "splice = on\nidle_timeout = 60s\nclient_idle_timeout = 60s\n", "back", False, 1),
    "late": ("proxy", "connect_on = first_byte\n", "back", False, 1),
    "mirrored": ("proxy", "mirror = mirror\n", "back", False, 1),
    "mirrored-echo": ("echo", "mirror = mirror\nmirror_buffer = 64k\n", None, False, 1),
    "throttled": ("proxy", "bandwidth_in = 400k\nbandwidth_out = 300k\nlistener_bandwidth_in = 2m\n", "back", False, 1),
    "faulty": ("proxy", "fault_delay = 2ms\nfault_jitter = 3ms\nfault_rate = 2m\n", "back", False, 1),
    "terminated": ("proxy", "tls = front\nhandshake_timeout = 60s\n", "back", True, 1),
    "secret": ("echo", "tls = front\nhandshake_timeout = 60s\n", None, True, 1),
    "both": ("proxy", "tls = front\nhandshake_timeout = 60s\nsplice = on\n", "secure", True, 1),
    "originated": ("proxy", "", "secure", False, 1),
    "passed": ("proxy", f"route.1 = sni:{NAME} -> passed\nclient_hello_timeout = 60s\n", "passed", True, 1),
    "headed": ("proxy", "accept_proxy = required\nproxy_header_timeout = 60s\ntrusted_proxies = 127.0.0.0/8, ::1/128, unix\n", "back", False, 1),
    "limited": ("proxy", "max_connections = 5\n", "back", False, 0.3),
    "per-client": ("echo", "max_connections_per_client = 2\nover_limit = close\n", None, False, 0.3),
    "banned": ("echo", "tls = front\nban = 2s after 3 in 5s\n", None, True, 0.3),
}
HANDLED = ("pipeline", "mirror ", "tls =", "fault_")  # what stays with the old process after an upgrade
NAMED_HOSTS = ("127.0.0.51", "127.0.0.52", "127.0.0.53")
SETTLE_S = 3  # until a server that has come back is used


class Listener:
    """A listener of the configuration, and what its clients do."""

    def __init__(self, name, kind, addresses, context, options):
        self.name, self.addresses, self.context, self.options = name, addresses, context, options
        self.service, more, self.upstream, _, self.share = KINDS[kind]
        self.options += more
        self.reads_header = "accept_proxy" in more

    def greeting(self, draw):
        """The PROXY header of a client."""
        if not self.reads_header:
            return b""
        return b"PROXY TCP4 192.0.2.%d 192.0.2.200 %d 80\r\n" % (draw.randrange(1, 100), draw.randrange(1024, 60000))

    def section(self, reuseport):
        is_tcp = all(a[0] not in "@/" for a in self.addresses)
        where = "" if not self.upstream or "route." in self.options else f"upstream = {self.upstream}\n"
        many = f"reuseport = {reuseport}\n" if is_tcp and reuseport > 1 else ""
        return (f"[listen {self.name}]\naddress = {', '.join(self.addresses)}\nservice = {self.service}\n"
                f"{where}{many}{self.options}")


class Names(threading.Thread):
    """A name server that knows one name."""

    def __init__(self, t):
        super().__init__(daemon=True)
        self.address, self.hosts = t.address(), list(NAMED_HOSTS)
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.bind(net.parse(self.address)[1])

    def run(self):
        while True:
            query, client = self.s.recvfrom(4096)
            end = query.index(b"\0", 12) + 5
            question, hosts = query[12:end], self.hosts if query[end - 4:end] == b"\0\1\0\1" else []
            code = 0x8183 if not self.hosts else 0x8180
            answer = b"".join(b"\xc0\x0c\0\1\0\1" + struct.pack("!IH", 1, 4) + socket.inet_aton(host)
                              for host in hosts)
            self.s.sendto(query[:2] + struct.pack("!HHHHH", code, 1, len(hosts), 0, 0) + question + answer, client)


class Place:
    """Everything but the daemon: what it is configured with, its servers and their state."""

    def __init__(self, t, seed, excuses):
        self.t, self.excuses = t, excuses
        self.draw = draw = random.Random(f"{seed} place")
        self.admin, self.pid_path = t.path("admin.sock"), t.path("reactord.pid")
        authority = tls.Authority(t)
        self.certificate, self.ca = authority.issue(NAME), authority.path
        self.names = Names(t)
        self.names.start()
        self.resizes = draw.random() < 0.8
        self.state = {"workers": draw.randint(1, 4), "bosses": draw.choice((0, 1, 1, 2)), "salt": 0, "extra": True,
                      "third": True, "max_buffered": 0}
        self.global_options = self._draw_global()
        self.upstream_options = {name: self._draw_upstream(name) for name in ("back", "secure", "passed", "mirror")}
        chosen = ["echo", "proxy", "spliced"] + draw.sample([k for k in KINDS if k not in ("echo", "proxy", "spliced")],
                                                           draw.randint(5, 10))
        self.listeners = [self._draw_listener(kind) for kind in chosen]
        self.extra = self._draw_listener("echo", "extra")
        self.server_options = draw.choice(("", "", " max_connections=4"))
        if self.server_options:
            excuses.begin("servers are full", "refused wait", lambda s: s.listener.upstream and not s.server)
        self.held = {}  # upstream: the excuse while it has no server
        self.disabled = set()
        self.load = None

    def _draw_global(self):
        draw = self.draw
        self.hands_over = draw.random() < 0.7
        return (f"upgrade_sessions = {'yes' if self.hands_over else 'no'}\n"
                f"handoff_rate = {draw.choice((50, 2000))}\nmax_old_processes = {draw.choice((2, 4))}\n"
                "drain_timeout = 5s\nlog_level = debug\nallow_faults = yes\n")

    def _draw_upstream(self, name):
        draw = self.draw
        lines = [f"balance = {draw.choice(('round_robin', 'least_connections', 'random', 'source_hash', 'maglev', 'least_time'))}",
                 "connect_timeout = 20s", "eject_time = 500ms", "eject_time_max = 1s", "server_closed_timeout = 60s"]
        if draw.random() < 0.7:
            lines += ["check = tcp", "check_interval = 200ms", "check_timeout = 10s"]
            if draw.random() < 0.3:
                lines += ["on_down = close"]
        if name in ("back", "secure") and draw.random() < 0.6:
            lines += [f"spare = {draw.randint(1, 3)}", f"spare_max_age = {draw.choice((1, 5))}s"]
        if name in ("back", "passed") or (name == "secure" and "spare" not in str(lines)):
            lines += [f"send_proxy = {draw.choice(('off', 'off', 'v1', 'v2'))}"]
        if draw.random() < 0.3:
            lines += ["slow_start = 2s"]
        if draw.random() < 0.3:
            lines += [f"queue_length = {draw.choice((0, 100))}"]
        if name == "secure":
            lines += ["tls = trusted", f"tls_name = {NAME}"]
        return "\n".join(lines) + "\n"

    def _draw_listener(self, kind, name=None):
        draw, t, name = self.draw, self.t, name or kind
        kinds = draw.choice((("4",), ("4",), ("4", "6"), ("4", "@"), ("6", "/"), ("4", "6", "@", "/")))
        addresses = [{"4": lambda: f"127.0.0.1:{t.port()}", "6": lambda: f"[::1]:{t.port()}",
                      "@": lambda: f"@soak-{t.port()}", "/": lambda: t.path(f"{name}.sock")}[k]() for k in kinds]
        context = tls.client_context(self.ca, draw.choice((None, "1.2", "1.3"))) if KINDS[kind][3] else None
        options = ""
        if kind == "limited":
            options = f"over_limit = {draw.choice(('wait', 'close', 'reset'))}\n"
        listener = Listener(name, kind, addresses, context, options)
        if kind in ("limited", "per-client"):
            self.excuses.begin(f"limits of {name}", "refused wait", lambda s: s.listener.name == name and not s.client.got)
        return listener

    # Servers

    def open(self, load):
        self.load, t = load, self.t
        secret = tls.server_context(self.certificate)
        plain = [t.address(), f"[::1]:{t.port()}", t.path("server.sock"), f"0.0.0.0:{t.port()}"]
        self.servers = {f"back/{key}": loads.Server(load, f"back/{key}", address)
                        for key, address in zip(("a", "b", "c", "named"), plain)}
        for upstream in ("secure", "passed"):
            for key in ("a", "b"):
                self.servers[f"{upstream}/{key}"] = loads.Server(load, f"{upstream}/{key}", t.address(), secret)
        self.servers["mirror/a"] = loads.Server(load, "mirror/a", t.address(), mirror=True)
        self.usable_at = dict.fromkeys(self.servers, 0)
        for server in self.servers.values():
            server.listen()

    def line(self, name):
        server = self.servers[name]
        if name == "back/named":
            return f"soak.test:{server.address.rpartition(':')[2]} resolve=each{self.server_options}"
        return server.address + ("" if server.is_mirror else self.server_options)

    def look(self, now):
        """Which upstreams have no server that has been usable for long enough."""
        for name, server in self.servers.items():
            away = server.socket is None or name in self.disabled or (name == "back/named" and not self.names.hosts) \
                or (name == "back/c" and not self.state["third"])
            if away:
                self.usable_at[name] = now + SETTLE_S * self.t.scale
        for upstream in self.upstream_options:
            has_server = any(at <= now for name, at in self.usable_at.items() if name.startswith(upstream + "/"))
            excuse = self.held.get(upstream)
            if not has_server and not excuse:
                self.held[upstream] = self.excuses.begin(f"{upstream} has no server", "refused wait",
                                                         lambda s, u=upstream: s.listener.upstream == u)
            elif has_server and excuse:
                self.held.pop(upstream).end()

    # The configuration

    def config(self):
        state = self.state
        text = (f"[reactord]\npid_file = {self.pid_path}\n{self.global_options}"
                f"max_buffered = {state['max_buffered']}\n"
                f"[boss]\nthreads = {state['bosses']}\n[worker]\nthreads = {state['workers']}\nrebalance = auto\n"
                f"[admin]\naddress = {self.admin}\nrequest_timeout = 1m\n"
                f"[resolver names]\nservers = {self.names.address}\n"
                f"{profile('front', self.certificate)}[tls trusted]\nca = {self.ca}\n")
        for listener in self.listeners + [self.extra] * state["extra"]:
            text += listener.section(max(state["bosses"], 1)) + f"max_lifetime = {state['salt'] % 100 + 3600}s\n"
        for upstream, options in self.upstream_options.items():
            lines = [f"server.{name.partition('/')[2]} = {self.line(name)}\n" for name in self.servers
                     if name.startswith(upstream + "/") and (state["third"] or name != "back/c")]
            names = "resolver = names\nresolve_interval = 1s\nresolve_interval_min = 1s\nresolve_hold = 2s\n"
            text += f"[upstream {upstream}]\n{''.join(lines)}{options}{names if upstream == 'back' else ''}"
        return text
