# Runs in the guest: `papers sun` against our server without a write log and with one, on an ext4 with a journal: what the disk
# is given to do, by /proc/diskstats, and the response times. Without a volatile cache no flush is counted as a write, and the
# numbers are exact; with one they are what Linux counts. The log lies in the same file system, or on a disk of its own.
. /add/material/clients.sh
DISK=$(basename "$(df --output=source /add/scratch | tail -1)")
modprobe loop
truncate -s 200M /tmp/log.img
LOOP=$(losetup --find --show /tmp/log.img) || fail "no disk for the log"
mke2fs -q -F -t ext4 "$LOOP"
mkdir -p /log
mount -o noatime "$LOOP" /log || fail "the log's disk"

# serve NAME PORT [options]: a server of a new directory; its process is $!
serve() {
    local name=$1 port=$2
    shift 2
    rm -rf "/add/scratch/$name" "/tmp/$name.state"
    mkdir "/add/scratch/$name"
    "$NFSKIT" serve "/add/scratch/$name" --listen "127.0.0.1:$port" --state "/tmp/$name.state" \
        --export "/=no_root_squash,insecure" "$@" >"/tmp/$name.out" 2>&1 &
    for _ in $(seq 300); do grep -q '^  url' "/tmp/$name.out" && return; sleep 0.1; done
    cat "/tmp/$name.out"
    fail "$name: does not start"
}

# sun CACHE LOG [options of papers sun]: the log's file, and where the disks are
sun() {
    local cache=$1 log=$2
    shift 2
    for disk in "$DISK" "$(basename "$LOOP")"; do echo "$cache" >"/sys/block/$disk/queue/write_cache"; done
    serve plain 2061
    local plain=$!
    serve logged 2062 --write-log "$log" --write-log-size 64M
    local logged=$!
    echo
    echo "== disk $cache, log $log"
    "$NFSKIT" papers sun -q --time 1s --disk "$DISK" "$@" --markdown >/tmp/sun \
        --without "nfs://127.0.0.1/?nfsport=2061&mountport=2061" --with "nfs://127.0.0.1/?nfsport=2062&mountport=2062" \
        || fail "$cache, $log: status $?"
    cat /tmp/sun
    # The times are this machine's, on which others work: only what the disk is given to do is held.
    grep -q 'missed: [^;]* of the disk' /tmp/sun && fail "$cache, $log: no fewer writes or more flushes"
    kill "$plain" "$logged"
    wait "$plain" "$logged"
    rm -f "$log"
}

sun "write through" /add/scratch/log
sun "write through" /log/log --log-disk "$(basename "$LOOP")"
sun "write back" /add/scratch/log
finish
