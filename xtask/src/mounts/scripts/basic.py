#!/usr/bin/python3
"""Operations on a mount in the manner of the Connectathon suite's basic and special tests, one sort at a time.

basic.py FOLDER [--quick] [--only NAME,...]: "ok NAME" or "FAIL NAME: why" a line; errors must be exactly the right ones.
"""
import argparse, errno, fcntl, os, random, stat, time

from checking import check, fails, read, run, same, write


def grow(depth, files, folders):
    """A tree: so many files and folders in each folder, so deep."""
    for n in range(files):
        write(f"file{n}", b"")
    if depth:
        for n in range(folders):
            os.mkdir(f"folder{n}")
            os.chdir(f"folder{n}")
            grow(depth - 1, files, folders)
            os.chdir("..")


@check
def tree(o):
    """Makes and removes files and folders at several levels."""
    depth = 2 if o.quick else 4
    os.mkdir("tree")
    os.chdir("tree")
    grow(depth, 5, 2)
    os.chdir("..")
    files = folders = 0
    for _, inner, names in os.walk("tree"):
        files, folders = files + len(names), folders + len(inner)
    expected = 2 ** (depth + 1) - 1
    same((files, folders), (5 * expected, expected - 1), "files and folders")
    for path, inner, names in os.walk("tree", topdown=False):
        for name in names:
            os.unlink(os.path.join(path, name))
        for name in inner:
            os.rmdir(os.path.join(path, name))
    same(os.listdir("tree"), [], "after everything was removed")


@check
def lookups(o):
    here = os.getcwd()
    for _ in range(25 if o.quick else 250):
        same(os.getcwd(), here, "the working folder")
        assert stat.S_ISDIR(os.stat(".").st_mode) and os.stat("..").st_ino != os.stat(".").st_ino
        fails(errno.ENOENT, os.stat, "nothing")
        fails(errno.ENOENT, os.stat, "nothing/deeper")


@check
def modes(o):
    for n in range(10):
        write(f"file{n}", b"")
    for _ in range(5 if o.quick else 50):
        for n in range(10):
            os.chmod(f"file{n}", 0o400)
            same(stat.S_IMODE(os.stat(f"file{n}").st_mode), 0o400, "mode")
            os.chmod(f"file{n}", 0o644)
            same(stat.S_IMODE(os.stat(f"file{n}").st_mode), 0o644, "mode")


@check
def megabyte(o):
    """1 MiB in pieces of 8 KiB, its size after each way to make it, and back."""
    data = random.Random(5).randbytes(1 << 20)
    for _ in range(2 if o.quick else 10):
        file = os.open("big", os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o644)
        same(os.fstat(file).st_size, 0, "size of a new file")
        for place in range(0, len(data), 8192):
            same(os.write(file, data[place : place + 8192]), 8192, "bytes written")
        os.close(file)
        same(os.stat("big").st_size, len(data), "size")
        assert read("big") == data, "content"
        os.unlink("big")
    fails(errno.ENOENT, os.stat, "big")


@check
def listings(o):
    """Entries come once each, and go when they are removed."""
    os.mkdir("many")
    for n in range(200):
        write(f"many/file{n}", b"")
        if n % 20 == 19:
            same(len(os.listdir("many")), n + 1, "entries while the folder grows")
    for n in range(200):
        os.unlink(f"many/file{n}")
        if n % 20 == 19:
            same(len(os.listdir("many")), 199 - n, "entries while the folder shrinks")
    fails(errno.ENOTDIR, os.listdir, write("plain", b"") or "plain")


@check
def links_and_renames(o):
    for n in range(20 if o.quick else 200):
        write("old", b"content")
        os.rename("old", "new")
        fails(errno.ENOENT, os.stat, "old")
        same(os.stat("new").st_nlink, 1, "links")
        os.link("new", "old")
        same((os.stat("old").st_nlink, os.stat("new").st_nlink), (2, 2), "links of both")
        os.unlink("new")
        same((os.stat("old").st_nlink, read("old")), (1, b"content"), "what is left")
        os.unlink("old")


@check
def symbolic_links(o):
    for n in range(20 if o.quick else 200):
        target = f"/this/is/a/symlink/target{n}"
        os.symlink(target, "link")
        assert stat.S_ISLNK(os.lstat("link").st_mode)
        same(os.readlink("link"), target, "target")
        os.unlink("link")
        fails(errno.ENOENT, os.readlink, "link")
    write("plain", b"")
    fails(errno.EINVAL, os.readlink, "plain")


@check
def totals(o):
    for _ in range(10 if o.quick else 500):
        got = os.statvfs(".")
        assert got.f_blocks >= got.f_bfree >= 0 and got.f_bsize > 0 and got.f_namemax >= 255, f"{got}"


@check
def open_and_removed(o):
    """Special test op_unlk: the file lives on until it is closed."""
    file = os.open("gone", os.O_CREAT | os.O_RDWR, 0o644)
    os.write(file, b"before")
    os.unlink("gone")
    fails(errno.ENOENT, os.stat, "gone")
    os.write(file, b" after")
    same(os.pread(file, 100, 0), b"before after", "content")
    same(os.fstat(file).st_size, 12, "size")
    os.close(file)


@check
def open_and_forbidden(o):
    """Special test op_chmod: who has opened a file may go on."""
    file = os.open("file", os.O_CREAT | os.O_RDWR, 0o644)
    os.write(file, b"before")
    os.chmod("file", 0)
    os.write(file, b" after")
    os.fsync(file)
    same(os.pread(file, 100, 0), b"before after", "content")
    os.close(file)


@check
def exclusive(o):
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
    file = os.open("file", flags, 0o600)
    os.write(file, b"x")
    fails(errno.EEXIST, os.open, "file", flags, 0o600)
    os.close(file)
    same(read("file"), b"x", "content")


@check
def negative_seek(o):
    file = os.open("file", os.O_CREAT | os.O_RDWR, 0o644)
    fails(errno.EINVAL, os.lseek, file, -1, os.SEEK_SET)
    fails(errno.EINVAL, os.pread, file, 1, -1)
    os.close(file)


@check
def replaced(o):
    """Special test rename: onto a file that is there, while somebody reads."""
    write("a", b"first"), write("b", b"second")
    reader = open("b", "rb", buffering=0)
    os.rename("a", "b")
    same((reader.read(), read("b")), (b"second", b"first"), "the old and the new file")
    reader.close()
    os.mkdir("folder")
    fails(errno.EISDIR, os.rename, "b", "folder")
    fails(errno.ENOTDIR, os.rename, "folder", "b")
    fails(errno.ENOENT, os.rename, "nothing", "b")
    fails(errno.EINVAL, os.rename, "folder", "folder/below")


@check
def holes(o):
    """Special test holey: what was never written is zeros."""
    file = os.open("file", os.O_CREAT | os.O_RDWR, 0o644)
    expected = bytearray()
    for n in range(40):
        place = n * 12_345
        os.pwrite(file, bytes([n + 1]) * 1000, place)
        expected.extend(bytes(place - len(expected)))
        expected.extend(bytes([n + 1]) * 1000)
    assert os.pread(file, len(expected) + 10, 0) == expected, "before the close"
    os.close(file)
    assert read("file") == expected, "after the close"


@check
def truncations(o):
    file = os.open("file", os.O_CREAT | os.O_RDWR, 0o644)
    os.write(file, b"x" * 10_000)
    os.ftruncate(file, 5_000)
    same(os.fstat(file).st_size, 5_000, "size")
    os.ftruncate(file, 8_000)
    same(os.pread(file, 10_000, 0), b"x" * 5_000 + bytes(3_000), "content")
    os.close(file)
    os.truncate("file", 0)
    same(read("file"), b"", "content")
    fails(errno.EISDIR, os.truncate, ".", 0)
    fails(errno.ENOENT, os.truncate, "nothing", 0)


@check
def idempotence(o):
    """Special test nfsidem: each call is answered once, however often it is sent."""
    for n in range(10 if o.quick else 100):
        os.mkdir("folder")
        write("folder/file", b"data")
        os.rename("folder/file", "folder/moved")
        os.link("folder/moved", "folder/link")
        os.symlink("moved", "folder/symbolic")
        same(read("folder/symbolic"), b"data", "content")
        for name in ["moved", "link", "symbolic"]:
            os.unlink(f"folder/{name}")
        os.rmdir("folder")


@check
def rewound(o):
    """Special test telldir: a listing that begins again begins at the beginning."""
    names = {f"file{n}" for n in range(100)}
    for name in names:
        write(name, b"")
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    first = os.listdir(folder)
    same((len(first), set(first)), (100, names), "first listing")
    os.unlink("file7")
    same(set(os.listdir(folder)), names - {"file7"}, "second listing")
    os.close(folder)


@check
def record_locks(o):
    """Between processes of this mount."""
    write("file", bytes(100))
    file = os.open("file", os.O_RDWR)
    fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        other = os.open("file", os.O_RDWR)
        answer = b""
        for place in [0, 5, 50]:
            try:
                fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, place)
                answer += b"y"
            except OSError as error:
                answer += b"n" if error.errno in (errno.EAGAIN, errno.EACCES) else b"?"
        os.write(writer, answer)
        os._exit(0)
    os.waitpid(child, 0)
    same(os.read(reader, 10), b"nny", "what the other process was granted")
    os.close(file), os.close(reader), os.close(writer)


@check
def appended(o):
    """Several processes of this mount append lines, of which none is lost or torn."""
    children = []
    for who in range(4):
        child = os.fork()
        if child == 0:
            file = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
            for n in range(50):
                os.write(file, f"{who} {n:04} {'x' * 40}\n".encode())
            os.close(file)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    lines = read("log").decode().splitlines()
    expected = sorted(f"{who} {n:04} {'x' * 40}" for who in range(4) for n in range(50))
    same(len(lines), 200, "lines")
    same(sorted(lines), expected, "lines")


@check
def names(o):
    fails(errno.ENAMETOOLONG, write, "n" * 256, b"")
    fails(errno.ENOTDIR, write, write("plain", b"") or "plain/below", b"")
    fails(errno.EEXIST, os.mkdir, "plain")
    fails(errno.ENOENT, os.rmdir, "nothing")
    fails(errno.ENOTDIR, os.rmdir, "plain")
    fails(errno.EISDIR, os.unlink, os.mkdir("folder") or "folder")
    write("folder/x", b"")
    fails(errno.ENOTEMPTY, os.rmdir, "folder")
    os.symlink("loop", "loop")
    fails(errno.ELOOP, os.stat, "loop")
    for name in ["with blank", "täglich", "new\nline", "-dash", "a" * 255, "back\\slash", '"']:
        write(name, name.encode())
        same(read(name), name.encode(), name)
        assert name in os.listdir("."), name


@check
def times(o):
    write("file", b"")
    os.utime("file", ns=(1_000_000_000_000_000_000, 981_173_106_000_000_000))
    same((os.stat("file").st_atime, os.stat("file").st_mtime), (1_000_000_000, 981_173_106), "times")
    with open("file", "ab") as file:
        file.write(b"x")
    assert abs(os.stat("file").st_mtime - time.time()) < 60, f"written now, and the time is {os.stat('file').st_mtime}"
    before = os.stat(".").st_mtime_ns
    time.sleep(0.02)
    write("another", b"")
    assert os.stat(".").st_mtime_ns > before, "a folder's time moves on with its entries"


@check
def attributes_refused(o):
    """NFS version 3 has no extended attributes: that is said cleanly."""
    write("file", b"")
    fails(errno.EOPNOTSUPP, os.setxattr, "file", "user.name", b"value")
    try:
        same(os.listxattr("file"), [], "attributes")
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP, f"{error}"


parser = argparse.ArgumentParser()
parser.add_argument("--quick", action="store_true")
parser.add_argument("--local", action="store_true", help="a local file system, which has extended attributes")
run(parser, left_out=lambda options: ["attributes_refused"] if options.local else [])
