"""machine: a Debian root, booted by systemd-nspawn in our own network, and commands in it."""

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

BOOT_LIMIT_S = 60
COMMAND_LIMIT_S = 60
POLL_S = 0.05
PR_SET_PDEATHSIG = 1
CGROUP = Path("/sys/fs/cgroup")

_libc = ctypes.CDLL(None)


class CannotBoot(Exception):
    """systemd-nspawn does not boot here; the message says why."""


class Machine:
    """A booted root. `with` boots it and switches it off."""

    def __init__(self, root):
        self.root = Path(root)
        self.cgroup = None
        self.nspawn = None
        self.leader = None

    def __enter__(self):
        try:
            self._boot()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *_):
        self.nspawn.send_signal(signal.SIGTERM)  # as a power button
        try:
            self.nspawn.wait(COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            pass
        self._kill()

    def run(self, *command, may_fail=False, limit_s=COMMAND_LIMIT_S):
        """Run a command in the machine: what it prints on both outputs, and its exit code."""
        done = subprocess.run(
            ["nsenter", "--all", "--target", str(self.leader), "env", "-i",
             "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0", *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=limit_s, check=False)
        output = done.stdout.decode(errors="replace")
        if done.returncode != 0 and not may_fail:
            raise OSError(f"{' '.join(command)}: exit code {done.returncode}: {output}")
        return output, done.returncode

    def path(self, path):
        """A path in the machine, as seen from here."""
        return Path(f"/proc/{self.leader}/root{path}")

    # Boot

    def _boot(self):
        self._own_mounts()
        self.cgroup = self._own_cgroup()
        log_path = self.root.parent / "nspawn.log"
        with open(log_path, "wb") as log:
            self.nspawn = subprocess.Popen(
                ["systemd-nspawn", "--quiet", f"--directory={self.root}", "--machine=reactord-test",
                 "--keep-unit", "--register=no", "--console=pipe", "--boot"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=self._enter_cgroup,
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"})
        end = time.monotonic() + BOOT_LIMIT_S
        while not self._is_up():
            if self.nspawn.poll() is not None or time.monotonic() > end:
                said = log_path.read_text(errors="replace").strip().splitlines()
                raise CannotBoot(said[-1] if said else f"not up within {BOOT_LIMIT_S} s")
            time.sleep(POLL_S)

    def _own_mounts(self):
        """Only cgroup v2, wherever the host has it, and a /run that nspawn may write to."""
        mounts = (["--make-rprivate", "/"], ["-t", "tmpfs", "tmpfs", "/run"])
        for arguments in mounts:
            subprocess.run(["mount", *arguments], check=True)
        if not (CGROUP / "cgroup.procs").exists():
            subprocess.run(["umount", "--recursive", CGROUP], check=False)
            if subprocess.run(["mount", "-t", "cgroup2", "cgroup2", CGROUP], check=False).returncode != 0:
                raise CannotBoot("no cgroup v2")

    def _own_cgroup(self):
        with open("/proc/self/cgroup", encoding="ascii") as f:
            ours = next(line[3:].strip() for line in f if line.startswith("0::"))
        cgroup = CGROUP / ours.lstrip("/") / f"reactord-test-{os.getpid()}"
        try:
            cgroup.mkdir()
        except OSError as error:
            raise CannotBoot(f"{cgroup}: {error.strerror}") from None
        return cgroup

    def _enter_cgroup(self):
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        (self.cgroup / "cgroup.procs").write_text("0", encoding="ascii")

    def _is_up(self):
        if self.leader is None:
            children = Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children")
            try:
                pids = [pid for pid in children.read_text(encoding="ascii").split()
                        if os.readlink(f"/proc/{pid}/exe").endswith("/systemd")]
            except OSError:
                pids = []
            if not pids:
                return False
            self.leader = int(pids[0])
        state, _ = self.run("systemctl", "is-system-running", may_fail=True)
        return state.strip() in ("running", "degraded")

    def _kill(self):
        if self.nspawn and self.nspawn.poll() is None:
            self.nspawn.kill()  # the machine ends with it
            self.nspawn.wait()
        if self.cgroup:
            self._remove_cgroup()

    def _remove_cgroup(self):
        for _ in range(100):
            try:
                for path, _, _ in os.walk(self.cgroup, topdown=False):
                    os.rmdir(path)
                return
            except OSError:  # a process has not ended yet
                time.sleep(POLL_S)
