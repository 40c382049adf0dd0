"""container: reactord in its OCI image, started by crun as kubelet would have it started."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from support import net
from support.case import Failed, Skipped, check, is_root
from support.mounts import mount_tmpfs, own_mounts
from support.program import run

USER = 65532
BIND_SERVICE = "CAP_NET_BIND_SERVICE"
CONTROLLERS = "/sys/fs/cgroup"
HYBRID = f"{CONTROLLERS}/unified"
START_LIMIT_S = 30


def image(t):
    """The image of the programs under test, built once a run; returns its layout."""
    directory = Path(t.options.reactord).parent
    layout = directory / "image/layout"
    with open(directory / "image.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (layout / "index.json").exists():
            build_image(t, layout.parent)
    return layout


def build_image(t, output):
    """Build it anew in that directory; what was printed."""
    return run([sys.executable, t.options.source_dir / "conf/kubernetes/image.py", "--reactord", t.options.reactord,
                "--reactorctl", t.reactorctl_path, "--output", output, "--version", "test"]).decode()


def blob(layout, descriptor):
    return Path(layout, "blobs/sha256", descriptor["digest"].removeprefix("sha256:"))


def unpack(layout, root):
    """Unpack the layers of a layout; returns the image's configuration."""
    [entry] = json.loads(Path(layout, "index.json").read_text(encoding="ascii"))["manifests"]
    manifest = json.loads(blob(layout, entry).read_text(encoding="ascii"))
    os.mkdir(root, 0o755)
    for layer in manifest["layers"]:
        run(["tar", "-xzpf", blob(layout, layer), "--same-owner", "-C", root])
    return json.loads(blob(layout, manifest["config"]).read_text(encoding="ascii"))["config"]


class ConfigMap:
    """A volume as kubelet keeps it: the files are links to ..data/NAME, and ..data is replaced at once. With fsGroup and
    defaultMode 0440."""

    def __init__(self, t, directory, **files):
        self.path = t.path(directory)
        self._number = 0
        os.mkdir(self.path, 0o755)
        self.publish(**files)
        for name in files:
            os.symlink(f"..data/{name}", f"{self.path}/{name}")

    def publish(self, **files):
        self._number += 1
        directory = f"..2026_{self._number}"
        os.mkdir(f"{self.path}/{directory}", 0o755)
        for name, text in files.items():
            path = Path(self.path, directory, name)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o440)
            os.chown(path, 0, USER)
        os.symlink(directory, f"{self.path}/..data_tmp")
        os.rename(f"{self.path}/..data_tmp", f"{self.path}/..data")
        if self._number > 1:
            run(["rm", "-r", f"{self.path}/..2026_{self._number - 1}"])


def _mount(kind, destination, *options):
    return {"type": kind, "source": kind, "destination": destination, "options": list(options)}


def _bind(source, destination, *options):
    return {"type": "bind", "source": source, "destination": destination, "options": ["rbind", *options]}


class Container:
    """reactord as process 1 of a container without a network of its own, from `with` to its end.

    resources: as in linux.resources of the OCI runtime specification. volumes: more directories by where they are
    mounted. The container is in a PID namespace
    that ends with this process, whatever happens to crun.
    """

    def __init__(self, t, config_map, resources=None, capabilities=(BIND_SERVICE,), volumes=None):
        if not is_root():
            raise Skipped("only root may start containers with limits")
        self._t = t
        self._resources, self._capabilities = resources or {}, list(capabilities)
        self._directory = t.path("bundle")
        self.group = f"reactord-test-{os.getpid()}"
        self.root = f"{self._directory}/root"
        self.log_path = t.path("container.log")
        self.pid = None
        own_mounts()
        if os.path.ismount(HYBRID):
            mount_tmpfs(HYBRID, 1 << 20)  # crun refuses controllers there beside those of cgroup v1
        os.mkdir(self._directory, 0o755)
        settings = unpack(image(t), self.root)
        # an emptyDir with fsGroup
        os.mkdir(t.path("empty-dir"))
        os.chown(t.path("empty-dir"), 0, USER)
        os.chmod(t.path("empty-dir"), 0o2777)
        mounts = [_mount("proc", "/proc"), _mount("tmpfs", "/dev", "nosuid", "mode=755"),
                  _mount("cgroup", CONTROLLERS, "ro", "nosuid", "noexec", "nodev"),
                  _bind(config_map.path, "/etc/reactord", "ro"), _bind(t.path("empty-dir"), "/run/reactord", "rw"),
                  *(_bind(path, where, "ro") for where, path in (volumes or {}).items())]
        self._write(settings, mounts)

    def _write(self, settings, mounts):
        user, group = settings["User"].split(":")
        held = dict.fromkeys(("bounding", "effective", "permitted", "inheritable", "ambient"),
                             self._capabilities)
        spaces = ("pid", "ipc", "uts", "mount", "cgroup")
        config = {
            "ociVersion": "1.0.0", "hostname": "pod", "mounts": mounts,
            "root": {"path": self.root, "readonly": True},
            "process": {"user": {"uid": int(user), "gid": int(group)}, "cwd": settings["WorkingDir"],
                        "args": settings["Entrypoint"] + settings["Cmd"], "env": settings["Env"],
                        "noNewPrivileges": True, "capabilities": held},
            "linux": {"namespaces": [{"type": name} for name in spaces], "cgroupsPath": f"/{self.group}",
                      "resources": self._resources},
        }
        Path(self._directory, "config.json").write_text(json.dumps(config), encoding="ascii")

    def _crun(self, *words):
        return ["crun", "--cgroup-manager=cgroupfs", "--root", f"{self._directory}/state", *words]

    def __enter__(self):
        began = time.monotonic()
        with open(self.log_path, "wb") as log:
            self._process = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount", "--mount-proc",
                 *self._crun("run", "--bundle", self._directory, "pod")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            while not self.log_lines(" ready$"):
                self._expect_running(began)
                time.sleep(0.002)
            self.start_ms = (time.monotonic() - began) * 1000
            self.pid = self._find()
        except BaseException:
            self._end()
            raise
        return self

    def _expect_running(self, began):
        code = self._process.poll()
        if code is None and time.monotonic() < began + START_LIMIT_S * self._t.scale:
            return
        if not self.log_lines(r"reactord\[1\]") and code is not None:
            raise Skipped(f"crun cannot start a container here: {self.log()[-200:].strip()}")
        raise Failed(f"the container does not start (crun's exit code: {code}): {self.log()[-2000:]}")

    def _find(self):
        """Process 1 of the container, as it is numbered here."""
        pid = self._process.pid
        while "reactord" not in os.readlink(f"/proc/{pid}/exe"):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            check(len(children) == 1, f"process {pid} has the children {children}")
            pid = int(children[0])
        return pid

    def __exit__(self, error, *_):
        if error:
            print(f"--- container.log\n{self.log()[-6000:]}")
        self._end()

    def _end(self):
        self._process.kill()
        self._process.wait()
        for path in [f"{CONTROLLERS}/{self.group}", *Path(CONTROLLERS).glob(f"*/{self.group}")]:
            if Path(HYBRID) not in Path(path).parents:
                self._t.eventually(lambda path=path: self._removed(path), "no cgroup is left")

    @staticmethod
    def _removed(path):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError:  # its processes still end
            return False
        return True

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self):
        """The container's exit code."""
        return self._process.wait(30 * self._t.scale)

    def running(self):
        return self._process.poll() is None

    def stop(self):
        """End it as kubelet does, and expect exit code 0."""
        self.send_signal(signal.SIGTERM)
        code = self.wait()
        check(code == 0, f"the container ended with {code}, not 0")

    def execute(self, *command, code=0):
        """Run a command in the container, as `kubectl exec` and probes do; what it printed."""
        outer = self._process.pid
        [inner] = Path(f"/proc/{outer}/task/{outer}/children").read_text(encoding="ascii").split()
        return run(["nsenter", "-t", inner, "-m", "-p",
                    *self._crun("exec", "--user", f"{USER}:{USER}", "pod", *command)], code=code).decode()

    def log(self):
        return Path(self.log_path).read_text(encoding="utf-8", errors="replace")

    def log_lines(self, pattern):
        return [line for line in self.log().splitlines() if re.search(pattern, line)]

    def status(self, name):
        """A field of /proc/PID/status."""
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return re.search(rf"^{name}:\s*(.*)$", text, re.MULTILINE).group(1)

    def get(self, path, address):
        """The status of a GET without a token, as a httpGet probe sends it."""
        with net.connect(address) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            return int(net.read_to_end(client).split()[1])
