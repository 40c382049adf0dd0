# root.sh: (sourced) a minimal Debian root, for what must work on a machine that has nothing yet. Removed at the exit.

# root_create NAME SUITE DIR BASE: make ${root} in DIR ("": a temporary one), by debootstrap or as a copy of BASE if not "".
root_create() {
    test "$(id -u)" = 0 || { echo "$1: needs root for debootstrap and chroot" >&2; exit 2; }
    command -v debootstrap > /dev/null || { echo "$1: needs debootstrap (make deps-test)" >&2; exit 2; }
    root_dir=${3:-$(mktemp -d)}
    root=$root_dir/root
    mkdir -p "$root"
    trap root_remove EXIT
    trap 'exit 1' HUP INT TERM
    if [ -n "$4" ]; then
        cp -a "$4/." "$root/"
    else
        debootstrap --variant=minbase "$2" "$root" http://deb.debian.org/debian
    fi
    echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # nothing here has to outlive a power cut
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d" # packages must not start their servers in a chroot
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mkdir -p "$root/src/reactord"
}

root_remove() {
    umount "$root/proc" 2> /dev/null || :
    umount "$root/dev/pts" 2> /dev/null || :
    umount "$root/dev" 2> /dev/null || :
    rm -rf --one-file-system "$root_dir"
}

# root_run COMMAND: run it there, in the copy of the repository.
root_run() {
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        sh -ec "cd /src/reactord && $1" < /dev/null
}

# root_run_alone COMMAND: the same without a network but loopback, where ports are free.
root_run_alone() {
    unshare --net sh -c 'ip link set lo up && exec "$@"' sh \
        chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        sh -ec "cd /src/reactord && $1" < /dev/null
}
