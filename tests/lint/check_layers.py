#!/usr/bin/env python3
"""The layer rule, read from the includes.

    daemon -> upgrade -> reload -> log -> system -> admin -> config -> option -> handover -> server -> spare -> sessions
           -> listen -> service -> handlers -> names -> upstream -> check -> balance -> limits -> tls -> stats -> net
           -> engine -> ini -> base

reactorctl is another program, in `ctl`: of the layers it uses base.

A file includes only its own layer and those to the right of it, an _internal.h only of its own layer, no two files
include each other in a circle, and each foreign library is known in its own place only.
"""
import pathlib
import re
import sys

LAYERS = ["base", "ini", "engine", "net", "stats", "tls", "limits", "balance", "check", "upstream", "names",
          "handlers", "service", "listen", "sessions", "spare", "server", "handover", "option", "config", "admin",
          "system", "log", "reload", "upgrade", "daemon"]
PROGRAM = "ctl"
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)

# Which files may know a library: by the start of their path.
LIBRARIES = {
    "ev.h": ["engine/", "net/", "admin/admin_http.c"],
    "pthread.h": ["engine/", "tls/tls_handshakes.c"],
    "resolv.h": ["net/dns.c"],
    "microhttpd.h": ["admin/admin_http.c"],
    "jansson.h": ["admin/", "ctl/"],
    "iniparser/": ["ini/ini_adapter.c"],
    "systemd/": ["system/", "upgrade/", "daemon/"],
    "curl/": ["ctl/ctl_client.c"],
    "openssl/": ["tls/"],
}


def includes(source):
    return INCLUDE.findall(source.read_text())


def check_file(name, found, problems):
    layer = name.split("/")[0]
    for kind, target in found:
        if kind == '"':
            other = target.split("/")[0]
            if layer == PROGRAM and other in (PROGRAM, "base"):
                pass
            elif layer == PROGRAM or other not in LAYERS:
                problems.append(f"src/{name}: \"{target}\" is not named by its layer")
            elif LAYERS.index(other) > LAYERS.index(layer):
                problems.append(f"src/{name}: {layer} may not include {target}")
            elif other != layer and target.endswith("_internal.h"):
                problems.append(f"src/{name}: {target} is for {other} only")
        for library, places in LIBRARIES.items():
            if kind == "<" and target.startswith(library):
                if not any(name.startswith(place) for place in places):
                    problems.append(f"src/{name}: <{target}> belongs to {', '.join(places)}")


def find_circle(graph):
    """A list of headers that include each other in a circle, or None."""
    done = set()

    def visit(node, path):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        for follow in graph.get(node, []):
            circle = visit(follow, path + [node])
            if circle:
                return circle
        done.add(node)
        return None

    for start in graph:
        circle = visit(start, [])
        if circle:
            return circle
    return None


def main():
    src = pathlib.Path(__file__).resolve().parents[2] / "src"
    problems, graph, count = [], {}, 0
    for source in sorted(src.rglob("*.[ch]")):
        name = str(source.relative_to(src))
        found = includes(source)
        check_file(name, found, problems)
        graph[name] = [target for kind, target in found if kind == '"']
        count += 1
    circle = find_circle({name: to for name, to in graph.items() if name.endswith(".h")})
    if circle:
        problems.append("headers include each other: " + " -> ".join(circle))
    readme = (src.parent / "README.md").read_text()
    problems += [f"README.md: src/{layer} has no line" for layer in LAYERS if f"\n| `{layer}` |" not in readme]
    if count == 0:
        problems.append("no source was found")
    print("\n".join(problems) if problems else f"layers: {count} files keep the rule")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
