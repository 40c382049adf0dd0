"""reload_servers: names and health checks of another configuration, used while clients come."""

import signal
import time

from support import net
from support.case import check, check_equal, test
from support.name_records import DNSMASQ, EVERY_SECOND, Load, addresses, named, servers, where
from support.names import NameServer, RESOLVER
from support.own_network import NameServer as SilentNameServer, SLOW_RESOLVER, own_names, own_network
from support.server import Counted, Moody
from support.upstreams import config, who
from support.watch import Watch
from test_checks import checked, wait_down, wait_up


# Names


@test(needs=DNSMASQ)
def another_name_under_load(t):
    """a server gets another name: it is looked up before, so that no client fails, and all that come
    afterwards are led to its address; the name before is not looked up any more"""
    front = t.address()
    with named(t, ("here.test", "127.0.1.1"), ("there.test", "127.0.1.2")) as (names, _, port):
        def text(name):
            return config(front, {"only": f"{name}:{port}"}, EVERY_SECOND)

        with t.daemon(text("here.test")) as daemon, Load(front):
            check_equal(addresses(front, 5), {"127.0.1.1"}, "where clients are led to")
            for name, address in (("there.test", "127.0.1.2"), ("here.test", "127.0.1.1")) * 3:
                daemon.reload(text(name))
                check_equal(addresses(front, 5), {address}, f"where {name} leads to")
            names.changes([("here.test", "127.0.1.1"), ("there.test", "127.0.1.3")])
            time.sleep(1.5)
            check_equal(servers(daemon), [f"only@127.0.1.1:{port}"], "the servers")
            check(not daemon.log_lines(r"127\.0\.1\.3"), "the name before is looked up")


@test(needs=DNSMASQ)
def names_come_and_go(t):
    """names are added to an upstream and removed; those that stay are not looked up for it"""
    front = t.address()
    records = [(f"{name}.test", f"127.0.1.{i}") for i, name in enumerate("abc", 1)]
    with named(t, *records) as (_, _, port):
        def text(words):
            return config(front, {name: f"{name}.test:{port}" for name in words},
                          "resolve_interval = 1h\nbalance = random\n")

        with t.daemon("[reactord]\nlog_level = info\n" + text("a")) as daemon, Load(front):
            for words in ("abc", "bc", "c", "ab"):
                daemon.reload("[reactord]\nlog_level = info\n" + text(words))
                check_equal(sorted(servers(daemon)),
                            [f"{name}@127.0.1.{'abc'.index(name) + 1}:{port}" for name in words],
                            "the servers")
            known = [len(daemon.log_lines(rf"server {name} .*the name is known")) for name in "abc"]
            check_equal(known, [2, 2, 1], "times that a, b and c were new")


@test()
def silent_name_server(t):
    """a name server that does not answer delays a reload by three seconds, and no client; the server
    is used when its name is known"""
    front = t.address()
    with SilentNameServer() as name_server, Counted(t.address()) as near, \
            Counted(f"127.0.0.1:{t.port()}") as far:
        own_names(t, "dns", servers=SLOW_RESOLVER)
        both = {"near": near.address, "far": "far.test:" + far.address.rpartition(":")[2]}
        with t.daemon(config(front, {"near": near.address})) as daemon:
            watch = Watch()
            clients = net.Task(lambda: [exchange_once(front) for _ in range(50)])
            lines = daemon.reload(config(front, both))
            watch.expect(3, 3 + 2 * t.scale, "it was done")
            check(any("server far (far.test:" in line and "still being looked up" in line
                      for line in lines), f"the name is not said: {lines}")
            clients.result()
            check_equal(far.total, 0, "clients of the server without an address")
            name_server.speak()
            t.eventually(lambda: exchange_once(front) or far.total > 0, "far has a client", within=14)


@test()
def stop_while_names_are_looked_up(t):
    """SIGTERM while a reload waits for a name server that does not answer: the reload is given up"""
    front = t.address()
    with SilentNameServer(), Counted(t.address()) as near:
        own_names(t, "dns", servers=SLOW_RESOLVER)
        with t.daemon(config(front, {"near": near.address})) as daemon:
            daemon.config_path.write_text(config(front, {"far": "far.test:7"}), encoding="utf-8")
            daemon.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            check_equal(daemon.log_lines("reload: (done|refused)"), [], "the reload is over")
            daemon.send_signal(signal.SIGTERM)
            t.eventually(lambda: daemon.log_lines("draining"), "it drains", within=1.5)
            check(daemon.log_lines("reload: refused: draining"), "it is not said")
            daemon.wait()


def exchange_once(front):
    """Falsy, so that t.eventually goes on."""
    with net.connect(front) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test(needs=DNSMASQ)
def required_name(t):
    """with resolve_required an unknown name refuses the reload, by name, and nothing is changed"""
    front = t.address()
    with named(t, ("here.test", "127.0.1.1")) as (_, _, port):
        text = config(front, {"a": f"here.test:{port}"})
        both = config(front, {"a": f"here.test:{port}", "b": f"nowhere.test:{port}"},
                      "resolve_required = yes")
        with t.daemon(text) as daemon:
            lines = daemon.reload(both, wanted="refused")
            check(any(f"server b (nowhere.test:{port}): the name has no address yet: there is no such name; "
                      "resolve_required demands one" in line for line in lines),
                  f"the name is not said: {lines}")
            check_equal(servers(daemon), [f"a@127.0.1.1:{port}"], "the servers")
            check_equal(where(front), "127.0.1.1", "where a client is led to")


@test(needs=DNSMASQ)
def new_listener_that_leads_back(t):
    """a listener that is added at an address that a name leads to: the address is not used any more"""
    front, port = t.address(), t.port()
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    records = [("two.test", "127.0.1.1"), ("two.test", "127.0.1.2")]
    options = "resolve_interval = 1h\nbalance = random\n"
    with NameServer(t, records), Counted(f"127.0.1.1:{port}", greets=True), \
            t.daemon(config(front, {"only": f"two.test:{port}"}, options)) as daemon:
        with Counted(f"127.0.1.2:{port}", greets=True):
            check_equal(addresses(front, 20), {"127.0.1.1", "127.0.1.2"}, "where clients are led to")
        daemon.reload(config(f"{front}, 127.0.1.2:{port}", {"only": f"two.test:{port}"}, options))
        t.eventually(lambda: servers(daemon) == [f"only@127.0.1.1:{port}"], "the address is left out")
        check(daemon.log_lines(rf"proxy loop: 127.0.1.2:{port} is a listener"), "it is not said")


# Health checks


@test()
def checks_on_and_off(t):
    """checks that are switched on take a server down after `fall` checks, not before; without them it
    counts as up again"""
    front = t.address()
    with Moody("a", t.address()) as a, Moody("b", t.address()) as b:
        both = {"a": a.address, "b": b.address}
        unchecked = config(front, both, "eject_failures = 0")
        with t.daemon(unchecked) as daemon:
            daemon.reload(checked(front, both, initial_state="checked", eject_failures=0))
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers at first")
            a.becomes("refuses")
            wait_down(t, daemon, why="connection refused")
            check_equal({who(front) for _ in range(6)}, {"b"}, "the servers while a is down")
            a.becomes("works")
            wait_up(t, daemon)
            a.becomes("refuses")
            wait_down(t, daemon, times=2)
            a.becomes("works")
            daemon.reload(unchecked)
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers without checks")


@test()
def health_stays(t):
    """another interval, other thresholds and another script leave a server down, or up"""
    front = t.address()
    with Moody("a", t.address()) as a, Moody("b", t.address()) as b:
        both = {"a": a.address, "b": b.address}
        a.becomes("refuses")
        with t.daemon(checked(front, both)) as daemon:
            wait_down(t, daemon)
            for options in ({"rise": 1000}, {"check_interval": "1h"}, {"initial_state": "checked"},
                            {"check_expect": "b", "rise": 1000, "fall": 1000}):
                daemon.reload(checked(front, both, **options))
                check_equal({who(front) for _ in range(6)}, {"b"}, f"the servers with {options}")
            a.becomes("works")
            check_equal({who(front) for _ in range(6)}, {"b"}, "the servers before a check")
            daemon.reload(checked(front, both, check_interval="20ms"))
            wait_up(t, daemon)
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers")
            check_equal(len(daemon.log_lines("server [ab]: down: ")), 1, "times that any was down")


@test()
def new_server_that_is_checked_first(t):
    """with initial_state = checked a server that is added gets clients when its first check has passed"""
    front = t.address()
    with Moody("a", t.address()) as a, Moody("b", t.address()) as b:
        b.becomes("refuses")
        with t.daemon(checked(front, {"a": a.address}, initial_state="checked")) as daemon:
            t.eventually(lambda: who(front) == "a", "a is up")
            daemon.reload(checked(front, {"a": a.address, "b": b.address}, initial_state="checked",
                                  rise=1, eject_failures=0))
            check_equal({who(front) for _ in range(20)}, {"a"}, "the servers")
            check(not daemon.log_lines("cannot connect"), "a client was sent to b")
            b.becomes("works")
            wait_up(t, daemon, "b", rise=1)
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers")
