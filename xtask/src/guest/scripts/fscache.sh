# Runs in the guest, three times: reads the server's files by the kernel's client, by the kernel's client with FS-Cache,
# and by `nfskit mount --cache`. Both caches are on disks of their own, which outlive the guest.
# The host sets METRICS (a port), PERSIST (a folder of the host) and BOOT (first, again, cut). Lines of /out/calls:
# CLIENT WHEN READ-CALLS ALL-CALLS SECONDS WRONG-FILES
. /add/material/clients.sh
modprobe -a loop fuse cachefiles fscache
mkdir -p /persist /caches/fscache /caches/ours
mount -t hostfs -o "$PERSIST" none /persist
for cache in fscache ours; do
    mount -o loop,noatime "/persist/$cache.img" "/caches/$cache" || fail "no disk for $cache"
done
mkdir -p /caches/fscache/files
printf 'dir /caches/fscache/files\ntag guest\nbrun 10%%\nbcull 7%%\nbstop 3%%\nfrun 10%%\nfcull 7%%\nfstop 3%%\n' >/etc/cachefilesd.conf
cachefilesd -f /etc/cachefilesd.conf || fail "cachefilesd does not start"

mount_plain() { kernel_mount /mnt/plain 2049 /; }
mount_fscache() { kernel_mount /mnt/fscache 2049 / fsc; }
mount_ours() { our_mount /mnt/ours "nfs://$HOST/?nfsport=2049&mountport=2049" --cache /caches/ours/files; }
umount_plain() { umount /mnt/plain; }
umount_fscache() { umount /mnt/fscache; }
umount_ours() { our_umount /mnt/ours; }

# measure CLIENT WHEN: reads all, with nothing in the kernel's memory
measure() {
    local client=$1 when=$2 start wrong
    echo 3 >/proc/sys/vm/drop_caches
    calls "$METRICS" >/tmp/before
    start=$(date +%s.%N)
    (cd "/mnt/$client" && find big tree -type f -print0 | sort -z | xargs -0 sha256sum) >/tmp/sums 2>/tmp/errors || cat /tmp/errors
    local seconds=$(echo "$(date +%s.%N) - $start" | bc)
    calls "$METRICS" >/tmp/after
    wrong=$(diff /tmp/sums /persist/sums | grep -c '^<')
    [ "$(wc -l </tmp/sums)" = "$(wc -l </persist/sums)" ] || fail "$client: $when: not all was read"
    [ "$wrong" = 0 ] || fail "$client: $when: $wrong files are wrong"
    since /tmp/before /tmp/after | awk -v client="$client" -v when="$when" -v seconds="$seconds" -v wrong="$wrong" \
        '{ all += $2; if ($1 == "READ") read = $2 } END { print client, when, read + 0, all + 0, seconds, wrong }' | tee -a /out/calls
}

case $BOOT in
first)
    for client in plain fscache ours; do
        mount_$client || fail "$client: mount"
        grep " /mnt/$client " /proc/mounts
        measure $client first
        sleep 6 # what is new of directories is written every 5 s; FS-Cache writes behind, too
        measure $client again
        umount_$client || fail "$client: umount"
        mount_$client || fail "$client: mount"
        measure $client remount
        umount_$client || fail "$client: umount"
    done
    cat /proc/fs/fscache/stats 2>/dev/null | head -30
    kill "$(pidof cachefilesd)"
    sleep 1
    umount /caches/ours || fail "umount of our cache's disk"
    umount /caches/fscache || echo "FS-Cache keeps its disk: the end of the guest is not in order for it"
    ;;
again)
    for client in fscache ours; do
        mount_$client || fail "$client: mount"
        measure $client reboot
    done
    # More is read, and in the midst of that the power is cut.
    for client in fscache ours; do (cd "/mnt/$client" && cat more/* >/dev/null) & done
    sleep 3
    [ "$failures" = 0 ] && echo "@@RC 0 cut" || echo "@@RC 1 cut"
    sleep 0.3
    echo o >/proc/sysrq-trigger
    sleep 60
    ;;
cut)
    for client in fscache ours; do
        mount_$client || fail "$client: mount"
        measure $client cut
        wrong=$( (cd "/mnt/$client" && sha256sum more/*) | diff - /persist/more.sums | grep -c '^<')
        echo "$client: of what was being filled, $wrong files are wrong"
        [ "$wrong" = 0 ] || fail "$client: more: $wrong files are wrong"
        umount_$client || fail "$client: umount"
    done
    "$NFSKIT" cache verify /caches/ours/files || fail "the cache is not whole"
    ;;
esac
finish
