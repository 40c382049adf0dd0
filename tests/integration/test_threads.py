"""threads: which processors they run on, what they have counted, and what is done about one that hangs."""

import os
import signal
import time

from support import net, thread
from support.case import Skipped, check, check_equal, test
from test_proxy import proxy

WORKERS_2 = "[worker]\nthreads = 2\n"


def echo(address, *sections):
    return "".join(sections) + f"[listen echo]\naddress = {address}\nservice = echo\n"


def one_client_each(address, workers):
    """So that each worker has started, as the chooser has it."""
    clients = [net.connect(address) for _ in range(workers)]
    for client in clients:
        net.exchange(client, b"hello")
        client.close()


def threads_of(t, daemon, *names):
    """Their numbers, once all of them have these names."""
    def all_of_them():
        found = thread.ids(daemon.pid)
        return found if set(names) <= set(found) else None
    return t.eventually(all_of_them, f"threads {', '.join(names)}")


def stats_lines(daemon, name):
    return daemon.log_lines(rf" main: stats .*\b{name}\b")


@test()
def statistics(t):
    """SIGRTMIN writes lines about every loop to the log, while a client is being served"""
    address = t.address()
    with t.daemon(echo(address, "[boss]\nthreads = 1\n", WORKERS_2)) as daemon, net.connect(address) as client:
        net.exchange(client, b"before")
        daemon.send_signal(signal.SIGRTMIN)
        for i in range(50):
            check_equal(net.exchange(client, b"%02d" % i), b"%02d" % i, "the echo")
        for name in ("boss-1-1", "work-2-1"):
            t.eventually(lambda name=name: stats_lines(daemon, name), f"a line about {name}")
        before = len(stats_lines(daemon, "work-2-1"))
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: len(stats_lines(daemon, "work-2-1")) > before, "another one")
        check_equal(net.exchange(client, b"after"), b"after", "the echo")


@test()
def own_io_ratio(t):
    """with io_ratio = auto a loop says what it has set and why, and a reload to a number ends that"""
    address = t.address()
    with t.daemon(echo(address, WORKERS_2, "io_ratio = auto\nqueue_wait_goal = 5ms\n")) as daemon:
        one_client_each(address, 2)
        line = daemon.statistics("work-2-1 ")[0]
        check(" io_ratio=50 io_ratio_reason=" in line and "fixed" not in line, line)
        daemon.reload(echo(address, WORKERS_2, "io_ratio = 60\n"))
        check(" io_ratio=60 io_ratio_reason=\"fixed\" " in daemon.statistics("work-2-1 ")[0], "fixed")


@test()
def statistics_while_draining(t):
    """SIGRTMIN is answered after SIGTERM too, and does not disturb the drain"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)) as daemon:
        with net.proxied(front, listener) as (client, server):
            daemon.send_signal(signal.SIGTERM)
            t.eventually(lambda: daemon.has_notified("STOPPING=1"), "STOPPING=1")
            daemon.send_signal(signal.SIGRTMIN)
            t.eventually(lambda: stats_lines(daemon, "work-2-1"), "a line about work-2-1")
            client.sendall(b"still")
            check_equal(net.read_exactly(server, 5), b"still", "what the server got")
        check_equal(daemon.wait(), 0, "exit code")


@test()
def on_one_processor(t):
    """cpu_affinity = N puts every thread of both groups on processor N, and no other thread"""
    address, cpu = t.address(), max(os.sched_getaffinity(0))
    config = echo(address, f"[boss]\nthreads = 1\ncpu_affinity = {cpu}\n", WORKERS_2, f"cpu_affinity = {cpu}\n")
    with t.daemon(config) as daemon:
        one_client_each(address, 2)
        ids = threads_of(t, daemon, "boss-1-1", "work-2-1", "work-2-2")
        for name in ("boss-1-1", "work-2-1", "work-2-2"):
            check_equal(thread.processors(daemon.pid, ids[name]), str(cpu), name)
        check_equal(thread.processors(daemon.pid, daemon.pid),
                    thread.processors(os.getpid(), os.getpid()), "the main thread")


@test()
def boss_on_one_processor(t):
    """cpu_affinity of [boss] is not for the workers, whose threads it starts"""
    address, cpu = t.address(), min(os.sched_getaffinity(0))
    with t.daemon(echo(address, f"[boss]\nthreads = 1\ncpu_affinity = {cpu}\n[worker]\nthreads = 1\n")) as daemon:
        one_client_each(address, 1)
        ids = threads_of(t, daemon, "boss-1-1", "work-2-1")
        check_equal(thread.processors(daemon.pid, ids["boss-1-1"]), str(cpu), "the boss")
        check_equal(thread.processors(daemon.pid, ids["work-2-1"]),
                    thread.processors(os.getpid(), os.getpid()), "a worker")


@test(each={"words": ["auto", "a list"]})
def on_one_processor_each(t, words):
    """cpu_affinity = {words} puts the threads on one processor each, in its order, and round again"""
    cpus = sorted(os.sched_getaffinity(0), reverse=words != "auto")
    if len(cpus) > 16:
        raise Skipped("too many processors")
    value = "auto" if words == "auto" else ", ".join(map(str, cpus))
    threads = len(cpus) + 1
    address = t.address()
    config = echo(address, f"[worker]\nthreads = {threads}\ncpu_affinity = {value}\n")
    with t.daemon(config) as daemon:
        one_client_each(address, threads)
        names = [f"work-2-{i + 1}" for i in range(threads)]
        ids = threads_of(t, daemon, *names)
        for i, name in enumerate(names):
            check_equal(thread.processors(daemon.pid, ids[name]), str(cpus[i % len(cpus)]), name)


@test(each=[{"started": "normal", "scheduling": "batch", "policy": os.SCHED_BATCH},
            {"started": "normal", "scheduling": "inherit", "policy": os.SCHED_OTHER},
            {"started": "idle", "scheduling": "batch", "policy": os.SCHED_IDLE}])
def scheduling(t, started, scheduling, policy):
    """scheduling = {scheduling} of a process that was started as {started} is for its boss thread only"""
    mine = os.SCHED_IDLE if started == "idle" else os.SCHED_OTHER
    os.sched_setscheduler(0, mine, os.sched_param(0))
    address = t.address()
    with t.daemon(echo(address, f"[boss]\nthreads = 1\nscheduling = {scheduling}\n[worker]\nthreads = 1\n")) as daemon:
        one_client_each(address, 1)
        ids = threads_of(t, daemon, "boss-1-1", "work-2-1")
        t.eventually(lambda: os.sched_getscheduler(ids["boss-1-1"]) == policy, "the boss's policy")
        check_equal(os.sched_getscheduler(ids["work-2-1"]), mine, "that of a worker")


@test(each=[{"section": "boss"}, {"section": "worker"}])
def impossible_processor(t, section):
    """a processor that does not exist ends the start with exit code 3 and is named in stderr"""
    if 1023 in os.sched_getaffinity(0):
        raise Skipped("there is a processor 1023")
    config = echo(t.address(), f"[{section}]\ncpu_affinity = {min(os.sched_getaffinity(0))}, 1023\n")
    path = t.write("c.ini", config)
    check_equal(t.reactord("-t", "-c", path).code, 0, "exit code of -t")
    done = t.reactord("-c", path)
    check_equal(done.code, 3, "exit code")
    check("1023" in done.err, f"stderr: {done.err}")


def fed(daemon):
    """How often the service manager was told WATCHDOG=1 so far."""
    daemon.has_notified("WATCHDOG=1")
    return daemon.notified.count("WATCHDOG=1")


@test()
def watchdog(t):
    """WATCHDOG=1 comes at least twice in WATCHDOG_USEC, while running and while draining"""
    front, back = t.address(), t.address()
    environment = {"WATCHDOG_USEC": "1000000"}
    with net.listen(back) as listener, \
            t.daemon(proxy(front, back), environment=environment) as daemon:
        with net.proxied(front, listener):
            before, began = fed(daemon), time.monotonic()
            t.eventually(lambda: fed(daemon) >= before + 6, "six signs of life", within=6)
            took = time.monotonic() - began
            check(took > 1, f"six signs of life within {took:.2f} s")
            daemon.send_signal(signal.SIGTERM)
            t.eventually(lambda: daemon.has_notified("STOPPING=1"), "STOPPING=1")
            before = fed(daemon)
            t.eventually(lambda: fed(daemon) >= before + 3, "signs of life while draining")
        check_equal(daemon.wait(), 0, "exit code")


@test()
def no_watchdog(t):
    """without WATCHDOG_USEC, or with another's WATCHDOG_PID, no WATCHDOG=1 is sent"""
    for environment in ({}, {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}):
        with t.daemon(echo(t.address()), environment=environment) as daemon:
            time.sleep(0.7)
            check_equal(fed(daemon), 0, "signs of life")


@test()
def stall(t):
    """a loop that is held in a turn is logged with what it is in, and WATCHDOG=1 is kept back until
    it goes on"""
    address = t.address()
    config = echo(address, "[worker]\nthreads = 1\nstall_threshold = 100ms\n")
    with t.daemon(config, environment={"WATCHDOG_USEC": "500000"}) as daemon, \
            net.connect(address) as client:
        net.exchange(client, b"hello")
        worker = threads_of(t, daemon, "work-2-1")["work-2-1"]
        with thread.held(daemon.pid, worker, lambda: client.sendall(b"stall")):
            t.eventually(lambda: daemon.log_lines(r"warning .*work-2-1"), "a line about the stall")
            t.eventually(lambda: daemon.log_lines("watchdog is not fed"), "a warning")
            before = fed(daemon)
            time.sleep(0.8)
            check_equal(fed(daemon), before, "signs of life")
            daemon.send_signal(signal.SIGRTMIN)
            t.eventually(lambda: stats_lines(daemon, "work-2-1"), "statistics during the stall")
        check_equal(net.read_exactly(client, 5), b"stall", "the echo after the stall")
        t.eventually(lambda: fed(daemon) > before, "a sign of life")
        t.eventually(lambda: daemon.log_lines("is fed again"), "a line about it")
        check_equal(len(daemon.log_lines("watchdog is not fed")), 1, "warnings")


@test(timeout=60)
def loop_that_hangs(t):
    """a loop that hangs does not hang the stop: it is named, the pid file goes, exit code 4"""
    address, pid_file = t.address(), t.path("reactord.pid")
    daemon = t.daemon(echo(address, f"[reactord]\npid_file = {pid_file}\n",
                           "[worker]\nthreads = 1\n"))
    daemon.start()
    try:
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            worker = threads_of(t, daemon, "work-2-1")["work-2-1"]
            with thread.held(daemon.pid, worker, lambda: client.sendall(b"hang")):
                daemon.send_signal(signal.SIGINT)
                thread.wait_end(worker)
        check_equal(daemon.wait(), 4, "exit code")
        check(daemon.log_lines(r"error .*work-2-1"), "the log does not name the thread")
        check(daemon.log_lines("error .*exits without cleanup"), "the log does not say how it ended")
        check(not os.path.exists(pid_file), "the pid file is still there")
        daemon.expect_no_report()
    finally:
        daemon.kill()
        daemon.notify.close()
