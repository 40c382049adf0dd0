"""mounts: files and directories of the test's own in place of the machine's, in a mount namespace of its own."""

import ctypes
import errno
import os

from support.case import Skipped

CLONE_NEWNS = 0x20000  # sched.h
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000  # sys/mount.h
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _mount(source, target, flags):
    if _libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def own_mounts():
    """Put this process, and what it starts, in a mount namespace whose changes no other sees."""
    try:
        if _libc.unshare(CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            _mount("none", "/", MS_REC | MS_PRIVATE)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            _enter_copy_of_root()
    except OSError as error:
        raise Skipped(f"no mount namespace: {os.strerror(error.errno)}") from None


def _enter_copy_of_root():
    """In a chroot, / is not a mount point and cannot be made private. So mount it once more, on /proc, which
    is one, and go there."""
    directory = os.getcwd()
    _mount("none", "/proc", MS_PRIVATE)
    _mount("/", "/proc", MS_BIND | MS_REC)
    _mount("none", "/proc", MS_REC | MS_PRIVATE)
    os.chroot("/proc")
    os.chdir(directory)


def bind(source, target):
    """Have ${target}, a file or directory, be ${source}, after own_mounts()."""
    try:
        _mount(source, target, MS_BIND | MS_REC)
    except OSError as error:
        raise Skipped(f"{target}: no mount: {os.strerror(error.errno)}") from None


def unmount(target):
    """Undo bind(), also while the file is open somewhere."""
    if _libc.umount2(os.fsencode(target), MNT_DETACH):
        raise OSError(ctypes.get_errno(), "umount2", target)


def mount_tmpfs(target, size_bytes):
    """Mount an empty file system of that size there, after own_mounts()."""
    if _libc.mount(b"none", os.fsencode(target), b"tmpfs", 0, f"size={size_bytes}".encode()):
        raise Skipped(f"{target}: no tmpfs: {os.strerror(ctypes.get_errno())}")
