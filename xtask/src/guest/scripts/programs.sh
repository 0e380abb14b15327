# Runs in the guest: what programs call the server for, with the kernel's client and with `nfskit mount`.
# The host sets METRICS, the port of the server's metrics. A line of /out/calls for each procedure, and one with seconds.
. /add/material/clients.sh
WORK=/add/scratch/work
export HOME=/root GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=tester GIT_AUTHOR_EMAIL=tester@localhost GIT_COMMITTER_NAME=tester GIT_COMMITTER_EMAIL=tester@localhost
umask 022

# A tree of 1,007 files of 0.1 to 8 KB in 158 directories; as an archive, a package, and a repository of two commits.
prepare() {
    mkdir -p "$WORK" && cd "$WORK" || return 1
    python3 "$MATERIAL/small.py" tree || return 1
    find tree -exec touch -d '2020-02-02 02:02:02' {} +
    tar -cf tree.tar tree
    cp -a tree repository
    (cd repository && git init -q && git add . && git commit -qm one && python3 "$MATERIAL/small.py" --change . && git commit -qam two) || return 1
    mkdir -p package/DEBIAN package/usr/share && cp -a tree package/usr/share/tree
    printf 'Package: tree\nVersion: 1\nArchitecture: all\nMaintainer: tester <tester@localhost>\nDescription: a tree\n' >package/DEBIAN/control
    dpkg-deb --build package package.deb >/dev/null || return 1
    mkdir sources && cd sources || return 1
    local n objects=
    for n in $(seq 40); do
        printf '#include "all.h"\nint part_%d(int x) { return x * %d; }\n' "$n" "$n" >part$n.c
        printf 'int part_%d(int);\n' "$n" >>all.h
        objects+=" part$n.o"
    done
    printf '#include "all.h"\nint main(void) { return part_1(0); }\n' >main.c
    printf 'program: main.o%s\n\t$(CC) -o $@ $^\n%%.o: %%.c all.h\n\t$(CC) -c -o $@ $<\n' "$objects" >Makefile
    git config --global --replace-all safe.directory '*'
    cd /
}

untar() { tar -xf "$WORK/tree.tar"; }
copy_into() { cp -a "$WORK/tree" copied; }
copy_within() { cp -a tree within; }
list() { find tree -ls; }
remove() { rm -r within; }
clone() { git clone -q --no-local "$WORK/repository" cloned; }
status() { [ -z "$(git -C cloned status --porcelain)" ]; }
checkout() { git -C cloned checkout -q HEAD~1; }
sources() { cp -r "$WORK/sources" sources; }
compile() { make -s -C sources CC=gcc; }
compile_again() { make -s -C sources CC=gcc; }
package() {
    mkdir -p installed /tmp/admin/{updates,info,triggers} && : >/tmp/admin/status && : >/tmp/admin/available &&
        dpkg --admindir=/tmp/admin --instdir="$PWD/installed" --unpack "$WORK/package.deb" && rm -r /tmp/admin
}
inserts() {
    sqlite3 data.db 'create table t (n integer primary key, s text);' || return 1
    for n in $(seq 100); do echo "insert into t values ($n, hex(randomblob(100)));"; done | sqlite3 data.db &&
        [ "$(sqlite3 data.db 'select count(*) from t')" = 100 ]
}

mount_kernel() { kernel_mount /mnt/kernel 2049 /; }
umount_kernel() { umount /mnt/kernel; }
mount_ours() { our_mount /mnt/ours "nfs://$HOST/?nfsport=2049&mountport=2049"; }
umount_ours() { our_umount /mnt/ours; }

# measure CLIENT PROGRAM: on a new mount, until all is at the server
measure() {
    local client=$1 program=$2 start
    mount_$client || { fail "$client: mount"; return; }
    calls "$METRICS" >/tmp/before
    start=$(date +%s.%N)
    (cd "/mnt/$client/$client" && $program) >/tmp/program.log 2>&1 || { cat /tmp/program.log; fail "$client: $program"; }
    echo "$client $program seconds $(echo "$(date +%s.%N) - $start" | bc)" >>/out/calls
    umount_$client || fail "$client: umount after $program"
    calls "$METRICS" >/tmp/after
    since /tmp/before /tmp/after | sed "s/^/$client $program /" >>/out/calls
    echo "$client: $program: $(since /tmp/before /tmp/after | tr '\n' ' ')"
}

prepare || fail "material"
for client in kernel ours; do
    for program in untar list copy_into copy_within remove clone status checkout sources compile compile_again package inserts; do
        measure $client $program
    done
done
finish
