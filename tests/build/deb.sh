#!/bin/sh
# deb.sh OUT: the Debian package, built from the committed tree (or, without a repository, from what is there) in OUT/build;
# the files for it are in .debian. DEB_VERSION: another version than that of the Makefile.
set -eu
cd "$(dirname "$0")/../.."
out=$(mkdir -p "$1" && cd "$1" && pwd)
for tool in dh dpkg-buildpackage lintian; do
    command -v $tool > /dev/null || { echo "deb.sh: needs $tool: make deps-deb" >&2; exit 2; }
done
version=${DEB_VERSION:-$(sed -n 's/^VERSION := //p' Makefile)}
rm -rf "$out/build"
mkdir "$out/build"
if test -e .git; then
    git archive HEAD | tar -x -C "$out/build"
else
    tar -c --exclude='./build*' --exclude='./reactord-*.tar.gz' . | tar -x -C "$out/build"
fi
cd "$out/build"
mv .debian debian
dpkg-checkbuilddeps debian/control || { echo "deb.sh: needs packages: make deps-deb" >&2; exit 2; }
cat > debian/changelog << EOF
reactord ($version) unstable; urgency=medium

  * CHANGELOG.md has what a user sees.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date -R -r CHANGELOG.md)
EOF
dpkg-buildpackage --build=binary --no-sign > "$out/log" 2>&1 || { tail -30 "$out/log" >&2; exit 1; }
lintian --fail-on error,warning --tag-display-limit 0 ../reactord_"${version}"_*.deb
echo "deb: $(ls "$out"/reactord_"${version}"_*.deb)"
