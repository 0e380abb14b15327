#!/bin/bash
# Whether the files here are right: bash packaging/check.sh, after cargo build --release. Needs root, and the packages
# systemd, util-linux and python3.
set -euo pipefail
cd "$(dirname "$0")/.."
nfskit=${NFSKIT:-${CARGO_TARGET_DIR:-target}/release/nfskit}
nfskit=$(realpath "$nfskit")
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "packaging: FAILED: $*"; exit 1; }

# The unit: no unknown words, and hardened.
sed "s|/usr/bin/nfskit|$nfskit|; /^Documentation=/d" packaging/nfskit.service >"$work/nfskit.service"
systemd-analyze verify --man=no --recursive-errors=no "$work/nfskit.service" 2>&1 | tee "$work/verify"
[ ! -s "$work/verify" ] || fail "systemd-analyze verify has something to say"
systemd-analyze security --no-pager --offline=true --threshold=40 "$work/nfskit.service" >"$work/security" ||
    fail "$(tail -1 "$work/security")"
echo "packaging: unit: $(tail -1 "$work/security")"

# The example of exports is read by the server; with other paths, for nobody has ours.
mkdir "$work/data" "$work/state"
chmod 1777 "$work/data"
sed "s|/srv/data|$work/data|" examples/exports.toml >"$work/exports.toml"
capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' packaging/nfskit.service | tr 'A-Z ' 'a-z,' | sed 's/cap_//g')
bounds="-all$(printf ',+%s' ${capabilities//,/ })"
umask 077
setpriv --bounding-set="$bounds" --no-new-privs python3 packaging/families.py packaging/nfskit.service \
    "$nfskit" serve --listen 127.0.0.1:0 --udp --exports "$work/exports.toml" \
    --state "$work/state" --grace 20s >"$work/log" 2>&1 &
server=$!
for _ in $(seq 100); do grep -q 'mount -t nfs' "$work/log" && break; sleep 0.1; done
cat "$work/log"
grep -q 'mount -t nfs' "$work/log" || fail "the server does not start with the unit's capabilities"
grep -q 'callers act with their own uid' "$work/log" || fail "it cannot act as its callers"
# The example is `secure`: root of this host is let in from any port, because the server sees whose program it is.
url=$(sed -n 's/^ *url *//p' "$work/log")
from_high_port() { setpriv --inh-caps=-net_bind_service --bounding-set=-net_bind_service "$@"; }
from_high_port "$nfskit" bench seqwrite --wire --size 64K --target "$url" >"$work/bench" 2>&1 ||
    { cat "$work/bench"; fail "the server does not see whose program calls"; }
kill -HUP $server
sleep 1 # an end would be seen now
kill -TERM $server || fail "SIGHUP ended it"
wait $server || fail "SIGTERM: exit status $?"
server=

# What packages generate.
"$nfskit" man "$work/man"
[ -s "$work/man/nfskit-serve.1" ] || fail "no manual page of serve"
for shell in bash zsh fish; do "$nfskit" completions $shell >"$work/completions.$shell"; done
bash -n "$work/completions.bash" || fail "the completions of bash are no shell"
grep -q 'EXIT STATUS' "$work/man/nfskit-serve.1" || fail "the manual page of serve does not tell how it ends"
for script in packaging/*.sh packaging/debian/p* examples/*.sh examples/*.sbatch; do
    bash -n "$script" || fail "$script is no shell script"
done
# What package and image depend on: nothing but libc and libgcc.
ldd "$nfskit" | grep -vE 'linux-vdso|ld-linux|libc\.so|libm\.so|libgcc_s' && fail "another library"
echo "packaging: passed"
