# Runs in the guest: proxies before a server that is 10 ms away, and that server itself.
# The host sets ORIGINS: the export, port and MOUNT port of two origins. The first has the proxies 2051 and 2052 before it,
# the second 2053 with a log for changes, and 2054 without. PART is untar (times), or seen (what clients see of each other).
. /add/material/clients.sh
NAMES=acdirmin=0,acdirmax=0,lookupcache=positive # names of others are to be seen at once, not after 30 s
read -r export1 port1 mountport1 export2 port2 mountport2 <<<"$ORIGINS"
python3 "$MATERIAL/small.py" /add/scratch/tree
tar -C /add/scratch -cf /add/scratch/tree.tar tree

untar() { # NAME: seconds
    local start=$(date +%s.%N)
    mkdir "/mnt/$1/$2" && tar -xf /add/scratch/tree.tar -C "/mnt/$1/$2" || fail "$1: untar"
    echo "$(date +%s.%N) - $start" | bc
}

if [ "$PART" = untar ]; then
    MOUNTPORT=$mountport2 kernel_mount /mnt/direct "$port2" "$export2" || fail "direct: mount"
    kernel_mount /mnt/plain 2054 / || fail "plain: mount"
    kernel_mount /mnt/log 2053 / || fail "log: mount"
    direct=$(untar direct direct)
    plain=$(untar plain plain)
    echo "untar of 1,007 files: direct $direct s, through a proxy $plain s"
    for round in 1 2 3; do
        log=$(untar log "log$round")
        times=$(echo "scale=1; $direct / $log" | bc)
        echo "through a proxy with a log $log s, $times times as fast"
        best=$(printf '%s\n%s\n' "${best:-0}" "$times" | sort -n | tail -1)
    done
    [ "$(echo "$best >= 20" | bc)" = 1 ] || fail "untar is not 20 times as fast with a log: $best"
    umount /mnt/direct /mnt/plain /mnt/log || fail umount
    finish
fi

# close_to_open WRITERS-AND-READERS...: each writes in turn, and each reads after the close
close_to_open() {
    local name=$1 seen=0 round writer reader want
    shift
    local clients=("$@")
    echo begin >"/mnt/${clients[0]}/shared"
    settle
    for round in $(seq 30); do
        writer=${clients[round % ${#clients[@]}]}
        case $((round % 5)) in
        0) echo "round $round by $writer" >"/mnt/$writer/shared" ;;
        1) echo "more $round" >>"/mnt/$writer/shared" ;;
        2) echo "new $round" >"/mnt/$writer/draft" && mv "/mnt/$writer/draft" "/mnt/$writer/shared" ;;
        3) truncate -s $((round * 7)) "/mnt/$writer/shared" ;;
        4) rm "/mnt/$writer/shared" && echo "again $round" >"/mnt/$writer/shared" ;;
        esac || fail "$name: round $round: $writer cannot write"
        want=$(sha256sum <"/mnt/$writer/shared")
        [ "$writer" != log ] || settle
        for reader in "${clients[@]}"; do
            if [ "$(sha256sum <"/mnt/$reader/shared")" = "$want" ]; then
                seen=$((seen + 1))
            else
                fail "$name: round $round: what $writer closed, $reader does not see"
            fi
        done
    done
    echo "$name: $seen of $((30 * ${#clients[@]})) reads see what was closed"
}
settle() { sleep 4; } # what was made behind a log is ours alone for 3 s

MOUNTPORT=$mountport1 kernel_mount /mnt/direct "$port1" "$export1" $NAMES || fail "direct: mount"
kernel_mount /mnt/one 2051 / $NAMES || fail "one: mount"
kernel_mount /mnt/two 2052 / $NAMES || fail "two: mount"
close_to_open "two proxies and the origin" one direct two
umount /mnt/direct /mnt/one /mnt/two || fail umount
MOUNTPORT=$mountport2 kernel_mount /mnt/direct "$port2" "$export2" $NAMES || fail "direct: mount"
kernel_mount /mnt/log 2053 / $NAMES || fail "log: mount"
kernel_mount /mnt/plain 2054 / $NAMES || fail "plain: mount"
close_to_open "a proxy with a log, one without, and the origin" log direct plain
umount /mnt/direct /mnt/log /mnt/plain || fail umount
dmesg | grep -iE 'nfs|rpc|BUG|Call Trace|WARN' | grep -viE 'registered|module|FS-Cache|Installing'
finish
