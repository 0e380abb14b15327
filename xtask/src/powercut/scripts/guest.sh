# The guest's first process: disk, network, server. /job is this folder, and /srv the host.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t hostfs -o / none /srv
. /job/env
insmod "/lib/modules/$(uname -r)/kernel/drivers/block/nbd.ko" nbds_max=1
ip link set lo up
ip link set vec0 up
ip addr add "$GUEST/24" dev vec0
python3 /job/nbd.py "$HOST" "$DISK_PORT" "$DISK_BYTES"
mount -t "$FILE_SYSTEM" -o "$MOUNT_OPTIONS" /dev/nbd0 /mnt || sleep 1000000
if [ ! -d /mnt/data ]; then
    mkdir -m 777 /mnt/data
    mkdir /mnt/state /job/state
    sync
fi

# A server, and after each kill -9 that the host asks for another one.
run() {
    if [ "$ENDS" = power ]; then
        work &
        "$@"
        return
    fi
    while true; do
        work &
        worker=$!
        "$@" &
        server=$!
        while [ ! -e /job/kill ] && [ -e "/proc/$server" ]; do sleep 0.02; done
        kill -KILL "$server"
        wait "$server"
        kill -KILL "$worker" 2>/dev/null
        umount -l /tmp/mount 2>/dev/null
        rm /job/kill && touch /job/killed
        while [ ! -e /job/start ]; do sleep 0.02; done
        rm /job/start && touch /job/started
    done
}
work() { :; }

echo "@@UP $(cut -d' ' -f1 /proc/uptime)"
case $SERVER in
nfskit) run "/srv$NFSKIT" serve /mnt/data --listen "$GUEST:2049" --state /mnt/state $SERVER_OPTIONS ;;
proxy)
    run "/srv$NFSKIT" serve "$ORIGIN" --listen "$GUEST:2049" --metrics "$GUEST:9150" \
        $SERVER_OPTIONS
    ;;
mount)
    insmod "/lib/modules/$(uname -r)/kernel/fs/fuse/fuse.ko"
    mkdir /tmp/mount
    work() { exec python3 /job/mount.py /tmp/mount /job "$(cat /job/life)"; }
    run "/srv$NFSKIT" mount "$ORIGIN" /tmp/mount $SERVER_OPTIONS
    ;;
knfsd)
    mount -t tmpfs nfs /var/lib/nfs
    . /usr/lib/guest-lib.sh
    start_nfsd /mnt/data "rw,no_root_squash,insecure,no_subtree_check,fsid=1,$SERVER_OPTIONS"
    sleep 1000000
    ;;
ganesha)
    mount --bind /mnt /srv/mnt
    mount --bind /proc /srv/proc
    mount -t tmpfs run /srv/run
    mount -t tmpfs nfs /srv/var/lib/nfs
    mount -t tmpfs tmp /srv/tmp
    mount -t devtmpfs dev /srv/dev
    cp /job/ganesha.conf /srv/run/
    mkdir -p /srv/run/ganesha /srv/run/rpcbind /srv/var/lib/nfs/ganesha
    chroot /srv rpcbind -w
    chroot /srv ganesha.nfsd -F -f /run/ganesha.conf -L STDERR -p /run/ganesha.pid -N NIV_EVENT
    ;;
esac
sleep 1000000
