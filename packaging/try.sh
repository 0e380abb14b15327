#!/bin/bash
# The packages, tried as strangers would: bash packaging/try.sh [-b BINARY]. Needs root, and the Debian packages
# named below. `cargo xtask packages` runs it. Load stays in namespaces that it makes.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${CARGO_TARGET_DIR:-target}/release/nfskit
while getopts b: option; do
    case $option in
        b) binary=$OPTARG ;;
        *) exit 2 ;;
    esac
done
fail() { echo "packages: FAILED: $*" >&2; exit 1; }
told() { echo "packages: $*"; }
[ "$(id -u)" = 0 ] || fail "needs root"
for tool in mmdebstrap:mmdebstrap buildah:buildah systemd-analyze:systemd promtool:prometheus setpriv:util-linux \
    unshare:util-linux objdump:binutils python3:python3 fusermount3:fuse3; do
    command -v "${tool%%:*}" >/dev/null || fail "${tool%%:*} is missing: apt-get install ${tool##*:}"
done
work=$(mktemp -d)
pids=()
finish() {
    # An unshare that waits for its child ignores SIGTERM; the child ends with it.
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf --one-file-system "$work"
}
trap finish EXIT
# Waits until a file has a line.
awaits() { # FILE WORDS
    for _ in $(seq 300); do grep -q -- "$2" "$1" 2>/dev/null && return; sleep 0.1; done
    cat "$1" >&2
    fail "no \"$2\" within 30 s"
}

# The same input makes the same packages.
bash packaging/build.sh -b "$binary" -o "$work/dist" >"$work/built"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) bash packaging/build.sh -n -b "$binary" -o "$work/again" >/dev/null
for kind in deb tar.gz; do
    cmp "$work"/dist/*.$kind "$work"/again/*.$kind || fail "the .$kind differs from one build to the next"
done
deb=$(echo "$work"/dist/*.deb) oci=$(echo "$work"/dist/*.oci.tar) tarball=$(echo "$work"/dist/*.tar.gz)
[ -s "$oci" ] || fail "no image was made"
told "$(cd "$work/dist" && du -h --apparent-size -- * | tr '\n\t' ', ')reproducible"
size=$(stat -L -c %s "$binary")
[ "$size" -lt 40000000 ] || fail "the binary has $size bytes, 40 MB at most"
if command -v lintian >/dev/null; then
    lintian --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,embedded-library,unstripped-binary-or-object \
        --allow-root "$deb" >"$work/lintian" 2>&1 || { cat "$work/lintian"; fail "lintian finds errors"; }
    told "lintian: no errors, $(grep -c '^W' "$work/lintian" || true) warnings"
fi

# A clean Debian of this host's release: dpkg installs, and takes everything away again.
. /etc/os-release
chroot=$work/chroot
mmdebstrap --quiet --variant=minbase --include=systemd,fuse3 "${VERSION_CODENAME:-stable}" "$chroot" 2>"$work/log" ||
    { cat "$work/log" >&2; fail "mmdebstrap"; }
find "$chroot" -xdev -not -path '*/var/*' -not -path '*/run/*' | sort >"$work/before"
cp "$deb" "$chroot/opt/"
# Processes and mounts of their own, so that nothing is left behind; the loopback alone.
inside() {
    unshare --mount --net --pid --fork --kill-child --mount-proc="$chroot/proc" bash -euc "
        ip link set lo up
        mount --bind /dev '$chroot/dev'
        mount -t tmpfs tmpfs '$chroot/tmp'
        exec chroot '$chroot' bash -euc \"\$1\"" inside "$1"
}
inside 'dpkg -i /opt/*.deb' >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "dpkg -i"; }
inside '
    nfskit --version
    test -x /sbin/mount.nfskit; test -x /sbin/mount.fuse.nfskit
    test ! -e /etc/nfskit/exports.toml
    zcat /usr/share/man/man1/nfskit-serve.1.gz | grep "EXIT STATUS" >/dev/null
    zcat /usr/share/man/man8/mount.nfskit.8.gz | grep "FILES" >/dev/null
    bash -n /usr/share/bash-completion/completions/nfskit
    systemd-analyze verify --man=no /usr/lib/systemd/system/nfskit.service
' >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "what the package installs"; }
grep -vq '^nfskit [0-9]' "$work/log" && { cat "$work/log" >&2; fail "systemd-analyze verify has something to say"; }
told "installed on a clean Debian $VERSION_ID; systemd-analyze verify is content"

# The three commands of packaging/README.md, from there, as it has them.
sed -n '/^<!-- three commands -->/,/^```$/p' packaging/README.md | grep -v '^<!--\|^```' >"$work/three"
[ "$(grep -c . "$work/three")" = 3 ] || fail "packaging/README.md has no three commands"
{
    # Nothing is made ready for them: a home as it is, and what they say.
    echo 'export HOME=/root; cd /root; umask 022'
    # Each as it is there, and after the second one a look at what it brought.
    sed -n 1,2p "$work/three"
    cat <<'END'
mountpoint -q ~/nfs
echo hello >~/data/greeting; grep -q hello ~/nfs/greeting
cp /usr/bin/nfskit ~/nfs/copy; sync -f ~/nfs; cmp /usr/bin/nfskit ~/data/copy
# mount(8) itself finds the helper that remounts.
mount -o remount,ro ~/nfs
if touch ~/nfs/late 2>/dev/null; then echo "it can be written to"; exit 1; fi
mount -o remount,rw ~/nfs
touch ~/nfs/late; test -e ~/data/late
END
    sed -n 3p "$work/three"
    echo 'test -s nfskit-study/report.html; umount ~/nfs; kill %1; wait %1 || true'
    echo 'rm -r ~/data ~/nfs ~/nfskit-study; rm -rf ~/.local'
} >"$work/script"
inside "$(cat "$work/script")" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the three commands"; }
told "three commands: a served, mounted directory, remounted by mount(8), and a report"

# What a unit does with what /etc has, and that purging leaves nothing.
inside '
    mkdir -p /etc/nfskit /srv/data
    cp /usr/share/doc/nfskit/examples/exports.toml /etc/nfskit/
    dpkg --purge nfskit
    test ! -e /var/lib/nfskit; test -s /etc/nfskit/exports.toml; rm -r /etc/nfskit
' >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "dpkg --purge"; }
rm -rf "$chroot"/opt/*.deb "$chroot"/srv/data
find "$chroot" -xdev -not -path '*/var/*' -not -path '*/run/*' | sort >"$work/after"
diff "$work/before" "$work/after" >"$work/diff" || { cat "$work/diff" >&2; fail "purging leaves something"; }
told "purged, and nothing is left"

# The tarball, wherever it is unpacked.
mkdir "$work/unpacked"
tar -xzf "$tarball" -C "$work/unpacked"
"$work"/unpacked/*/usr/bin/nfskit --version >/dev/null || fail "the binary of the tarball"

# The image: its root, entered as a container would be, with the capabilities that the unit has.
image() { buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"; }
container=$(image from "oci-archive:$oci")
root=$(image mount "$container")
image inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$container" >"$work/config"
grep -q 'serve --listen 0.0.0.0:2049' "$work/config" || { cat "$work/config"; fail "the image's command"; }
words=$(image inspect --format '{{range .OCIv1.Config.Entrypoint}}{{.}} {{end}}{{range .OCIv1.Config.Cmd}}{{.}} {{end}}' "$container")
capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' packaging/nfskit.service | tr 'A-Z ' 'a-z,' | sed 's/cap_//g')
bounds="-all,+sys_chroot$(printf ',+%s' ${capabilities//,/ })"
unshare --mount --net --pid --fork --kill-child --mount-proc="$root/proc" bash -euc "
    ip link set lo up
    exec setpriv --bounding-set='$bounds' --no-new-privs chroot '$root' $words" >"$work/served" 2>&1 &
pids+=($!)
awaits "$work/served" 'mount -t nfs'
kill -KILL "${pids[-1]}" 2>/dev/null || true
image rm "$container" >/dev/null
told "the image serves: $(grep -o 'nfs://[^ ]*' "$work/served" | head -1)"

# Monitoring: rules that fire for what they are for, and a page that Prometheus takes.
cp -r packaging/monitoring "$work/monitoring"
(cd "$work/monitoring" && promtool check config prometheus.yml && promtool test rules tests.yml) >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "promtool"; }
mkdir "$work/mnt"
unshare --net --mount bash -euc "
    ip link set lo up
    up() { for _ in \$(seq 100); do ! grep -q \"\$2\" \"\$1\" || return 0; sleep 0.1; done; cat \"\$1\"; return 1; }
    page() { python3 -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.1:\$1/metrics').read().decode(), end='')\"; }
    '$binary' serve mem: --listen 127.0.0.1:2049 --metrics 127.0.0.1:9049 >'$work/served' 2>&1 &
    up '$work/served' 'mount -t nfs'
    '$binary' link --to 127.0.0.1:2049 --listen 127.0.0.1:2050 --metrics 127.0.0.1:9050 lan-1g >'$work/linked' 2>&1 &
    up '$work/linked' 'mount -t nfs'
    url='nfs://127.0.0.1/?nfsport=2050&mountport=2050'
    '$binary' mount \"\$url\" '$work/mnt' -o metrics=127.0.0.1:9051 >'$work/mounted' 2>&1 &
    up '$work/mounted' 'locks'
    echo hello >'$work/mnt/greeting'
    '$binary' bench basic --target \"\$url\" >/dev/null
    page 9049 >'$work/page'; page 9050 >'$work/page-link'; page 9051 >'$work/page-mount'
    kill %3; wait %3; kill %2 %1; wait" || fail "the pages of metrics"
for page in page page-link page-mount; do
    promtool check metrics <"$work/$page" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "promtool check metrics: $page"; }
done
python3 packaging/monitoring/check.py "$work/page" docs/metrics.md packaging/monitoring || fail "dashboard and alerts"
told "promtool takes rules, their tests, and the pages of server, relay and mount"

bash examples/try.sh "$binary" || fail "examples"
told "passed"
