# root.sh: (sourced) a minimal Debian root, for what must work on a machine that has nothing yet. Removed at the exit.

# With mounts of its own, the script that sources this leaves none behind when it is killed: who then deletes the root
# would delete the machine's /dev with it.
if [ "$(id -u)" = 0 ] && [ -z "${ROOT_HAS_OWN_MOUNTS:-}" ] && [ -e "$0" ]; then
    ROOT_HAS_OWN_MOUNTS=1 exec unshare --mount --propagation private sh "$0" "$@"
fi

root_source=/src/reactord # the copy of the repository in the root, where commands run

# root_create NAME RELEASE DIR BASE [CACHE]: make ${root} in DIR ("": a temporary one), by debootstrap or as a copy of BASE
# if not "". Package files are kept in CACHE, if it is given.
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
        mkdir -p "${5:-$root_dir/cache}/debootstrap"
        debootstrap --variant=minbase --cache-dir="$(realpath "${5:-$root_dir/cache}")/debootstrap" "$2" "$root" \
            http://deb.debian.org/debian
    fi
    echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # nothing here has to outlive a power cut
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount --bind /dev/pts "$root/dev/pts"
    if [ -n "${5:-}" ]; then
        mkdir -p "$5/archives/partial"
        mount --bind "$5/archives" "$root/var/cache/apt/archives"
    fi
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d" # packages must not start their servers in a chroot
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mkdir -p "$root/src/reactord"
}

# For who mounts them anew, as a boot does.
root_unmount() {
    for mounted in proc dev/pts dev var/cache/apt/archives; do
        umount "$root/$mounted" 2> /dev/null || :
    done
}

root_remove() {
    root_unmount
    rm -rf --one-file-system "$root_dir"
}

# root_run COMMAND: run it there, in the copy of the repository.
root_run() {
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        sh -ec "cd $root_source && $1" < /dev/null
}
