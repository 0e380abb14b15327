#!/bin/bash
# Makes a tree in the folder $1 from the material in $2, as people do: untar, compile, clone, commit.
# The same on every file system, to the byte and the mode: it runs once over NFS and once on a local disk, and the
# manifests of both must be equal.
set -euo pipefail
FOLDER=$1 MATERIAL=$2
export HOME=/root GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=tester GIT_AUTHOR_EMAIL=tester@localhost GIT_AUTHOR_DATE='2001-02-03T04:05:06Z'
export GIT_COMMITTER_NAME=tester GIT_COMMITTER_EMAIL=tester@localhost GIT_COMMITTER_DATE='2001-02-03T04:05:06Z'
umask 022

mkdir "$FOLDER/untarred"
tar -xf "$MATERIAL/tree.tar" -C "$FOLDER/untarred" # times, modes and owners as in the archive
tar -df "$MATERIAL/tree.tar" -C "$FOLDER/untarred"
echo "ok untar"

# A library of 12 sources and a program: each source is compiled by itself, so that the clocks of files matter to make.
mkdir "$FOLDER/compiled"
(
    cd "$FOLDER/compiled"
    sum=0 calls= declarations= objects=
    for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
        printf 'int part_%d(int x) { int y = 0; for (int i = 0; i <= x; i++) y += i * %d; return y; }\n' $n $n >part$n.c
        declarations+="int part_$n(int);" calls+=" + part_$n(10)" objects+=" part$n.o" sum=$((sum + 55 * n))
    done
    printf '#include <stdio.h>\n%s\nint main(void) { printf("%%d\\n", 0%s); return 0; }\n' "$declarations" "$calls" >main.c
    printf 'all: program\nprogram: main.o libparts.a\n\t$(CC) -o $@ main.o -L. -lparts\nlibparts.a:%s\n\tar rcD $@ $^\n' \
        "$objects" >Makefile
    make -s CC=gcc CFLAGS='-O1 -g0'
    [ "$(./program)" = $sum ] || { echo "the program says $(./program), not $sum"; exit 1; }
    [ "$(make CC=gcc | grep -c 'Nothing to be done')" = 1 ] || { echo "make would do it again"; exit 1; }
    sleep 1.1 # make compares times; some of the file systems compared here keep whole seconds
    touch part3.c
    make CC=gcc CFLAGS='-O1 -g0' | grep -c gcc | grep -qx 2 || { echo "make did not see the touched source"; exit 1; }
)
echo "ok compile"

git -c safe.directory='*' clone -q "$MATERIAL/repository.git" "$FOLDER/cloned"
git config --global --replace-all safe.directory '*'
git -C "$FOLDER/cloned" fsck --full --no-progress
[ -z "$(git -C "$FOLDER/cloned" status --porcelain)" ] || { echo "the clone has changes"; exit 1; }
git -C "$FOLDER/cloned" checkout -q -b work
echo change >"$FOLDER/cloned/a-new-file"
git -C "$FOLDER/cloned" add a-new-file
git -C "$FOLDER/cloned" commit -q -m change
git -C "$FOLDER/cloned" gc -q
git -C "$FOLDER/cloned" fsck --full --no-progress
rm -rf "$FOLDER/cloned/.git/"{index,logs,hooks,FETCH_HEAD} # the index holds inode numbers: nothing to compare
echo "ok git"

cp -a "$FOLDER/untarred" "$FOLDER/removed"
rm -rf "$FOLDER/removed"
[ ! -e "$FOLDER/removed" ]
echo "ok rm -rf"
