#!/usr/bin/env bash
# Installs the clients in requirements.txt into .venv-gateway at the root of the repository, if they are missing or of
# another version. Prints nothing if everything is installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
venv=$root/.venv-gateway
stamp=$venv/.installed

# The clients need Python 3.11 or newer.
python=
for candidate in "${PYTHON:-}" python3 /usr/bin/python3 python3.12 python3.11; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { python=$candidate; break; }
done
if [ -z "$python" ]; then
    "$root/.ci/setup" python3 python3-venv
    python=/usr/bin/python3
fi

if ! cmp -s "$here/requirements.txt" "$stamp" || ! "$venv/bin/python" -c 'import bumble, bleak_esphome' 2>/dev/null; then
    "$python" -c 'import ensurepip' 2>/dev/null || "$root/.ci/setup" python3-venv
    echo "setup: installing $(paste -sd ' ' "$here/requirements.txt") into .venv-gateway"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$stamp"
fi
