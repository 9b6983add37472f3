#!/usr/bin/env bash
# Builds the wheel of the Python package and installs it into a fresh virtual environment.
#
#   tests/python/setup.sh FOLDER [PACKAGE...]
#
# FOLDER/python is the environment, FOLDER/wheels has the wheel. From PyPI: maturin (in an
# environment of its own) and the packages that are named. Needs Python 3.11 or later.
set -euo pipefail
folder=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"

if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "python: found $(python3 --version), expected 3.11 or later" >&2
    exit 1
}

python3 -m venv "$folder/build"
"$folder/build/bin/pip" install -q --disable-pip-version-check 'maturin>=1.9,<2'
"$folder/build/bin/maturin" build -q --release --manifest-path "$root/crates/petal-python/Cargo.toml" \
    --interpreter "$folder/build/bin/python" --out "$folder/wheels"
rm -rf "$folder/python"
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install -q --disable-pip-version-check "$folder"/wheels/petal_filters-*.whl "$@"
