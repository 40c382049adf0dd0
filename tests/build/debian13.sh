#!/bin/sh
# debian13.sh: builds in a minimal Debian 13 root with warnings as errors, and runs unit tests and the quickstart there.
# As root; needs debootstrap. DEBIAN13_BASE, if set, is a minbase root to copy instead of running debootstrap.
set -eu
cd "$(dirname "$0")/../.."
. tests/build/root.sh

root_create debian13.sh trixie "" "${DEBIAN13_BASE:-}"
tar -c --exclude='./build*' --exclude=./.git . | tar -x -C "$root/src/reactord"
echo "=== Debian 13: make deps all"
root_run "apt-get update && apt-get install -y --no-install-recommends make check libsubunit-dev && make deps"
tests="net/test_dns net/test_resolve net/test_address upstream/test_resolver config/test_config config/test_ini"
programs=$(printf 'build/tests/unit/%s ' $tests)
root_run "make -j$(nproc) WERROR=1 all $programs"
echo "=== Debian 13: unit tests, quickstart"
root_run_alone "for program in $programs; do CK_TIMEOUT_MULTIPLIER=5 \$program; done; make WERROR=1 quickstart"
echo "debian13: builds and runs"
