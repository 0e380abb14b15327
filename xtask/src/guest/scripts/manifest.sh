#!/bin/bash
# What is in the folder $1, a line for each entry: kind, mode, owner, links, size, time, path, target; then all checksums.
# Sizes, links and times of folders belong to their file system; so does the time of what was made just now, unless
# $2 is "times". The file "large" at the top has its checksum elsewhere.
set -euo pipefail
export LC_ALL=C
cd "$1"
time=
[ "${2:-}" != times ] || time=' %T@'
find . -mindepth 1 \( -type d -printf '%y %m %U:%G %P\n' \) -o \( -type l -printf '%y %U:%G %P -> %l\n' \) -o \
    -printf "%y %m %U:%G %n %s$time %P\n" | sort
find . -type f ! -path ./large -print0 | sort -z | xargs -0 -r -n 500 sha256sum
