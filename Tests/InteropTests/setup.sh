#!/usr/bin/env bash
# Installs the peers in requirements.txt into .venv at the package root, if they are missing or of another version, and
# tshark on the system if it has the permission. Prints nothing if everything is installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/.venv
stamp=$venv/.installed

# Any Python from 3.11 works. The system's own is tried first, because it supports Bluetooth sockets.
python=
for candidate in "${PYTHON:-}" /usr/bin/python3 python3 python3.12 python3.11; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { python=$candidate; break; }
done
if [ -z "$python" ]; then
    "$root/.ci/setup" python3 python3-venv
    python=/usr/bin/python3
fi

if ! cmp -s "$here/requirements.txt" "$stamp" || ! "$venv/bin/python" -c 'import bumble, rootcanal' 2>/dev/null; then
    "$python" -c 'import ensurepip' 2>/dev/null || "$root/.ci/setup" python3-venv
    echo "setup: installing $(grep -v '^#' "$here/requirements.txt" | paste -sd ' ') into .venv"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$stamp"
fi

# Captures are checked with tshark. Without it, this check is reported as skipped, or as failed if CI is set.
command -v tshark >/dev/null || "$root/.ci/setup" tshark || true

# A newer rootcanal, for the preset of that name.
"$here/newer_rootcanal.sh" || echo "setup: the newer rootcanal could not be installed; its tests are skipped"
