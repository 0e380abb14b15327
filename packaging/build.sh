#!/bin/bash
# Makes the packages: bash packaging/build.sh [-b BINARY] [-o DIR] [-n]
#
#   nfskit_VERSION-1_ARCH.deb             Debian and its relatives
#   nfskit-VERSION-ARCH-linux.tar.gz      the same files, to be unpacked anywhere
#   nfskit-VERSION-ARCH.oci.tar           an image, if buildah and mmdebstrap are there and we are root; not with -n
#
# BINARY is target/release/nfskit unless told, DIR is dist. Needs dpkg and binutils, and no debhelper: the
# package is a handful of files. The same commit and binary make the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${CARGO_TARGET_DIR:-target}/release/nfskit out=dist image=yes
while getopts b:o:n option; do
    case $option in
        b) binary=$OPTARG ;;
        o) out=$OPTARG ;;
        n) image=no ;;
        *) exit 2 ;;
    esac
done
[ -x "$binary" ] || { echo "build.sh: no $binary: cargo build --release, or -b BINARY" >&2; exit 2; }
binary=$(realpath "$binary")
mkdir -p "$out"
out=$(realpath "$out")
version=$("$binary" --version | cut -d' ' -f2)
arch=$(dpkg --print-architecture)
# The date of all files; nothing in a package tells when or where it was made.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# The files, as they lie in the system.
root=$work/tree doc=$work/tree/usr/share/doc/nfskit
install -D -m 755 "$binary" "$root/usr/bin/nfskit"
# mount(8) calls it by these names, in /sbin, which is /usr/sbin: to mount, and to remount.
mkdir -p "$root/usr/sbin"
ln -s ../bin/nfskit "$root/usr/sbin/mount.nfskit"
ln -s ../bin/nfskit "$root/usr/sbin/mount.fuse.nfskit"
install -D -m 644 packaging/nfskit.service "$root/usr/lib/systemd/system/nfskit.service"
install -D -m 644 examples/exports.toml "$doc/examples/exports.toml"
cp -r packaging/monitoring examples/*.{md,sbatch,yaml,sql,py,pcap,log,txt,toml,json} "$doc/examples/"
rm "$doc/examples/monitoring/check.py"
install -m 644 README.md LICENSE "$doc/"
gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
cat <<END | gzip -9n >"$doc/changelog.Debian.gz"
nfskit ($version-1) unstable; urgency=medium

  * Made by packaging/build.sh; changelog.gz tells what has changed.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
install -m 644 packaging/debian/copyright "$doc/copyright"
"$binary" man "$root/usr/share/man/man1" >/dev/null
gzip -9n "$root"/usr/share/man/man1/*.1
mkdir -p "$root/usr/share/man/man8"
ln -s ../man1/nfskit-mount.1.gz "$root/usr/share/man/man8/mount.nfskit.8.gz"
ln -s ../man1/nfskit-mount.1.gz "$root/usr/share/man/man8/mount.fuse.nfskit.8.gz"
install -d "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
    "$root/usr/share/fish/vendor_completions.d"
"$binary" completions bash >"$root/usr/share/bash-completion/completions/nfskit"
"$binary" completions zsh >"$root/usr/share/zsh/vendor-completions/_nfskit"
"$binary" completions fish >"$root/usr/share/fish/vendor_completions.d/nfskit.fish"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# The tarball: the same, below one folder.
name=nfskit-$version-$(uname -m)-linux
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --transform "s|^\.|$name|" -C "$root" . | gzip -9n >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"

# The Debian package. The newest symbol of libc that the binary asks for is the oldest libc it runs with.
libc=$(objdump -T "$binary" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
mkdir "$root/DEBIAN"
installed_kib=$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
sed -e "s/@VERSION@/$version-1/; s/@ARCH@/$arch/; s/@LIBC@/${libc#GLIBC_}/; s/@KIB@/$installed_kib/" \
    packaging/debian/control >"$root/DEBIAN/control"
for script in postinst prerm postrm; do
    install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"
done
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/nfskit_${version}-1_$arch.deb" >/dev/null
echo "$out/nfskit_${version}-1_$arch.deb"

[ $image = yes ] || exit 0
# The image: libc, libgcc, and the package, without a shell; the Dockerfile says how it starts.
if ! command -v buildah >/dev/null || ! command -v mmdebstrap >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "build.sh: no image: that takes buildah, mmdebstrap and root" >&2
    exit 0
fi
context=$work/context
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
mkdir "$context"
mmdebstrap --quiet --variant=extract --include=base-files,netbase,libc6,libgcc-s1 \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    "$suite" "$context/image" 2>"$work/mmdebstrap" || { cat "$work/mmdebstrap" >&2; exit 1; }
install -m 755 "$binary" "$context/image/usr/bin/nfskit"
install -D -m 644 packaging/exports.container.toml "$context/image/etc/nfskit/exports.toml"
install -d -m 700 "$context/image/var/lib/nfskit"
install -d "$context/image/srv/data"
cp packaging/Dockerfile "$context/Dockerfile"
# A store of its own: this host's images are not touched.
image() { buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"; }
image build --quiet --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" --tag "nfskit:$version" "$context" >/dev/null
rm -f "$out/nfskit-$version-$arch.oci.tar"
image push --quiet "nfskit:$version" "oci-archive:$out/nfskit-$version-$arch.oci.tar:nfskit:$version"
echo "$out/nfskit-$version-$arch.oci.tar"
