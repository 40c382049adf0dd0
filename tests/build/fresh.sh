#!/bin/sh
# fresh.sh [RELEASE[:quickstart]]...: the newcomer's way. In a minimal root of each Debian release (bookworm trixie),
# with a clone of the committed tree in root's home: the two commands of README.md as they stand there, nothing else;
# with ":quickstart" the first one only. The compiler may not warn. As root; needs debootstrap.
# FRESH_CACHE: a directory that keeps package files for the next run. FRESH_BASE_bookworm, FRESH_BASE_trixie: minbase
# roots to copy instead of running debootstrap.
set -eu
cd "$(dirname "$0")/../.."
. tests/build/root.sh

# The commands stand in README.md behind these marks.
command_of() {
    sed -n "/<!-- $1 -->/,/^\`\`\`\$/ { /^<!--/d; /^\`\`\`/d; p; }" README.md
}

# run_command RELEASE WHICH: its output is shown, and kept to look for warnings.
run_command() {
    echo "=== README.md in $1, $2: $(command_of "$2")"
    { root_run "$(command_of "$2")" 2>&1 || echo "fresh.sh: $2 failed" >> "$root_dir/failed"; } | tee "$root_dir/log"
    test ! -e "$root_dir/failed" || { cat "$root_dir/failed"; return 1; }
    ! grep -E '^(src|tests)/.*: (warning|error):' "$root_dir/log" || { echo "fresh.sh: the compiler warns" >&2; return 1; }
}

fresh() {
    release=${1%%:*}
    root_create fresh.sh "$release" "" "$(eval echo "\${FRESH_BASE_$release:-}")" "${FRESH_CACHE:+$FRESH_CACHE/$release}"
    root_source=/root/reactord
    git clone --quiet . "$root$root_source"
    run_command "$release" quickstart
    case $1 in
    *:quickstart) ;;
    *) run_command "$release" test ;;
    esac
    root_remove
}

for which in ${*:-bookworm trixie}; do
    fresh "$which"
done
echo "fresh: README.md's commands work in a minimal root: ${*:-bookworm trixie}"
