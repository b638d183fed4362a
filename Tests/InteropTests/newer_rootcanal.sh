#!/usr/bin/env bash
# Installs the rootcanal of newer-requirements.txt into .venv/newer-rootcanal. Its program needs glibc 2.39. On a Debian
# with an older one, the libraries of Debian 13 are unpacked beside the program, from the mirror that apt uses on this
# machine; the system is not changed. If that is not possible, prints one line with the reason: the tests that need this
# controller are then skipped. Prints nothing if everything is installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$here/../../.venv
target=$venv/newer-rootcanal
requirement=$(grep -v '^#' "$here/newer-requirements.txt")
release=trixie
cmp -s "$here/newer-requirements.txt" "$target/requirements.txt" && exit 0

skip() {
    echo "setup: ${requirement/==/ } is not installed, because $1; its tests are skipped"
    exit 0
}

[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] || skip "its program is for Linux on x86-64"
work=$(mktemp -d "$venv/newer-rootcanal.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Downloads the libraries that the program needs, and unpacks them into $work/tree.
unpack_libraries() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "this system has glibc $1 and no apt-get"
    local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    # The archive that has the system's own release.
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -v name="$(. /etc/os-release && echo "$ID ${VERSION_CODENAME:-}")" \
            'BEGIN { split(name, os) } os[1] == "debian" && $1 ~ "^(" os[2] "|stable|oldstable)$" { print $2; exit }') || true
    [ -n "$mirror" ] || skip "this system has glibc $1 and its apt has no mirror of Debian"
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/tree"
    : >"$work/apt/status"
    local options=""
    [ ! -e "$keyring" ] || options="[signed-by=$keyring]"
    echo "deb $options $mirror $release main" >"$work/apt/sources.list"
    local apt=(apt-get -qq -o "Dir::Etc::SourceList=$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State=$work/apt" -o "Dir::State::status=$work/apt/status" -o "Dir::Cache=$work/apt"
        -o Acquire::Languages=none -o Acquire::Retries=2 -o APT::Sandbox::User=root)
    (cd "$work/apt" && "${apt[@]}" update && "${apt[@]}" download libc6 libstdc++6 libgcc-s1) >"$work/log" 2>&1 ||
        skip "the libraries of Debian's $release cannot be downloaded: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
    local package
    for package in "$work"/apt/*.deb; do dpkg-deb -x "$package" "$work/tree"; done
}

echo "setup: installing ${requirement} into .venv/newer-rootcanal"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/python" "$requirement" \
    >"$work/log" 2>&1 || skip "pip cannot install it: $(tail -n 1 "$work/log")"
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)
if [ "$(printf '%s\n' 2.39 "${glibc:-0}" | sort -V | head -n 1)" != 2.39 ]; then
    unpack_libraries "${glibc:-of another kind}"
fi

rm -rf "$target"
mkdir "$target"
mv "$work/python/rootcanal/bin/linux-x86_64/rootcanal" "$target/rootcanal"
chmod +x "$target/rootcanal"
[ ! -d "$work/tree" ] || mv "$work/tree/usr/lib/x86_64-linux-gnu" "$target/lib"
cp "$here/newer-requirements.txt" "$target/requirements.txt"
