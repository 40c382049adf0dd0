#!/bin/sh
# fresh.sh: the newcomer's way. A minimal Debian 12 root, a clean copy of the repository, and the two commands that
# README.md gives, nothing else. As root; needs debootstrap. FRESH_DIR (default: a temporary one) is where the root
# goes; FRESH_BASE, if set, is a minbase root to copy instead of running debootstrap.
set -eu
cd "$(dirname "$0")/../.."
. tests/build/root.sh

# The commands stand in README.md behind these marks.
command_of() {
    sed -n "/<!-- $1 -->/,/^\`\`\`\$/ { /^<!--/d; /^\`\`\`/d; p; }" README.md
}

root_create fresh.sh bookworm "${FRESH_DIR:-}" "${FRESH_BASE:-}"
git archive HEAD | tar -x -C "$root/src/reactord"

for which in quickstart test; do
    echo "=== README.md, $which: $(command_of "$which")"
    root_run "$(command_of "$which")"
done
echo "fresh: both commands of README.md work in a minimal Debian 12"
