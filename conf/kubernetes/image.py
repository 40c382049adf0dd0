#!/usr/bin/env python3
"""An OCI image of reactord, from two programs and the shared libraries of this machine.

    conf/kubernetes/image.py --reactord PROGRAM --reactorctl PROGRAM --output DIR --version VERSION

DIR/layout becomes an OCI image layout (https://github.com/opencontainers/image-spec, v1.0), and DIR/reactord-VERSION.tar
the same as one file, for `podman load`, `skopeo copy oci-archive:...` or `ctr images import`. No registry and no network
are used, nor root. The content is that of Debian's packages:

* a layer with the shared libraries that the programs are linked to, and nothing else of libc; the CA certificates,
  passwd, group and nsswitch.conf; for scanners, what /var/lib/dpkg would say of the packages, and their copyrights;
* a layer with the programs, stripped, and the configuration that reactord(8) starts with: a ConfigMap mounted at
  /etc/reactord takes its place.

There is no shell. The same programs and packages give the same digest: names are sorted, and all times are
SOURCE_DATE_EPOCH (default: 0). Built for the machine's own architecture.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

USER = 65532  # as "nonroot" of distroless images
CONFIG = "/etc/reactord/reactord.ini"
CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "riscv64": "riscv64",
                 "s390x": "s390x"}
HERE = Path(__file__).resolve().parent


def fail(message):
    sys.exit(f"image.py: {message}")


def output_of(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        fail(f"{command[0]} is not installed")
    except subprocess.CalledProcessError as error:
        fail(f"{' '.join(command)}: {error.stderr.strip()}")


def libraries_of(programs):
    """The paths at which the dynamic linker finds what the programs need, itself included."""
    paths = set()
    for program in programs:
        for line in output_of("ldd", program).splitlines():
            if "not found" in line:
                fail(f"{program}: {line.strip()}")
            paths |= set(re.findall(r"(?:=> |^\s*)(/\S+) \(0x", line))
    if not paths:
        fail(f"{programs[0]}: no shared library; is it a dynamic program?")
    return sorted(paths)


def packages_of(paths):
    """The Debian packages of these files. dpkg may know a file by its path before or behind /usr."""
    names = {name for path in paths for name in (path, os.path.realpath(path))}
    names |= {name.removeprefix("/usr") for name in names} | {f"/usr{name}" for name in names}
    found = subprocess.run(["dpkg-query", "-S", *sorted(names)], capture_output=True, text=True, check=False).stdout
    return sorted({package for line in found.splitlines() if not line.startswith("diversion ")
                   for package in line.rpartition(": ")[0].split(", ")})


class Layer:
    """The files of a layer by path, in the order of their names."""

    def __init__(self):
        self._files = {}

    def _add(self, path, mode, owner=0, **more):
        for parent in list(Path(path).parents)[-2::-1]:
            self._files.setdefault(str(parent), {"type": tarfile.DIRTYPE, "mode": 0o755, "owner": 0})
        self._files[path] = {"mode": mode, "owner": owner, **more}

    def file(self, path, content, mode=0o644):
        self._add(path, mode, type=tarfile.REGTYPE, content=content if isinstance(content, bytes) else content.encode())

    def link(self, path, target):
        self._add(path, 0o777, type=tarfile.SYMTYPE, target=target)

    def directory(self, path, mode, owner):
        self._add(path, mode, owner, type=tarfile.DIRTYPE)

    def tar(self, when):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path, entry in sorted(self._files.items()):
                info = tarfile.TarInfo(path.lstrip("/"))
                info.type, info.mode, info.mtime = entry["type"], entry["mode"], when
                info.uid = info.gid = entry["owner"]
                info.linkname = entry.get("target", "")
                info.size = len(entry.get("content", b""))
                archive.addfile(info, io.BytesIO(entry.get("content", b"")))
        return out.getvalue()


def base_layer(programs):
    layer, paths = Layer(), libraries_of(programs)
    for path in paths:
        layer.file(path, Path(path).read_bytes(), 0o755 if "/ld-" in path else 0o644)
    layer.file("/etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nreactord:x:{USER}:{USER}:reactord:/:/sbin/nologin\n")
    layer.file("/etc/group", f"root:x:0:\nreactord:x:{USER}:\n")
    layer.file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    if os.path.exists(CA_BUNDLE):
        layer.file(CA_BUNDLE, Path(CA_BUNDLE).read_bytes())
    else:
        print(f"image.py: {CA_BUNDLE} is missing here, so also in the image: name CA files in server_ca", file=sys.stderr)
    packages = packages_of(paths) + (["ca-certificates"] if os.path.exists(CA_BUNDLE) else [])
    for status in output_of("dpkg-query", "-s", *packages).split("\n\n") if packages else []:
        name = re.match("Package: (.*)", status.lstrip()).group(1)
        layer.file(f"/var/lib/dpkg/status.d/{name}", f"{status.strip()}\n")
        copyright_file = f"/usr/share/doc/{name}/copyright"
        if os.path.exists(copyright_file):
            layer.file(copyright_file, Path(copyright_file).read_bytes())
    layer.file("/etc/os-release", Path("/etc/os-release").read_bytes())
    layer.directory("/tmp", 0o1777, 0)
    return layer


def stripped(program):
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, "program")
        shutil.copyfile(program, copy)
        output_of("strip", copy)
        return Path(copy).read_bytes()


def top_layer(reactord, reactorctl):
    layer = Layer()
    layer.file("/usr/sbin/reactord", stripped(reactord), 0o755)
    layer.file("/usr/bin/reactorctl", stripped(reactorctl), 0o755)
    layer.file(CONFIG, (HERE.parent / "reactord.ini").read_bytes())
    layer.file("/usr/share/doc/reactord/copyright", (HERE.parent.parent / "LICENSE").read_bytes())
    # for unix sockets, where no emptyDir is mounted and the root is writable
    layer.directory("/run/reactord", 0o755, USER)
    return layer


class Layout:
    """An OCI image layout: blobs by digest."""

    def __init__(self, path):
        self.path = Path(path)
        self.bytes = 0
        shutil.rmtree(self.path, ignore_errors=True)
        (self.path / "blobs/sha256").mkdir(parents=True)

    def blob(self, kind, content):
        """Store it; returns its descriptor."""
        if not isinstance(content, bytes):
            content = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        digest = hashlib.sha256(content).hexdigest()
        (self.path / "blobs/sha256" / digest).write_bytes(content)
        self.bytes += len(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def file(self, name, content):
        (self.path / name).write_text(json.dumps(content, sort_keys=True), encoding="ascii")

    def archive(self, path, when):
        layer = Layer()
        for name in sorted(p for p in self.path.rglob("*") if p.is_file()):
            layer.file(f"/{name.relative_to(self.path)}", name.read_bytes())
        Path(path).write_bytes(layer.tar(when))


def config_of(tars, version, when, architecture):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    return {
        "architecture": architecture, "os": "linux", "created": created,
        "config": {
            "User": f"{USER}:{USER}",  # a number: kubelet refuses names with runAsNonRoot
            "Entrypoint": ["/usr/sbin/reactord"],
            "Cmd": ["-c", CONFIG],
            "Env": ["PATH=/usr/sbin:/usr/bin"],
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": {"org.opencontainers.image.title": "reactord", "org.opencontainers.image.version": version,
                       "org.opencontainers.image.description": "TCP echo and proxy daemon",
                       "org.opencontainers.image.licenses": "MIT"},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]},
        "history": [{"created": created, "created_by": f"conf/kubernetes/image.py: {what}"}
                    for what in ("libraries", "programs")],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("reactord", "reactorctl", "output", "version"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    when = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not when.isdecimal():
        fail(f"SOURCE_DATE_EPOCH: '{when}' is no number of seconds")
    when, machine = int(when), os.uname().machine
    layers = [base_layer([options.reactord, options.reactorctl]), top_layer(options.reactord, options.reactorctl)]
    tars = [layer.tar(when) for layer in layers]

    layout = Layout(Path(options.output, "layout"))
    config = layout.blob("config.v1+json", config_of(tars, options.version, when, ARCHITECTURES.get(machine, machine)))
    blobs = [layout.blob("layer.v1.tar+gzip", gzip.compress(tar, 6, mtime=0)) for tar in tars]
    manifest = layout.blob("manifest.v1+json", {"schemaVersion": 2, "config": config, "layers": blobs,
                                                "mediaType": "application/vnd.oci.image.manifest.v1+json"})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": options.version}
    layout.file("oci-layout", {"imageLayoutVersion": "1.0.0"})
    layout.file("index.json", {"schemaVersion": 2, "manifests": [manifest]})
    archive = Path(options.output, f"reactord-{options.version}.tar")
    layout.archive(archive, when)
    print(f"image: {archive}, {layout.bytes / 1e6:.1f} MB compressed, {sum(map(len, tars)) / 1e6:.1f} MB unpacked "
          f"(programs {len(tars[1]) / 1e6:.1f} MB), {manifest['digest']}")


if __name__ == "__main__":
    main()
