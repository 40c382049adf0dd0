"""metrics: Prometheus scrapes them; alerts and dashboard name metrics that exist."""

import json
import os
import re
import urllib.parse
import urllib.request

from support import program
from support.case import check, check_equal, test
from support.scrapes import config, echo, promtool, scrape, socket_of, talk
from support.tls import Authority

THEME = "metrics"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: reactord
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ['{address}']}}]
"""


def ask(port, path, **query):
    url = f"http://127.0.0.1:{port}{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


def value_of(port, expression):
    result = ask(port, "/api/v1/query", query=expression)["result"]
    return float(result[0]["value"][1]) if result else None


@test(timeout=90, needs=["prometheus", "promtool"], plain_only=True)
def a_prometheus_scrapes(t):
    """a Prometheus server scrapes over TCP with a token, and its rules for alerts have no error"""
    front, admin, port = t.address(), t.address(), t.port()
    token = t.write("token", "a-token-of-some-length-0123456789\n")
    os.chmod(token, 0o600)
    rules = os.path.join(ROOT, "conf/prometheus/reactord.rules.yml")
    with echo(t) as server:
        text = config(t, front, {"a": server, "b": t.address()}, "check = tcp\ncheck_interval = 100ms\nfall = 1\n")
        text = text.replace(f"address = {socket_of(t)}\n",
                            f"address = {socket_of(t)}, {admin}\ntoken_file = {token}\n", 1)
        conf = t.write("prometheus.yml", PROMETHEUS.format(
            rules=rules, token="a-token-of-some-length-0123456789", address=admin))
        command = ["prometheus", f"--config.file={conf}", f"--storage.tsdb.path={t.path('data')}",
                   f"--web.listen-address=127.0.0.1:{port}"]
        with t.daemon(text), program.server(t, command, port=port):
            talk(front, 5)
            t.eventually(lambda: value_of(port, 'reactord_listener_sessions_total{listener="front"}') == 5,
                         "five sessions in Prometheus", within=30)
            t.eventually(lambda: value_of(port, "reactord_upstream_servers_up") == 1, "one server up", within=30)
            check_equal(value_of(port, "up"), 1.0, "up")

            def evaluated():
                groups = ask(port, "/api/v1/rules")["groups"]
                rules_of = [rule for group in groups for rule in group["rules"]]
                bad = [rule["lastError"] for rule in rules_of if rule.get("lastError")]
                check(not bad, f"rules: {bad}")
                return rules_of and all(rule["health"] == "ok" for rule in rules_of)
            t.eventually(evaluated, "all rules evaluated", within=40)


def metric_names(expression):
    """The metrics in an expression, histograms without _bucket, _sum or _count."""
    return {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", word)
            for word in re.findall(r"\breactord_[a-z0-9_]+", expression)}


@test(needs=["promtool", "openssl"])
def alerts_and_dashboard_are_of_metrics_that_exist(t):
    """rules pass promtool and its unit tests; they and the dashboard name only metrics that exist"""
    promtool("check", "rules", f"{ROOT}/conf/prometheus/reactord.rules.yml")
    promtool("test", "rules", f"{ROOT}/conf/prometheus/reactord.rules_test.yml")
    promtool("check", "config", "--syntax-only", f"{ROOT}/conf/prometheus/prometheus.yml")
    front = t.address()
    more = ("[reactord]\nmax_buffered = 1G\n"
            f"[tls t]\ncertificate = {Authority(t).issue('a.example')}\n"
            f"[listen e]\naddress = {t.address()}\nservice = echo\ntls = t\n")
    with t.daemon(config(t, front, {"a": t.address()}, "spare = 1\n", more)):
        names = set(re.findall(r"^# TYPE (\S+)", scrape(t), re.M))
    with open(f"{ROOT}/conf/grafana/reactord.json", encoding="utf-8") as f:
        dashboard = json.load(f)
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    expressions += [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    check(len(expressions) > 10, "the dashboard has few expressions")
    with open(f"{ROOT}/conf/prometheus/reactord.rules.yml", encoding="utf-8") as f:
        rules = f.read()
    for text in [rules, *expressions]:
        unknown = metric_names(text) - names
        check(not unknown, f"no metric {unknown} in: {text[:200]}")
