#!/usr/bin/env bash
# Installs the real software that petal exchanges filters with, into a folder.
#
#   tests/interop/setup.sh FOLDER
#
# From Debian: Guava, a JDK, DCSO's bloom, Node.js; from PyPI and npm into FOLDER: pyspark (for its jar
# of sketches), pyarrow, pyprobables, pybloom_live, rbloom, bloom-filters. What is there is kept.
set -euo pipefail
folder=$1
mkdir -p "$folder"

missing=()
[ -e /usr/share/java/guava.jar ] || missing+=(libguava-java)
command -v javac >/dev/null || missing+=(default-jdk-headless)
command -v bloom >/dev/null || missing+=(golang-github-dcso-bloom-cli)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

[ -d "$folder/python" ] || python3 -m venv "$folder/python"
# Of pyspark only a few jars are used. A fixed release: others name or divide them differently.
if ! ls "$folder"/spark/spark-sketch_*.jar >/dev/null 2>&1; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    "$folder/python/bin/pip" download -q --disable-pip-version-check --no-deps --no-binary :all: \
        -d "$fetched" pyspark==4.3.0
    mkdir -p "$folder/spark"
    tar xzf "$fetched"/pyspark-*.tar.gz -C "$folder/spark" --strip-components=3 --wildcards \
        '*/jars/spark-sketch_*.jar' '*/jars/spark-unsafe_*.jar' '*/jars/spark-common-utils*.jar' \
        '*/jars/scala-library-*.jar'
fi
"$folder/python/bin/pip" install -q --disable-pip-version-check \
    pyarrow 'pyprobables<1' 'pybloom_live>=4' 'rbloom>=1.5' xxhash bitarray
[ -d "$folder/node_modules/bloom-filters" ] ||
    npm install --silent --no-audit --no-fund --prefix "$folder" bloom-filters@3 >/dev/null
