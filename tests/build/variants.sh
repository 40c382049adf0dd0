#!/bin/sh
# variants.sh: builds with flags, paths and tools other than the default ones, all without a warning, and installs.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
# The flags of a make that runs this are not those of the variants.
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS LDLIBS DESTDIR PREFIX BUILD
export WERROR=1

fail() {
    echo "variants.sh: $*" >&2
    exit 1
}

quietly() {
    "$@" > "$dir/log" 2>&1 || { tail -40 "$dir/log" >&2; fail "failed: $*"; }
}

build() {
    quietly make -j"$(nproc)" "$@"
}

step() {
    echo "=== build: $*"
}

# Copy the tree without a repository, and without what was built in it.
step "no git: make dist, from the copy and from its own archive"
mkdir "$dir/copy"
tar -c --exclude='./build*' --exclude=./.git --exclude='./reactord-*.tar.gz' . | tar -x -C "$dir/copy"
cd "$dir/copy"
quietly make dist
tar -xzf reactord-*.tar.gz -C "$dir"
cd "$dir"/reactord-*/
quietly make dist
tar -tzf reactord-*.tar.gz | sort > "$dir/second"
tar -tzf "$dir"/copy/reactord-*.tar.gz | sort > "$dir/first"
cmp "$dir/first" "$dir/second" || fail "an archive made from an archive differs"
grep -q '/src/daemon/main\.c$' "$dir/first" || fail "the archive lacks sources"

step "BUILD and DESTDIR with a space and a quote, CPPFLAGS, -O3 and _FORTIFY_SOURCE=2 given; the build's own flags harden"
out="$dir/it's a build" dest="$dir/it's a root"
# Some compilers harden by default: what is asked for must not depend on that.
soft="${CC:-cc} -fno-pie -no-pie -fno-stack-protector -fno-stack-clash-protection -fcf-protection=none"
optimized='-O3 -g -D_FORTIFY_SOURCE=2'
build BUILD="$out" CPPFLAGS=-DREACTORD_VARIANT CC="$soft" CFLAGS="$optimized"
grep -q -e '-D_FORTIFY_SOURCE=3' "$out/flags" && fail "two values of _FORTIFY_SOURCE"
python3 tests/lint/check_hardening.py --fortify "$out"
# gcc records its flags; an object without them works as well.
flags=$(readelf --debug-dump=info "$out/src/base/log.o" | grep DW_AT_producer)
for flag in -fstack-protector-strong -fstack-clash-protection; do
    case $flags in
    *clang* | *" $flag"*) ;;
    *) fail "objects are built without $flag" ;;
    esac
done

step "another PREFIX when it is installed"
quietly make install PREFIX=/usr BUILD="$out" CPPFLAGS=-DREACTORD_VARIANT CC="$soft" CFLAGS="$optimized" \
    DESTDIR="$dest"
test -f "$dest/etc/reactord/reactord.ini" || fail "no configuration is installed"
"$dest/usr/sbin/reactord" --help | grep -q 'instead of /etc/reactord/reactord.ini' ||
    fail "the program does not look for its configuration where it is installed"
grep -q '^ExecStart=/usr/sbin/reactord -c /etc/reactord/reactord.ini$' \
    "$dest/lib/systemd/system/reactord.service" || fail "the unit has other paths"
! grep -q 'CC .*src/base' "$dir/log" || fail "another PREFIX compiled everything anew"
for file in "$dest"/usr/share/doc/reactord/examples/*.ini "$dest"/usr/share/doc/reactord/examples/from-*/*.ini; do
    SMTP_DENY="$PWD/conf/examples/smtp.deny" "$dest/usr/sbin/reactord" -t -c "$file" > /dev/null ||
        fail "an example is not valid: $file"
done
cmp conf/examples/from-nginx/redis.conf "$dest/usr/share/doc/reactord/examples/from-nginx/redis.conf" ||
    fail "what an example is translated from is not installed"
for file in prometheus/reactord.rules.yml prometheus/prometheus.yml grafana/reactord.json \
        kubernetes/deployment.yaml; do
    cmp "conf/$file" "$dest/usr/share/doc/reactord/examples/$file" || fail "an example is not installed: $file"
done
for page in migrating fleet; do
    test -f "$dest/usr/share/man/man7/reactord-$page.7" || fail "a manual page is not installed"
done
for file in usr/lib/sysusers.d/reactord.conf usr/lib/tmpfiles.d/reactord.conf etc/logrotate.d/reactord; do
    test -f "$dest/$file" || fail "$file is not installed"
done
quietly make uninstall PREFIX=/usr BUILD="$out" DESTDIR="$dest"
test ! -e "$dest/usr/sbin/reactord" || fail "uninstall left the program"
test ! -e "$dest/usr/share/doc/reactord/examples" || fail "uninstall left the examples"
test ! -e "$dest/etc/logrotate.d/reactord" || fail "uninstall left the configuration of logrotate"

step "other flags build objects anew, the same ones do not"
object=build/src/base/parse.o
build "$object"
for flags in CFLAGS=-O0 CPPFLAGS=-DREACTORD_VARIANT CC=clang SANITIZE=address; do
    before=$(stat -c %y "$object")
    build "$object" "$flags"
    now=$(stat -c %y "$object")
    test "$now" != "$before" || fail "$flags did not build it anew"
    build "$object" "$flags"
    test "$(stat -c %y "$object")" = "$now" || fail "$flags again built it anew"
done

step "-O0, and _FORTIFY_SOURCE=3 in CPPFLAGS with clang"
build BUILD=build-o0 CFLAGS=-O0
build BUILD=build-clang CC=clang CFLAGS=-O1 CPPFLAGS=-D_FORTIFY_SOURCE=3

step "a warning is an error only with WERROR=1"
echo 'static int unused_here(void) { return 0; }' >> src/base/parse.c
! make build/src/base/parse.o > "$dir/log" 2>&1 || fail "WERROR=1 let a warning pass"
WERROR='' build build/src/base/parse.o
grep -q unused_here "$dir/log" || fail "no warning without WERROR=1"
echo "variants: all build"
