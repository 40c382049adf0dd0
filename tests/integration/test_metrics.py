"""metrics: what a Prometheus server gets, beside SIGRTMIN and JSON."""

import contextlib
import os
import re
import socket
import threading
import time

from support import net, thread
from support.admin import get, read_answer, section, write_request
from support.case import check, check_equal, test
from support.scrapes import config, echo, promtool, scrape, socket_of, talk
from support.tls import Authority

SAMPLE = re.compile(r'([a-z_]+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def listed(t, what):
    """The array of /v1/WHAT."""
    answer = get(socket_of(t), f"/v1/{what}")
    check_equal((answer.status, answer.headers["content-type"]), (200, "application/json"), what)
    return answer.json[what]


def admin_tasks(t):
    """How many tasks the loop of the admin interface has run."""
    return sum(loop["tasks_run"] for loop in listed(t, "loops") if loop["name"].startswith("admn-"))


def samples(text):
    """{(metric, (label, value), ...): number}; each must be there once."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        check(match, f"not a sample: {line}")
        key = (match[1], *sorted(LABEL.findall(match[2] or "")))
        check(key not in found, f"twice: {line}")
        found[key] = float(match[3])
    return found


def ended(t, listener="front"):
    return sum(value for key, value in samples(scrape(t)).items()
               if key[0] == "reactord_listener_sessions_ended_total" and ("listener", listener) in key)


@test(needs=["promtool"])
def metrics_are_clean(t):
    """promtool finds nothing in the metrics of a daemon with all kinds of objects"""
    front, framed = t.address(), t.address()
    more = (f"[reactord]\nmax_buffered = 1G\nallow_faults = yes\n"
            f"[listen framed]\naddress = {framed}, {t.path('framed.sock')}\nservice = echo\npipeline = frame\n"
            "frame_by = delimiter\nfault_drop = 50\nmirror = back\ndeny = 192.0.2.1\n"
            "max_connections_per_client = 10\n")
    with echo(t) as server, t.daemon(config(t, front, {"a": server}, "spare = 1\n", more)):
        talk(front, 3)
        text = scrape(t)
    check_equal(promtool("check", "metrics", stdin=text), "", "what promtool says")
    names = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    for name in ("reactord_listener_denied_total", "reactord_listener_clients_known",
                 "reactord_listener_mirrors_total", "reactord_listener_frames_too_long_total",
                 "reactord_listener_faults_total", "reactord_overload_buffered_bytes",
                 "reactord_server_spares", "reactord_access_log_lines_total",
                 "reactord_executor_threads", "reactord_process_reloads_total"):
        check(name in names, f"there is no {name}")
    check_equal(len(re.findall(r"^# TYPE ", text, re.M)), len(names), "families, each told once")
    samples(text)


def of_log(line):
    """(metric without its end, label, key, value) of the numbers in a line of a listener or upstream."""
    kind, name, rest = line.split(" ", 2)
    metric = {"listen": "listener"}.get(kind, kind)
    for key, value in re.findall(r"(\w+)=(\d+)\b(?!\.)", rest):
        yield metric, name, key, int(value)


@test()
def the_same_as_in_the_log(t):
    """metrics and JSON say what SIGRTMIN says, of listeners, upstreams, servers and access logs"""
    front = t.address()
    with echo(t) as server, t.daemon(config(t, front, {"a": server, "b": server})) as daemon:
        talk(front, 7)
        t.eventually(lambda: ended(t) == 7, "the ends of 7 sessions")
        t.eventually(lambda: daemon.counts(f"access_log {t.path('access.log')}")["lines"] == 7, "7 lines")
        found = samples(scrape(t))
        reasons = {key: value for key, value in found.items() if "_ended_" in key[0]}
        seen = 0
        for kind in ("listen", "upstream", "server", "access_log"):
            for line in daemon.statistics(kind + " "):
                for metric, name, key, value in of_log(line):
                    owner, _, server_name = name.rpartition("/")
                    labels = ((("server", server_name), ("upstream", owner)) if kind == "server"
                              else ((metric, name),))
                    by_reason = (f"reactord_{metric}_sessions_ended_total", *sorted((*labels, ("reason", key))))
                    ends = [f"reactord_{metric}_{key}{end}" for end in ("", "_total", "_bytes")]
                    values = [found[(end, *labels)] for end in ends if (end, *labels) in found]
                    values += [reasons[by_reason]] if by_reason in reasons else []
                    if key == "connects" or key.startswith("under_"):
                        continue
                    check(values, f"no metric for {key} of {line}")
                    check_equal(values[0], float(value), f"{key} of {kind} {name}")
                    seen += 1
        check(seen > 30, f"only {seen} values were compared")
        for name in ("connect", "first_byte"):
            check_equal(sum(found[(f"reactord_server_{name}_duration_seconds_count", ("server", server), ("upstream", "back"))]
                            for server in "ab"), 7, name)
        for labels in (("listener", "front"), ("upstream", "back")):
            name = f"reactord_{labels[0]}_session_duration_seconds_count"
            check_equal(found[(name, labels)], 7, name)
        listener = listed(t, "listeners")[0]
        wanted = {"name": "front", "service": "proxy", "upstream": "back", "addresses": [front],
                  "state": "accepting", "sessions_total": 7, "bytes_in": 35}
        check_equal({key: listener[key] for key in wanted}, wanted, "the listener")
        check_equal(listener["ended"]["client_fin"], 7, "its ends")
        upstream = listed(t, "upstreams")[0]
        check_equal([s["name"] for s in upstream["servers"]], ["a", "b"], "servers")
        check_equal(upstream["servers"][0]["address"], server, "address")
        check_equal(sum(s["connect_duration"]["count"] for s in upstream["servers"]), 7, "connects")
        loops = {loop["name"]: loop for loop in listed(t, "loops")}
        wanted = {"work-2-1", "ctrl-4-1", "admn-5-1"} | (set() if t.workers_accept else {"boss-1-1"})
        check(wanted <= set(loops), f"loops: {list(loops)}")
        check(loops["work-2-1"]["turn"]["count"] > 0, "no turn")


@test()
def histograms_are_whole(t):
    """buckets of a histogram never fall with their limit, and the last is the count"""
    front = t.address()
    with echo(t) as server, t.daemon(config(t, front, {"a": server})):
        talk(front, 20)
        found = samples(scrape(t))
    groups = {}
    for (name, *labels), value in found.items():
        if name.endswith("_bucket"):
            le = dict(labels)["le"]
            rest = tuple(label for label in labels if label[0] != "le")
            groups.setdefault((name, rest), []).append((float(le), value))
    check(len(groups) > 5, f"histograms: {len(groups)}")
    for (name, rest), buckets in groups.items():
        values = [value for _, value in sorted(buckets)]
        check(values == sorted(values), f"{name} {rest}: {values}")
        check_equal(values[-1], found[(name.removesuffix("_bucket") + "_count", *rest)], f"{name} {rest}")


@test()
def counters_survive_reloads(t):
    """no counter falls, and no series is told twice, while the configuration changes"""
    front = t.address()
    with echo(t) as server:
        first = config(t, front, {"a": server, "b": server})
        with t.daemon(first) as daemon:
            before = {}
            for i in range(6):
                talk(front, 5)
                more = "[listen other]\naddress = " + t.address() + "\nservice = echo\n" if i % 2 else ""
                daemon.reload(config(t, front, {"a": server, **({"c": server} if i % 3 else {"b": server})},
                                     f"queue_length = {i + 1}\n", more))
                now = samples(scrape(t))
                for key, value in before.items():
                    if key[0].endswith(("_total", "_bucket", "_count", "_sum")) and key in now:
                        check(now[key] >= value, f"{key} fell from {value} to {now[key]}")
                before = now
            check_equal(now[("reactord_process_reloads_total",)], 6, "reloads")
            total = now[("reactord_listener_sessions_total", ("listener", "front"))]
            check_equal(total, 30, "sessions over six reloads")
            daemon.config_path.write_text("[listen x]\n", encoding="utf-8")
            daemon.reload(wanted="refused")
            t.eventually(lambda: samples(scrape(t))[("reactord_process_reloads_failed_total",)] == 1,
                         "the failed reload")


@test()
def servers_are_bounded(t):
    """servers above metrics_servers have no metrics, but are counted, and are in the JSON"""
    front = t.address()
    servers = {f"s{i}": f"127.0.0.{i + 1}:9" for i in range(20)}
    text = config(t, front, servers, admin="metrics_servers = 5\n")
    with t.daemon(text) as daemon:
        found = samples(scrape(t))
        shown = {labels[0][1] for name, *labels in found if name == "reactord_server_sessions"}
        check_equal(shown, {"s0", "s1", "s2", "s3", "s4"}, "servers")
        check_equal(found[("reactord_process_servers_left_out",)], 15, "left out")
        check_equal(found[("reactord_upstream_servers_up", ("upstream", "back"))], 20, "servers up")
        check_equal(len(listed(t, "upstreams")[0]["servers"]), 20, "in JSON")
        daemon.reload(text.replace("metrics_servers = 5", "metrics_servers = 0"))
        found = samples(scrape(t))
        check(not any(name.startswith("reactord_server_") for name, *_ in found), "a server has metrics")
        check_equal(found[("reactord_process_servers_left_out",)], 20, "left out")


@test()
def names_are_escaped(t):
    """the path of an access log may have quotes, backslashes and bytes that are no text"""
    path = t.path('a"b c.log')
    front = t.address()
    text = (section(socket_of(t))
            + f"[listen front]\naddress = {front}\nservice = echo\naccess_log = '{path}'\n")
    with t.daemon(text):
        found = samples(scrape(t))
    check(("reactord_access_log_lines_total", ("access_log", path.replace('"', '\\"'))) in found,
          f"{[key for key in found if 'access_log' in key[0]]}")


@test(needs=["openssl"])
def certificates_expire(t):
    """a certificate that has expired has negative seconds left, one for thousands of years has many, and one
    that is named twice is one series"""
    old, new = Authority(t).issue_expired("old.example"), t.path("new.pem")
    check_equal(t.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-keyout", t.path("new.key"), "-out", new, "-days", "2800000", "-subj", "/CN=new").code, 0,
                "openssl req")
    os.chmod(t.path("new.key"), 0o600)
    with t.daemon(section(socket_of(t)) + f"[listen e]\naddress = {t.address()}\nservice = echo\ntls = t\n"
                  f"[tls t]\ncertificate = {old}, {new}, {old}\n"):
        left = {dict(labels)["certificate"]: value for (name, *labels), value in samples(scrape(t)).items()
                if name == "reactord_certificate_expires_in_seconds"}
    check_equal(set(left), {old, new}, "series")
    check(-2 * 86400 <= left[old] <= -86400 and left[new] > 200 * 365 * 86400, f"seconds left: {left}")


@test(timeout=60, plain_only=True)
def a_thousand_servers_delay_nothing(t):
    """with 1,000 servers /metrics, listed all the time by four clients, is made in many short tasks"""
    front = t.address()
    servers = {f"s{i}": f"127.0.{i // 250}.{i % 250 + 1}:9" for i in range(1000)}
    with t.daemon(config(t, front, servers)) as daemon:
        before = admin_tasks(t)
        tasks = [net.Task(lambda: [len(scrape(t)) for _ in range(5)]) for _ in range(4)]
        while any(task.is_alive() for task in tasks):
            check_equal(get(socket_of(t), "/readyz").status, 200, "/readyz")
            time.sleep(0.01)
        sizes = [size for task in tasks for size in task.result()]
        check(min(sizes) > 1000 * 2000, f"sizes: {min(sizes)}")
        # Times say more of the machine: a thread may be kept from running at any place.
        each = (admin_tasks(t) - before) / len(sizes)
        check(each > 20, f"{each:.0f} tasks for each answer")


@test(timeout=60)
def scrapes_under_churn(t):
    """metrics and JSON are whole while clients come and go and each reload changes servers and threads"""
    front = t.address()
    over = threading.Event()

    def until_over(work):
        count = 0
        while not over.is_set():
            work()
            count += 1
        return count

    with echo(t) as server, t.daemon(config(t, front, {"a": server})) as daemon:
        tasks = [net.Task(until_over, work) for work in
                 (lambda: samples(scrape(t)), lambda: listed(t, "upstreams"), lambda: listed(t, "loops"),
                  lambda: listed(t, "listeners"), lambda: talk(front))]
        for i in range(10):
            servers = {f"s{n}": server for n in range(i % 3, i % 3 + 20)}
            more = f"[worker]\nthreads = {1 + i % 4}\n[listen other]\naddress = {t.address()}\nservice = echo\n"
            daemon.reload(config(t, front, servers, more=more))
        over.set()
        counts = [task.result() for task in tasks]
        check(min(counts) > 0, f"answers: {counts}")


@test()
def sixteen_at_a_time(t):
    """while 16 clients have not read their scrapes, the next is refused with 503; when they have, it is not"""
    servers = {f"s{i}": f"127.0.{i // 250}.{i % 250 + 1}:9" for i in range(500)}
    with t.daemon(config(t, t.address(), servers)), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(socket_of(t))) for _ in range(16)]
        for s in clients:
            write_request(s, "GET", "/metrics")
        for s in clients:
            check(s.recv(1, socket.MSG_PEEK), "an answer begins")
        answer = get(socket_of(t), "/metrics")
        check_equal((answer.status, answer.error),
                    (503, "too many at a time: 16 such answers are being sent"), "the next answer")
        for s in clients:
            check_equal(read_answer(s).status, 200, "status")
        samples(scrape(t))


@test()
def many_at_a_time(t):
    """100 scrapes at a time: each is whole, or refused with 503"""
    front = t.address()
    servers = {f"s{i}": f"127.0.{i // 250}.{i % 250 + 1}:9" for i in range(500)}
    options = "max_connections = 200\nrequest_timeout = 5m\n"
    with t.daemon(config(t, front, servers, admin=options)):
        clients = [net.connect(socket_of(t)) for _ in range(100)]
        for s in clients:
            write_request(s, "GET", "/metrics")
        answers = [read_answer(s) for s in clients]
        for s in clients:
            s.close()
        whole = [answer for answer in answers if answer.status == 200]
        check(whole, "no answer")
        for answer in whole:
            samples(answer.body.decode())
        refused = {(answer.status, answer.error) for answer in answers if answer.status != 200}
        check(refused <= {(503, "too many at a time: 16 such answers are being sent")}, f"refused: {refused}")
        samples(scrape(t))


@test()
def idle_readers_end(t):
    """a reader that reads nothing holds its answer only, and ends with its time"""
    front = t.address()
    servers = {f"s{i}": f"127.0.0.{i + 1}:9" for i in range(200)}
    text = config(t, front, servers, admin=f"request_timeout = {2 * t.scale}s\n")
    with t.daemon(text) as daemon:
        check(len(samples(scrape(t))) > 5000, "no metrics")
        t.eventually(lambda: thread.asleep(daemon.pid), "nothing goes on")
        fds = daemon.fd_count()
        idle = [net.connect(socket_of(t)) for _ in range(5)]
        for s in idle:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check(len(samples(scrape(t))) > 5000, "no metrics")
        t.eventually(lambda: daemon.fd_count() <= fds, "the idle readers are closed", within=20)
        for s in idle:
            s.close()


@test()
def the_process_ends_during_a_scrape(t):
    """SIGTERM while /metrics are made: the process ends, with all that was held freed"""
    front = t.address()
    servers = {f"s{i}": f"127.0.{i // 250}.{i % 250 + 1}:9" for i in range(1000)}
    with t.daemon(config(t, front, servers)) as daemon:
        clients = [net.connect(socket_of(t)) for _ in range(20)]
        for s in clients:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        daemon.stop()
        for s in clients:
            s.close()
