#!/bin/sh
# fresh.sh: the newcomer's way. A minimal Debian 12 root, a clean copy of the repository, and the two commands that
# README.md gives, nothing else. As root; needs debootstrap. FRESH_DIR (default: a temporary one) is where the root
# goes; FRESH_BASE, if set, is a minbase root to copy instead of running debootstrap.
set -eu
cd "$(dirname "$0")/../.."

# The commands stand in README.md behind these marks.
command_of() {
    sed -n "/<!-- $1 -->/,/^\`\`\`\$/ { /^<!--/d; /^\`\`\`/d; p; }" README.md
}

test "$(id -u)" = 0 || { echo "fresh.sh: needs root for debootstrap and chroot" >&2; exit 2; }
dir=${FRESH_DIR:-$(mktemp -d)}
root=$dir/root
mkdir -p "$root"

cleanup() {
    umount "$root/proc" 2>/dev/null || :
    umount "$root/dev/pts" 2>/dev/null || :
    umount "$root/dev" 2>/dev/null || :
    rm -rf "$dir"
}
trap cleanup EXIT

if [ -n "${FRESH_BASE:-}" ]; then
    cp -a "$FRESH_BASE/." "$root/"
else
    debootstrap --variant=minbase bookworm "$root" http://deb.debian.org/debian
fi
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d" # packages must not start their servers in a chroot
chmod 755 "$root/usr/sbin/policy-rc.d"
mkdir -p "$root/src/reactord"
git archive HEAD | tar -x -C "$root/src/reactord"

for which in quickstart test; do
    echo "=== README.md, $which: $(command_of "$which")"
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        sh -ec "cd /src/reactord && $(command_of "$which")" < /dev/null
done
echo "fresh: both commands of README.md work in a minimal Debian 12"
