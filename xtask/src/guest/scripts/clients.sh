# Helpers for scripts in the guest that mount by the kernel's client and by ours; `NFSKIT` is our binary.
MATERIAL=/add/material
NFSKIT=$MATERIAL/nfskit
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }
finish() {
    [ "$failures" = 0 ] && echo "all passed in the guest" || echo "$failures failures in the guest"
    exit $((failures > 0))
}

# calls METRICS-PORT: the server's calls of NFS so far, a line for each procedure
calls() {
    exec 9<>"/dev/tcp/$HOST/$1"
    printf 'GET /metrics HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n' >&9
    sed -n 's/^nfskit_calls_total{program="nfs",version="3",procedure="\([A-Z0-9]*\)"} \([0-9]*\).*/\1 \2/p' <&9 | sort
    exec 9>&-
}

# since BEFORE AFTER: procedures and calls between two answers of `calls`
since() { join -a 2 -e 0 -o 0,1.2,2.2 "$1" "$2" | awk '$3 > $2 { print $1, $3 - $2 }'; }

# kernel_mount DIR PORT EXPORT [options]
kernel_mount() { PORT=$2 MOUNTPORT=${MOUNTPORT:-$2} EXPORT=$3 mnt "$1" "${4:-}"; }

# our_mount DIR URL [options]: waits until it is there; its log is DIR.log
our_mount() {
    local dir=$1 url=$2
    shift 2
    mkdir -p "$dir"
    modprobe fuse
    "$NFSKIT" mount "$url" "$dir" "$@" >"$dir.log" 2>&1 &
    OURS=$!
    for _ in $(seq 100); do
        mountpoint -q "$dir" && return
        sleep 0.1
    done
    cat "$dir.log"
    return 1
}

# our_umount DIR: waits until all is at the server
our_umount() { umount "$1" && wait "$OURS"; }
