# Runs in the guest: mounts the servers of the host, works on them, unmounts, and leaves manifests in /out.
# The host sets SERVERS, a line for each: NAME PORT VERSION SCOPE ARGUMENTS-FOR-CHECKS...; SCOPE is all or checks.
MATERIAL=/add/material
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }
# run NAME COMMAND...: its output with the name before each line
run() {
    local name=$1 start=$SECONDS status
    shift
    "$@" 2>&1 | sed -u "s/^/$name: /"
    status=${PIPESTATUS[0]}
    echo "$name: $((SECONDS - start)) s for ${*##*/}" | cut -c1-120
    return "$status"
}

mount_version_2() { # mount.nfs knows version 2 no more; the kernel does, and is told everything by us
    modprobe -a sunrpc nfs nfsv2
    mkdir -p "$1"
    mount -i -t nfs -o "vers=2,proto=tcp,nolock,port=$PORT,mountport=$PORT,mountproto=tcp,mountvers=1,addr=$HOST,mountaddr=$HOST" \
        "$HOST:/" "$1"
}

# Manifest of a server's folder as the mount NAME sees it, through a new mount: what this client remembers does not help.
leave_manifest() {
    local name=$1
    umount "/mnt/$name" || return 1
    mount_it "$name" || return 1
    bash "$MATERIAL/manifest.sh" "/mnt/$name" times >"/out/$name.manifest" || return 1
}

mount_it() {
    case $VERS in
    2) mount_version_2 "/mnt/$1" ;;
    *) mnt "/mnt/$1" ;;
    esac
}

large_file() { # NAME: 5 GiB, whose checksum the host compares
    python3 "$MATERIAL/large.py" "/mnt/$1/large" >"/out/$1.large" || return 1
    echo "ok 5 GiB: $(cat "/out/$1.large")"
}

# The checks and the tree are right: they pass on a local file system.
mkdir /add/scratch/checks /add/scratch/tree
run local bash "$MATERIAL/tree.sh" /add/scratch/tree "$MATERIAL" || fail "tree on a local disk"
run local python3 "$MATERIAL/checks.py" /add/scratch/checks --callers --privileged --local || fail "checks on a local disk"
bash "$MATERIAL/manifest.sh" /add/scratch/tree >/tmp/tree.manifest

while read -r name PORT VERS scope arguments <&3; do
    [ -n "$name" ] || continue
    echo "== $name: version $VERS, port $PORT, $arguments"
    if ! mount_it "$name"; then
        fail "$name: mount"
        continue
    fi
    grep " /mnt/$name " /proc/mounts
    mkdir "/mnt/$name/checks"
    run "$name" python3 "$MATERIAL/checks.py" "/mnt/$name/checks" --version "$VERS" $arguments || fail "$name: checks"
    if [ "$scope" = all ]; then
        mkdir "/mnt/$name/tree"
        if run "$name" bash "$MATERIAL/tree.sh" "/mnt/$name/tree" "$MATERIAL"; then
            bash "$MATERIAL/manifest.sh" "/mnt/$name/tree" >/tmp/nfs.manifest
            diff /tmp/tree.manifest /tmp/nfs.manifest | head -20 >/tmp/differences
            if [ -s /tmp/differences ]; then
                cat /tmp/differences
                fail "$name: the tree is not the one on the local disk"
            else
                echo "$name: ok the tree is the one on the local disk, $(wc -l <"/tmp/nfs.manifest") lines"
            fi
        else
            fail "$name: tree"
        fi
        [ "$VERS" = 2 ] || run "$name" large_file "$name" || fail "$name: 5 GiB"
    fi
    rm -rf "/mnt/$name/checks/many_entries" || fail "$name: rm -rf of a large folder"
    [ ! -e "/mnt/$name/checks/many_entries" ] || fail "$name: a removed folder is still there"
    run "$name" leave_manifest "$name" || fail "$name: manifest"
    umount "/mnt/$name" || fail "$name: umount"
    ! grep " /mnt/$name " /proc/mounts || fail "$name: still mounted"
    echo "$name: unmounted"
done 3<<<"$SERVERS"

dmesg | grep -iE 'nfs|rpc|BUG|Call Trace|WARN' | grep -viE 'registered|module|FS-Cache|Installing' >/out/kernel.txt
cat /out/kernel.txt
[ "$failures" = 0 ] && echo "all passed in the guest" || echo "$failures failures in the guest"
exit $((failures > 0))
