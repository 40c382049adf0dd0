#!/bin/sh
# run.sh: reactord in a booted systemd. A Debian 12 root with systemd, reactord installed there by `make install`, the
# root booted by systemd-nspawn with a network of its own, and the tests of run.py in that network. As root; needs
# debootstrap and systemd-container. SYSTEMD_BASE, if set, is a minbase root to copy instead of running debootstrap.
# Skipped where systemd-nspawn cannot boot. Further arguments are those of run.py.
set -eu
cd "$(dirname "$0")/../.."
. tests/build/root.sh

command -v systemd-nspawn > /dev/null || { echo "run.sh: needs systemd-container (make deps-test)" >&2; exit 2; }
packages="dbus systemd-sysv libev4 libiniparser1 libjansson4 libmicrohttpd12 libseccomp2 libssl3" # what reactord is linked with
root_create run.sh bookworm "" "${SYSTEMD_BASE:-}"
root_run "cd / && { dpkg -s $packages > /dev/null 2>&1 || { apt-get update &&
    apt-get install -y --no-install-recommends $packages; }; }"
root_unmount
make -s install PREFIX=/usr DESTDIR="$root"
unshare --mount --net sh -c 'ip link set lo up && exec "$@"' sh python3 tests/systemd/run.py "$root" "$@"
