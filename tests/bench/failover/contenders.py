"""contenders: the proxies, all with the same timings."""

from failover.server import CHECK_PORT, SERVER_PORT
from runner.contender import Contender

CHECK_MS = 500  # the most a check may take
FALL = 2        # checks, or connections, that fail in a row

TIMINGS = {
    "SERVER_PORT": SERVER_PORT,
    "CHECK_PORT": CHECK_PORT,
    "INTERVAL_MS": 500,
    "CHECK_MS": CHECK_MS,
    "RISE": 2,
    "FALL": FALL,
    "CONNECT_MS": 1000,
    # How long a server is left alone after failures of clients; nginx counts in seconds.
    "PASSIVE_MS": 1000,
    "PASSIVE_S": 1,
}


# What a check by reactord is, or that there is none.
CHECK = 'check = tcp\ncheck_send = "GET / HTTP/1.0\\r\\n\\r\\n"\ncheck_expect = alive'
NO_CHECK = "check = off"


def all_contenders(options):
    """Every contender there is, by name, in the order of the table."""
    def reactord(name, check, on_down):
        return Contender(name, options.reactord, ["-c", "@CONFIG@"],
                         {"proxy": "failover-reactord.ini.in"},
                         values={**TIMINGS, "CHECK": check, "ON_DOWN": on_down})

    def haproxy(name, command, on_down=""):
        return Contender(name, command, ["-db", "-q", "-f", "@CONFIG@"],
                         {"proxy": "failover-haproxy.cfg.in"},
                         values={**TIMINGS, "ON_DOWN": on_down})

    contenders = [
        reactord("reactord", CHECK, "keep"),
        reactord("reactord-close", CHECK, "close"),
        reactord("reactord-passive", NO_CHECK, "keep"),
        haproxy("haproxy", options.haproxy),
        haproxy("haproxy-close", options.haproxy, "on-marked-down shutdown-sessions"),
        haproxy("haproxy3", options.haproxy3),
        haproxy("haproxy3-close", options.haproxy3, "on-marked-down shutdown-sessions"),
        Contender("nginx", options.nginx, ["-e", "stderr", "-c", "@CONFIG@"],
                  {"proxy": "failover-nginx.conf.in"}, has_worker=True, values=TIMINGS),
    ]
    return {contender.name: contender for contender in contenders}
