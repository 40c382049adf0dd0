#!/bin/sh
# deb_installed.sh [SUITE...]: in a new root of each Debian suite (bookworm trixie), at the same time, the package is built in
# two versions and tested by tests/systemd/deb.py in that root, booted. As root; needs debootstrap and systemd-container.
# Takes minutes.
# DEB_BASE_bookworm, DEB_BASE_trixie: minbase roots to copy instead of running debootstrap.
set -eu
cd "$(dirname "$0")/../.."
. tests/build/root.sh

test_suite() {
    root_create deb_installed.sh "$1" "" "$(eval echo "\${DEB_BASE_$1:-}")"
    tar -c --exclude='./build*' --exclude=./.git . | tar -x -C "$root/src/reactord"
    echo "=== $1: make deb"
    root_run "apt-get update && apt-get install -y --no-install-recommends make && make deps-deb" \
        > "$root_dir/log" 2>&1 || { tail -20 "$root_dir/log"; return 1; }
    root_run "make deb && DEB_VERSION=9.9.9 make deb && cp build/deb/*_9.9.9_*.deb build/deb/reactord_0*.deb /root"
    root_run "apt-get install -y --no-install-recommends systemd-sysv dbus logrotate" > "$root_dir/log" 2>&1 ||
        { tail -20 "$root_dir/log"; return 1; }
    # Only what the package itself depends on may make it run.
    root_run "cd / && apt-get purge -y --auto-remove libev-dev libiniparser-dev libjansson-dev libmicrohttpd-dev \
        libseccomp-dev libssl-dev libcurl4-openssl-dev && apt-get install -y --no-install-recommends /root/reactord_0*.deb &&
        apt-get purge -y reactord && userdel reactord; rm -f /usr/sbin/policy-rc.d" > "$root_dir/log" 2>&1 ||
        { tail -20 "$root_dir/log"; return 1; }
    root_unmount
    echo "=== $1: installed, upgraded and purged"
    unshare --mount --net sh -c 'ip link set lo up && exec "$@"' sh python3 tests/systemd/deb.py "$root"
    root_remove
}

# All suites at once, as they wait for the network and the disk most of the time; told one after the other.
logs=$(mktemp -d)
suites=${*:-bookworm trixie}
for suite in $suites; do
    (set -e; test_suite "$suite") > "$logs/$suite" 2>&1 &
    eval "pid_$suite=$!"
done
failed=0
for suite in $suites; do
    wait "$(eval "echo \$pid_$suite")" || failed=1
    cat "$logs/$suite"
done
rm -rf "$logs"
exit $failed
