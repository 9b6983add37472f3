#!/usr/bin/env python3
"""Collect the URL list urls.txt from the documentation that Debian ships.

    ./collect_urls.py -o urls.txt             download the packages, then collect
    ./collect_urls.py -o urls.txt --debs DIR  keep the packages in DIR and take from there what it has

Needs Debian 12 or a relative of it with `apt-get update` done, `dpkg-deb` and Python 3.9; no root.

What is read: the control file of each package of PACKAGES, and of its files those under /usr/share/doc,
/usr/share/man and /usr/share/info (gzip ones unpacked, binary ones left out). What is written: every
http and https URL in them, one a line, as it occurs and as often as it occurs. The order is that of
PACKAGES, then the control file, then the files by path, then the position in the file: the same
packages give the same bytes. Test: python3 -m doctest collect_urls.py
"""

import argparse
import gzip
import html
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

# Versions as collected. Another version is used, with a warning, when the archive no longer has this one.
PACKAGES = {
    "apt-doc": "2.6.2",
    "awstats": "7.8-3+deb12u2",
    "bind9-doc": "1:9.18.49-1~deb12u3",
    "cmake-data": "3.25.1-1",
    "cryptsetup": "2:2.6.1-4~deb12u2",
    "curl": "7.88.1-10+deb12u15",
    "debian-faq": "11.1",
    "debian-policy": "4.6.2.0",
    "developers-reference": "12.18",
    "devscripts": "2.23.4+deb12u2",
    "docker-doc": "20.10.24+dfsg1-1+deb12u1",
    "dovecot-core": "1:2.3.19.1+dfsg1-2.1+deb12u7",
    "elinks-doc": "0.13.2-1",
    "fish-common": "3.6.0-3.1+deb12u1",
    "fontconfig": "2.14.1-4",
    "git-doc": "1:2.39.5-0+deb12u3",
    "libcurl4-doc": "7.88.1-10+deb12u15",
    "liburi-perl": "5.17-1",
    "libwww-perl": "6.68-1",
    "linkchecker": "10.2.1-1",
    "lintian": "2.116.3+deb12u1",
    "lynx-common": "2.9.0dev.12-1",
    "maint-guide": "1.2.53",
    "manpages": "6.03-2",
    "manpages-dev": "6.03-2",
    "mutt": "2.2.12-0.1~deb12u2",
    "neomutt": "20220429+dfsg1-4.1",
    "newsboat": "2.21-1.5",
    "nginx-doc": "1.22.1-9+deb12u11",
    "nmap-common": "7.93+dfsg1-1",
    "openssl": "3.0.22-1~deb12u2",
    "pandoc-data": "2.17.1.1-2~deb12u1",
    "perl-doc": "5.36.0-7+deb12u4",
    "postfix-doc": "3.7.11-0+deb12u1",
    "postgresql-doc-15": "15.20-0+deb12u1",
    "python-aiohttp-doc": "3.8.4-1+deb12u2",
    "python-django-doc": "3:3.2.25-0+deb12u7",
    "python-requests-doc": "2.28.1+dfsg-1",
    "python-scrapy-doc": "2.8.0-2",
    "python-yarl-doc": "1.8.2-1",
    "python3-hyperlink": "21.0.0-5",
    "qemu-system-common": "1:7.2+dfsg-7+deb12u18+b3",
    "ripgrep": "13.0.0-4+b2",
    "ruby-addressable": "2.8.1-1",
    "sphinx-doc": "5.3.0-4",
    "sqlite3-doc": "3.40.1-2+deb12u2",
    "squid-common": "5.7-2+deb12u6",
    "systemd": "252.39-1~deb12u2",
    "tor": "0.4.9.11-0+deb12u1",
    "vim-doc": "2:9.0.1378-2+deb12u2",
    "w3m": "0.5.3+git20230121-2",
    "weechat-doc": "3.8-1",
    "wget": "1.21.3-1+deb12u1",
}

DOCUMENTATION = ("usr/share/doc/", "usr/share/man/", "usr/share/info/")

# What may stand in a URL after its host: RFC 3986 without "$" (in documentation the mark of a variable)
# and without brackets (Markdown and wiki links), plus the Latin, Greek and Cyrillic letters of IRIs.
PATH_CHAR = r"[A-Za-z0-9\-._~!&'()*+,;=:@/?#\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u04ff]"
HOST = r"(?:(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}\.?|localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\])"
URL = re.compile(
    # Two URLs with only a comma or semicolon between them are two.
    rf"https?://{HOST}(?::\d{{1,5}})?(?![A-Za-z0-9@_\-{{$<%:])"
    rf"(?:[/?#](?:(?![,;]https?://)(?:{PATH_CHAR}|%[0-9A-Fa-f]{{2}}))*)?",
    re.IGNORECASE,
)
# HTML's entities: one for a character that a URL may hold is that character, any other ends the URL.
ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d+|#x[0-9a-f]+);", re.IGNORECASE)
ONE_PATH_CHAR = re.compile(PATH_CHAR)
# Left out: URLs that hold an address, such as a message id, since it may name a person,
ADDRESS = re.compile(r"[A-Za-z0-9.+_-](?:@|%40)[A-Za-z0-9-]+\.")
# and those with a part to fill in. (The other forms, "%s" and "${name}", end a URL: see PATH_CHAR.)
PLACEHOLDER = re.compile(r"@[A-Z_]+@")
ROFF_GLYPHS = ((r"\-", "-"), (r"\(hy", "-"), (r"\(ti", "~"), (r"\(ha", "^"), (r"\(at", "@"), (r"\(sh", "#"), (r"\(ul", "_"))
ROFF_NOTHING = re.compile(r"\\[:&%/,|^]")


def plain_roff(text):
    """Man page source without the escapes that occur inside URLs.

    >>> plain_roff(r"http://a.example/\\:x\\-y\\(tiz")
    'http://a.example/x-y~z'
    """
    text = ROFF_NOTHING.sub("", text)
    for escape, char in ROFF_GLYPHS:
        text = text.replace(escape, char)
    return text


def trimmed(url):
    """The URL without the sentence's punctuation or the markup that follows it."""
    while url:
        last = url[-1]
        if last in ".,;:!?'*&" or (last == ")" and url.count(")") > url.count("(")) or url.endswith("(") or url.endswith("__"):
            url = url[:-1]
        else:
            break
    return url


def path_char(entity):
    """The character that an HTML entity stands for; a space if no URL holds it."""
    char = html.unescape(entity)
    return char if ONE_PATH_CHAR.fullmatch(char) else " "


def urls_in(text):
    """All URLs of a text, in order.

    >>> list(urls_in("see https://a.example/x, (http://b.example/y_(z)) and HTTP://C.example:80."))
    ['https://a.example/x', 'http://b.example/y_(z)', 'HTTP://C.example:80']
    >>> list(urls_in('<a href="http://a.example/?x=1&amp;y=2#z">http://b.example/&gt; [c](http://c.example/)'))
    ['http://a.example/?x=1&y=2#z', 'http://b.example/', 'http://c.example/']
    >>> list(urls_in("http://a.example/,http://b.example/%s http://$host/ http://a.example/m@b.example"))
    ['http://a.example/', 'http://b.example/']
    """
    for match in URL.finditer(text):
        url = ENTITY.sub(lambda entity: path_char(entity.group()), match.group())
        # "'" is legal in a URL and far more often a closing quote.
        url = trimmed(re.split("[ ']", url, maxsplit=1)[0])
        if not (ADDRESS.search(url) or PLACEHOLDER.search(url)):
            yield url


def text_of(name, data):
    """The text of a file, or None for what is no text."""
    if name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return None
    if b"\0" in data[:8192] or data.startswith(b"%PDF"):
        return None
    text = data.decode("utf-8", "replace")
    return plain_roff(text) if name.startswith("usr/share/man/") else text


def tar_of(deb, option):
    archive = subprocess.run(["dpkg-deb", option, str(deb)], check=True, stdout=subprocess.PIPE).stdout
    return tarfile.open(fileobj=io.BytesIO(archive))


def texts_of(deb):
    """The control file and the documentation of a package, in a fixed order."""
    with tar_of(deb, "--ctrl-tarfile") as tar:
        yield tar.extractfile("./control").read().decode("utf-8", "replace")
    with tar_of(deb, "--fsys-tarfile") as tar:
        files = [(member.name.removeprefix("./"), member) for member in tar if member.isfile()]
        for name, member in sorted(files, key=lambda file: file[0].encode("utf-8", "surrogateescape")):
            if name.startswith(DOCUMENTATION):
                text = text_of(name, tar.extractfile(member).read())
                if text is not None:
                    yield text


def download(name, version, folder):
    """The path of the package's file in the folder, fetched if it is not there."""
    def have(pattern):
        return sorted(folder.glob(pattern))

    wanted = f"{name}_{version.replace(':', '%3a')}_*.deb"
    if not have(wanted):
        for spec in (f"{name}={version}", name):
            done = subprocess.run(["apt-get", "download", "-q", spec], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode == 0:
                break
        else:
            sys.exit(f"collect_urls: apt-get download {name} failed: {done.stderr.strip()}\nRun apt-get update and try again.")
    if have(wanted):
        return have(wanted)[0]
    found = have(f"{name}_*.deb")[-1]
    print(f"collect_urls: wanted {name} {version}, using {found.name}: the list will differ", file=sys.stderr)
    return found


def collect(out, folder):
    for name, version in PACKAGES.items():
        deb = download(name, version, folder)
        count = 0
        for text in texts_of(deb):
            for url in urls_in(text):
                out.write(url + "\n")
                count += 1
        print(f"{count:6} {deb.name}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="Collect URLs from the documentation that Debian ships.")
    parser.add_argument("-o", "--output", required=True, type=Path, help="the list to write")
    parser.add_argument("--debs", type=Path, help="folder for the packages (default: a temporary one)")
    args = parser.parse_args()

    partial = args.output.with_name(args.output.name + ".partial")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.debs or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with open(partial, "w", encoding="utf-8", newline="\n") as out:
            collect(out, folder)
    os.replace(partial, args.output)


if __name__ == "__main__":
    main()
