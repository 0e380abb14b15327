#!/bin/bash
# Debian 12's fio comes without its nfs engine: makes it in the folder $1, from Debian's source of the same fio.
# Leaves nfs.so there. Needs the network, gcc, libc6-dev, dpkg-dev, patch, xz-utils and libnfs-dev.
set -euo pipefail
mkdir -p "$1/lists/partial"
cd "$1"
version=$(dpkg-query -W -f '${source:Version}' fio)
# Source packages from where this machine's binary packages come, without touching its configuration.
for sources in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -e "$sources" ] || continue
    case $sources in
    *.sources) sed 's/^Types:.*/Types: deb-src/' "$sources" >"${sources##*/}" ;;
    *) sed -n 's/^deb /deb-src /p' "$sources" >"${sources##*/}" ;;
    esac
done
mkdir -p sources
mv -f ./*.list ./*.sources sources/ 2>/dev/null || true
apt=(apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$PWD/sources" -o Dir::State::lists="$PWD/lists"
    -o APT::Sandbox::User=root)
"${apt[@]}" update
rm -rf fio-*/
"${apt[@]}" source --only-source "fio=$version"
cd fio-*/
./configure >../configure.log
# One file is enough: fio loads an engine from a shared object.
gcc -shared -fPIC -O2 -D_GNU_SOURCE -include config-host.h -I. engines/nfs.c -o ../nfs.so -lnfs
