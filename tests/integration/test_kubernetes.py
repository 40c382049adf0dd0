"""kubernetes: the manifests of conf/kubernetes are valid, and agree with each other, the image and reactord's options."""

import re

from support.case import check, check_equal, test
from support.container import USER, ConfigMap, Container
from support.manifests import DIRECTORY, Workload, configuration, expect_valid, load, mib, model_of, option, seconds
from support.own_network import own_network

WORKLOADS = ["deployment.yaml", "daemonset.yaml"]
OWN_KINDS = ["servicemonitor.yaml"]  # of the Prometheus operator: no package of Debian has its schema
LOOPS_END_S = 6  # reactord(8), STOPPING
TOKEN = "/run/secrets/reactord/token"


@test(each={"name": sorted(path.name for path in DIRECTORY.glob("*.yaml") if path.name not in OWN_KINDS)})
def schemas(t, name):
    """{name} is as the models of Kubernetes' API say"""
    for thing in load(name):
        expect_valid(thing, model_of(thing), f"{name}: {thing['kind']}")


@test()
def configuration_is_valid(t):
    """reactord -t accepts the configuration of the ConfigMap"""
    path = t.write("reactord.ini", configuration().replace(TOKEN, t.write("token", "0123456789abcdef\n")))
    (t.dir / "token").chmod(0o400)
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 0, f"exit code with {done.err}")


@test(each={"name": WORKLOADS})
def times_and_limits(t, name):
    """{name}: the grace is longer than the drain, the memory of the container more than max_memory"""
    workload, text = Workload(name), configuration()
    hook = workload.container.get("lifecycle", {}).get("preStop", {})
    check(not hook, "its time would be a part of the grace, too")
    drain_s = seconds(option(text, "drain_delay")) + seconds(option(text, "drain_timeout")) + LOOPS_END_S
    grace_s = workload.pod["terminationGracePeriodSeconds"]
    check(grace_s > drain_s, f"a grace of {grace_s} s for {drain_s} s")
    limit = mib(workload.container["resources"]["limits"]["memory"])
    check(mib(option(text, "max_memory")) <= limit * 2 // 3, f"max_memory {option(text, 'max_memory')} of {limit} MiB")
    probe = workload.container["readinessProbe"]
    noticed_s = probe["periodSeconds"] * probe["failureThreshold"]
    check(noticed_s < seconds(option(text, "drain_delay")), f"{noticed_s} s until it is not ready")


@test(each={"name": WORKLOADS})
def ports_and_paths(t, name):
    """{name}: ports are those of the configuration, probes ask the admin interface, directories are mounted"""
    workload, text = Workload(name), configuration()
    listen = {section: re.search(rf"^\[{section}\]\n(?:.*\n)*?address *= *(.*)$", text, re.MULTILINE).group(1)
              for section in ("admin", "listen front")}
    check(listen["admin"].endswith(f"*:{workload.port('admin')}"), f"[admin] listens on {listen['admin']}")
    check_equal(listen["listen front"], f"*:{workload.port('front')}", "the listener's address")
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/healthz"), ("startupProbe", "/healthz")):
        check_equal(workload.container[probe]["httpGet"], {"path": path, "port": "admin"}, probe)
    check_equal(workload.volume("/etc/reactord")["configMap"]["name"], "reactord", "the ConfigMap")
    check_equal(option(text, "token_file"), TOKEN, "the token's file")
    secret = workload.volume("/run/secrets/reactord")["secret"]
    check_equal(secret["defaultMode"] & 0o007, 0, "what others may do with the token")
    check("emptyDir" in workload.volume("/run/reactord"), "the directory of the admin socket cannot be written to")


@test(each={"name": WORKLOADS})
def user_and_rights(t, name):
    """{name}: the user is that of the image, with a read-only root and no capability"""
    workload = Workload(name)
    pod, own = workload.pod["securityContext"], workload.container["securityContext"]
    check_equal([pod[key] for key in ("runAsUser", "runAsGroup", "fsGroup")], [USER] * 3, "the user")
    check(pod["runAsNonRoot"] and own["readOnlyRootFilesystem"], "root, or a root that can be written to")
    check(own["allowPrivilegeEscalation"] is False, "privileges may be escalated")
    check_equal(own["capabilities"], {"drop": ["ALL"]}, "capabilities")
    check(workload.port("front") >= 1024, "a port that needs a capability")


@test(each={"name": WORKLOADS})
def selectors(t, name):
    """{name}: services, budget and monitor select its pods, and Prometheus gets the token that reactord has"""
    workload = Workload(name)
    services = {thing["metadata"]["name"]: thing for thing in load("service.yaml")}
    [budget], [monitor] = load("pdb.yaml"), load("servicemonitor.yaml")
    for selector in (workload.object["spec"]["selector"]["matchLabels"], budget["spec"]["selector"]["matchLabels"],
                     services["reactord"]["spec"]["selector"], services["reactord-admin"]["spec"]["selector"]):
        check(selector.items() <= workload.labels.items(), f"{selector} does not select {workload.labels}")
    chosen = [service for service in services.values()
              if monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"].get("labels", {}).items()]
    check_equal([service["metadata"]["name"] for service in chosen], ["reactord-admin"], "the services monitored")
    [endpoint] = monitor["spec"]["endpoints"]
    check_equal((endpoint["port"], endpoint["path"]), (chosen[0]["spec"]["ports"][0]["name"], "/metrics"), "what is asked")
    credentials = endpoint["authorization"]["credentials"]
    secret = workload.volume("/run/secrets/reactord")["secret"]["secretName"]
    check_equal(f"{credentials['name']}/{credentials['key']}", f"{secret}/{TOKEN.rpartition('/')[2]}", "the token")
    for service in ("reactord", "reactord-admin"):
        for port in services[service]["spec"]["ports"]:
            check_equal(port["port"], workload.port(port["targetPort"]), f"the port of {service}")


@test()
def service_of_the_servers(t):
    """the SRV name of the upstream is that of a named port of a headless Service"""
    name = option(configuration(), r"server\.pods")
    port, service, namespace = re.fullmatch(r"_(\w+)\._tcp\.(\w+)\.(\w+)\.svc\.cluster\.local", name).groups()
    [found] = [thing for thing in load("service.yaml") if thing["metadata"]["name"] == service]
    check_equal(found["spec"]["clusterIP"], "None", "the cluster's address")
    check_equal(found["metadata"]["namespace"], namespace, "its namespace")
    check_equal([p["name"] for p in found["spec"]["ports"]], [port], "the port's name")


@test(needs=("crun", "unshare", "nsenter", "strip"), timeout=60)
def deployment_in_a_container(t):
    """the container of the Deployment starts with its ConfigMap and no capability, and each probe succeeds"""
    workload = Workload("deployment.yaml")
    own_network()
    secret = ConfigMap(t, "secret", token="0123456789abcdef\n")
    files = ConfigMap(t, "config-map", **{"reactord.ini": configuration()})
    mib_limit = mib(workload.container["resources"]["limits"]["memory"])
    limits = {"memory": {"limit": mib_limit << 20}, "cpu": {"quota": 200000, "period": 100000}}
    with Container(t, files, resources=limits, capabilities=[], volumes={"/run/secrets/reactord": secret.path}) as pod:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            how = workload.container[probe]["httpGet"]
            check_equal(pod.get(how["path"], f"127.0.0.1:{workload.port(how['port'])}"), 200, probe)
        check_equal(int(pod.status("CapBnd"), 16), 0, "capabilities")
        pod.execute("/usr/bin/reactorctl", "status")
