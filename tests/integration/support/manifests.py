"""manifests: those of conf/kubernetes, and what the models of Kubernetes' API say about them."""

import re
import sys
from pathlib import Path

from support.case import Failed, Skipped, check

# where Debian has them, whichever Python this is
sys.path.append("/usr/lib/python3/dist-packages")

DIRECTORY = Path(__file__).resolve().parents[3] / "conf/kubernetes"
SCALARS = {"str": str, "int": int, "bool": bool, "datetime": str}


def load(name):
    """The objects of a file."""
    try:
        import yaml
    except ImportError:
        raise Skipped("python3-yaml is not installed") from None
    with open(DIRECTORY / name, encoding="utf-8") as f:
        return list(yaml.safe_load_all(f))


def models():
    """The classes that Kubernetes publishes for Python, made of the API's schemas."""
    try:
        from kubernetes.client import models as found
    except ImportError:
        raise Skipped("python3-kubernetes is not installed") from None
    return found


def model_of(thing):
    """The class of an object, by its apiVersion and kind."""
    group, _, version = thing["apiVersion"].rpartition("/")
    check(group in ("", "apps", "policy"), f"no schema of {thing['apiVersion']}")
    return f"{version.capitalize()}{thing['kind']}"


def expect_valid(thing, kind, where):
    """Fail at a key that the schema does not have, one that it requires, or another type of value."""
    inner = re.fullmatch(r"(?:list\[|dict\(str, )(.*)[\])]", kind)
    if inner:
        many = thing if kind.startswith("list") else thing.values() if isinstance(thing, dict) else None
        check(isinstance(thing, list if kind.startswith("list") else dict), f"{where}: {thing!r} is no {kind}")
        for i, value in enumerate(many):
            expect_valid(value, inner.group(1), f"{where}[{i}]")
    elif kind in SCALARS:
        check(type(thing) is SCALARS[kind], f"{where}: {thing!r} is no {kind}")
    elif kind != "object":
        _expect_model(thing, kind, where)


def _expect_model(thing, kind, where):
    model = getattr(models(), kind)
    check(isinstance(thing, dict), f"{where}: {thing!r} is no {kind}")
    names = {key: name for name, key in model.attribute_map.items()}
    for key, value in thing.items():
        check(key in names, f"{where}: {kind} has no {key}")
        expect_valid(value, model.openapi_types[names[key]], f"{where}.{key}")
    try:
        model(**{names[key]: value for key, value in thing.items()})  # which refuses what the schema forbids
    except ValueError as error:
        raise Failed(f"{where}: {error}") from None


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def mib(text):
    return int(re.fullmatch(r"(\d+)(?:m|Mi)", text).group(1))


class Workload:
    """A Deployment or DaemonSet."""

    def __init__(self, name):
        [self.object] = load(name)
        self.pod = self.object["spec"]["template"]["spec"]
        [self.container] = self.pod["containers"]
        self.labels = self.object["spec"]["template"]["metadata"]["labels"]

    def port(self, name):
        return {port["name"]: port["containerPort"] for port in self.container["ports"]}[name]

    def volume(self, path):
        """The volume that is mounted there."""
        [name] = [mount["name"] for mount in self.container["volumeMounts"] if mount["mountPath"] == path]
        return {volume["name"]: volume for volume in self.pod["volumes"]}[name]


def configuration():
    """The text of reactord.ini in the ConfigMap."""
    [config_map] = load("configmap.yaml")
    return config_map["data"]["reactord.ini"]


def option(text, name):
    return re.search(rf"^{name} *= *(.*)$", text, re.MULTILINE).group(1)
