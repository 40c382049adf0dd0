"""actions: what is done to the daemon and its servers; each one says beforehand what it excuses."""

import contextlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import time

from support import admin, descriptors, net

from load import ABUSE

LANES = {}  # lane: [(weight, function)]


def action(lane, weight):
    """Register it: run(r, draw) gives what to write behind its name."""
    def register(function):
        LANES.setdefault(lane, []).append((weight, function))
        return function
    return register


def find(name):
    return next(f for lane in LANES.values() for _, f in lane if f.__name__ == name)


def ask(r, method, path, body=None):
    """The answer of the admin interface as text; it may be that no process is there."""
    try:
        answer = admin.request(r.place.admin, method, path, body, limit_s=20 * r.t.scale)
    except (OSError, http.client.HTTPException) as error:
        return f"{path} {body or ''}: {error!r}"
    text = answer.body.decode(errors="replace")
    if answer.status >= 500 and answer.status != 503:
        r.fail(None, f"{path} {body}: {answer.status} {text}")
    return f"{path} {json.dumps(body) if body else ''}: {answer.status} {text[:100]}"


def write(r, text):
    r.service.daemon.config_path.write_text(text, encoding="utf-8")


def reload(r, text, pattern=r"reload: (done|refused|nothing)"):
    """SIGHUP with that file; how it ended."""
    write(r, text)
    since, main = r.service.mark(), r.service.main
    if main is None:
        return "no process"
    with contextlib.suppress(ProcessLookupError):
        os.kill(main, signal.SIGHUP)
    line = r.service.wait_said(rf"\[{main}\] .*{pattern}", since, 30)
    if line is None and main not in r.service.killed:
        r.fail(None, f"a reload of {main} does not end")
    return str(line)[25:140]


# ---- the process: reloads, upgrades, kills ----

def change(r, draw):
    """Another configuration."""
    state, names = r.place.state, ["salt"]
    state["salt"] += 1
    for name, values in (("workers", (1, 2, 3, 4)), ("bosses", (0, 1, 2)), ("extra", (True, False)),
                         ("third", (True, False))):
        if draw.random() < 0.3 and (r.place.resizes or name not in ("workers", "bosses")):
            value = draw.choice(values)
            if name == "extra" and state["extra"] and not value:
                r.extra_gone = r.extra_gone or r.excuses.begin("extra is removed", "refused", is_extra)
            state[name] = value
            names.append(f"{name}={value}")
    return " ".join(names)


def is_extra(stream):
    return stream.listener.name == "extra"


@action("life", 6)
def reload_good(r, draw):
    what = change(r, draw)
    ended = reload(r, r.place.config())
    if "refused" in ended and not r.is_short:
        r.fail(None, f"a good reload is refused: {ended}")
    if r.place.state["extra"] and r.extra_gone and "done" in ended:
        r.extra_gone.end()
        r.extra_gone = None
    return f"{what}: {ended}"


@action("life", 2)
def reload_bad(r, draw):
    good = r.place.config()
    bad = good + draw.choice(("nonsense = 1\n", "[listen x]\nservice = echo\n", "[upstream y]\nserver.a = nowhere\n",
                              "[listen echo]\n", "\0\n", f"[listen x]\naddress = {r.taken}\nservice = echo\n"))
    ended = reload(r, bad)
    if "done" in ended:
        r.fail(None, f"a bad file is taken: {ended}")
    write(r, good)
    return ended


@action("life", 4)
def upgrade(r, draw):
    return begin_upgrade(r)


def is_drained(stream):
    """An echo that is quiet ends when its process drains."""
    return stream.listener.service == "echo"


def begin_upgrade(r, kill=None, after_s=0.0):
    """How it ended; kill: `old` or `new`, so long behind the start."""
    old = r.service.main
    if old is None:
        return "no process"
    excuse = r.excuses.begin("an upgrade: old process drains", "cut reset refused", is_drained)
    r.drains.append((old, excuse))
    told = follow_upgrade(r, old, kill, after_s)
    if r.service.main == old:
        excuse.end()
    return told


def follow_upgrade(r, old, kill, after_s):
    service, since = r.service, r.service.mark()
    with contextlib.suppress(ProcessLookupError):
        os.kill(old, signal.SIGUSR2)
    line = service.wait_said(rf"\[{old}\] .*upgrade: (started|failed|refused)", since, 20)
    found = re.search(r"as process (\d+)", str(line))
    if not found:
        return f"{line}"[25:160]
    new = int(found[1])
    if kill:
        time.sleep(after_s)
        service.may_fail = time.monotonic() + 30
        service.kill(new if kill == "new" else old, f"{kill} process of an upgrade")
        return f"{new} replaces {old}; killed the {kill}; {service.recover()}"
    line = service.wait_said(rf"\[{new}\] .*upgrade: took over|\[{old}\] .*upgrade: failed", since, 40)
    if line is None:
        r.fail(None, f"the upgrade of {old} by {new} does not end")
    elif "failed" in line and not r.is_short:
        r.fail(None, f"an upgrade failed: {line}")
    return f"{new} replaces {old}: {line}"[:160]


@action("life", 1)
def upgrade_kill_new(r, draw):
    return begin_upgrade(r, "new", draw.choice((0, 0.005, 0.02, 0.1, 0.5)) * draw.random() * r.t.scale)


@action("life", 1)
def upgrade_kill_old(r, draw):
    return begin_upgrade(r, "old", draw.choice((0, 0.005, 0.02, 0.1, 0.5)) * draw.random() * r.t.scale)


@action("life", 0.5)
def kill_main(r, draw):
    main = r.service.main
    if main is None:
        return "no process"
    r.service.kill(main, "the main process")
    return f"{main}; {r.service.recover()}"


@action("life", 0.7)
def kill_draining(r, draw):
    old = [pid for pid in r.service.alive() if pid != r.service.main]
    if not old:
        return "none drains"
    r.service.kill(old[0], "a process that drains")
    return str(old[0])


# ---- the administrator ----

def some_filter(r, draw):
    """Some sessions: (what the admin interface is told, what it concerns)."""
    listener = draw.choice(r.place.listeners)
    kind = draw.choice(("listener", "listener", "upstream", "all"))
    if kind == "upstream" and listener.upstream:
        return {"upstream": listener.upstream}, lambda s: s.listener.upstream == listener.upstream
    if kind == "all" and draw.random() < 0.3:
        return {"all": True}, None
    return {"listener": listener.name}, lambda s: s.listener is listener


@action("admin", 8)
def move(r, draw):
    which, _ = some_filter(r, draw)
    if draw.random() < 0.3:
        which = {"loop": f"work-2-{draw.randint(1, 4)}"}
    return ask(r, "POST", "/v1/sessions/move", {"to": f"work-2-{draw.randint(1, r.place.state['workers'])}", **which})


@action("admin", 2)
def rebalance(r, draw):
    return ask(r, "POST", "/v1/rebalance", {})


@action("admin", 1)
def kill_sessions(r, draw):
    which, concerns = some_filter(r, draw)
    excuse = r.excuses.begin(f"sessions are killed: {which}", "reset refused", concerns)
    try:
        return ask(r, "POST", "/v1/sessions/kill", which)
    finally:
        excuse.end()


@action("admin", 0.5)
def shed(r, draw):
    server = draw.choice([name for name in r.place.servers if not name.startswith("mirror")])
    excuse = r.excuses.begin(f"{server} is shed", "refused reset cut",
                             lambda s: s.server_name == server or s.listener.upstream == server.partition("/")[0]
                             and not s.server)
    r.later(1.5 + r.t.scale, excuse.end)
    return ask(r, "POST", "/v1/shed", {"server": server, "percent": draw.choice((30, 100)), "over": "1s"})


@action("admin", 3)
def server_state(r, draw):
    server = draw.choice([name for name in r.place.servers if name != "back/named"])
    state = draw.choice(("drain", "disable", "enable"))
    if state == "enable":
        r.place.disabled.discard(server)
    else:
        r.place.disabled.add(server)
        r.load.do(r.place.look, time.monotonic())
        r.later(2, enable, r, server)
    return ask(r, "POST", "/v1/server", {"server": server, "state": state})


def enable(r, server):
    ask(r, "POST", "/v1/server", {"server": server, "state": "enable"})
    r.place.disabled.discard(server)


@action("admin", 2)
def weight(r, draw):
    server = draw.choice(list(r.place.servers))
    return ask(r, "POST", "/v1/server", {"server": server, "weight": draw.choice((1, 10, 100))})


@action("admin", 1)
def pause(r, draw):
    listener = draw.choice(r.place.listeners)
    if listener.upstream and draw.random() < 0.5:
        what = {"upstream": listener.upstream}
        excuse = r.excuses.begin(f"paused: {what}", "wait", lambda s: s.listener.upstream == listener.upstream)
    else:
        what = {"listener": listener.name}
        excuse = r.excuses.begin(f"paused: {what}", "wait", lambda s: s.listener is listener)
    r.later(2, resume, r, what, excuse)
    return ask(r, "POST", "/v1/pause", {**what, "for": "10s"})


def resume(r, what, excuse):
    ask(r, "POST", "/v1/resume", what)
    excuse.end()


@action("admin", 2)
def set_value(r, draw):
    return ask(r, "POST", "/v1/set", {"io_ratio": draw.choice((10, 50, 100))})


@action("admin", 1.5)
def add_and_remove(r, draw):
    address = draw.choice([r.place.servers["back/a"].address, r.place.servers["back/b"].address])
    added = ask(r, "PUT", "/v1/server", {"server": "back/more", "line": address})
    time.sleep(draw.random())
    return f"{added}; {ask(r, 'DELETE', '/v1/server', {'server': 'back/more'})}"


@action("admin", 2)
def look_at_all(r, draw):
    paths = ("/metrics", "/v1/status", "/v1/sessions?limit=1000", "/v1/upstreams", "/v1/listeners", "/v1/loops",
             "/v1/events", "/v1/config", "/v1/history", "/v1/bans", "/v1/limits")
    return "; ".join(ask(r, "GET", path)[:30] for path in draw.sample(paths, 3))


@action("admin", 0.5)
def reset_edits(r, draw):
    answer = ask(r, "POST", "/v1/reset", {})
    r.place.disabled.clear()
    return answer


# ---- the world ----

@action("world", 2)
def server_leaves(r, draw):
    """It listens no more; its sessions go on."""
    return server_goes(r, draw, "leave")


@action("world", 1.5)
def server_crashes(r, draw):
    return server_goes(r, draw, "crash")


def server_goes(r, draw, how):
    server = r.place.servers[draw.choice([n for n in r.place.servers if not n.startswith("mirror")])]
    if "on_down = close" in r.place.upstream_options[server.upstream]:
        excuse = r.excuses.begin(f"{server.name} is down, its sessions are closed", "reset refused",
                                 lambda s: s.server_name == server.name)
        r.later(6 * r.t.scale, excuse.end)
    # Its clients may not have got as far as to be known, or wait in its queue.
    excuse = r.excuses.begin(f"{server.name} goes", "refused reset",
                             lambda s: s.listener.upstream == server.upstream and not s.server)
    r.later(0, excuse.end)
    r.load.do(getattr(server, how))
    r.load.do(r.place.look, time.monotonic())
    r.later(draw.uniform(0.1, 3), r.load.do, server.listen)
    return server.name


@action("world", 1.5)
def stop_and_continue(r, draw):
    """SIGSTOP: nothing may end for it."""
    pid = draw.choice(r.service.alive() or [0])
    if not pid:
        return "no process"
    excuse = r.excuses.begin(f"{pid} is stopped", "wait")
    seconds = draw.choice((0.05, 0.3, 1.5))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
    excuse.end()
    return f"{pid} for {seconds} s"


@action("world", 1)
def few_descriptors(r, draw):
    """No more than it has, for a while. Not for TSan, which needs some to name the calls of a race."""
    main = r.service.main
    if r.has_tsan or main is None:
        return "left out"
    n = len(descriptors.of_process(main))
    return short(r, draw, resource.RLIMIT_NOFILE, n + draw.choice((0, 3, 10)), "refused wait")


@action("world", 0.7)
def little_memory(r, draw):
    """Not for a sanitizer, which takes what it needs or ends."""
    main = r.service.main
    if r.t.sanitized or main is None:
        return "left out"
    with open(f"/proc/{main}/statm", encoding="ascii") as f:
        size = int(f.read().split()[0]) * resource.getpagesize()
    return short(r, draw, resource.RLIMIT_AS, size + draw.choice((0, 1 << 16, 1 << 20)), "refused reset wait")


def short(r, draw, what, soft, kinds):
    excuse = r.excuses.begin("a limit of the kernel is low", f"{kinds} lack")
    r.is_short += 1
    r.service.may_fail = time.monotonic() + 60
    try:
        r.service.limit(what, soft)
        time.sleep(draw.uniform(0.2, 2))
    finally:
        r.service.limit(what, None)
        excuse.end()
        r.later(1, r.service.limit, what, None)  # of a process that began meanwhile
        r.later(5 * r.t.scale, r.enough)
    return f"{soft}"


@action("world", 2)
def names_change(r, draw):
    from place import NAMED_HOSTS
    hosts = draw.sample(NAMED_HOSTS, draw.choice((0, 1, 1, 2, 3)))
    r.place.names.hosts = hosts
    return str(hosts)


@action("world", 1)
def abuse(r, draw):
    """A client that is none, from an address of its own."""
    listener = draw.choice(r.place.listeners)
    address = next((a for a in listener.addresses if a.startswith("127.") or "ban =" not in listener.options), None)
    if address is None:
        return "would ban others"
    with contextlib.suppress(OSError):
        family, where = net.parse(address)
        for _ in range(5):
            with contextlib.closing(socket.socket(family)) as s:
                s.settimeout(0.3)
                if address.startswith("127."):
                    s.bind(("127.0.9.9", 0))
                s.connect(where)
                s.sendall(draw.choice(ABUSE))
                s.recv(100)
    return address
