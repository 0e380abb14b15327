#!/usr/bin/python3
"""System calls on a mounted file system, each check with its own folder; "ok NAME" or "FAIL NAME: why" a line.

checks.py FOLDER [--callers] [--squashed-to UID] [--privileged] [--version 2|3] [--local] [--only NAME,...]
  --callers          the server acts with the ids of the caller
  --squashed-to UID  the server acts as this user for everybody
  --privileged       the server can make devices and give files away
  --local            a local file system: shows that the checks themselves are right
"""
import argparse, errno, fcntl, hashlib, mmap, os, random, socket, stat, time

from checking import check, fails, read, run, same, write

FILES = 10_000


@check
def rename_storm(o):
    """2,000 renames over 8 folders, onto what exists too, against a dictionary."""
    chance = random.Random(1989)
    folders = [f"d{n}" for n in range(8)]
    for folder in folders:
        os.mkdir(folder)
    model = {}
    for n in range(400):
        path = f"{chance.choice(folders)}/f{n}"
        write(path, path.encode())
        model[path] = path.encode()
    for n in range(2000):
        source = chance.choice(list(model))
        target = chance.choice(list(model)) if chance.random() < 0.05 else f"{chance.choice(folders)}/r{n}"
        os.rename(source, target)
        model[target] = model.pop(source)
    listed = {f"{folder}/{name}" for folder in folders for name in os.listdir(folder)}
    same(listed, set(model), "names")
    for path, content in model.items():
        same(read(path), content, path)
    os.rename("d0", "moved")
    same(sorted(os.listdir("moved")), sorted(p[3:] for p in model if p.startswith("d0/")), "a renamed folder")


@check
def renames_refused(o):
    os.mkdir("a"), os.mkdir("b"), write("a/x", b""), write("b/x", b""), write("file", b"")
    fails(errno.ENOTEMPTY, os.rename, "a", "b")
    fails(errno.ENOTEMPTY, os.rmdir, "a")
    fails(errno.ENOTDIR, os.rename, "a", "file")
    fails(errno.EISDIR, os.rename, "file", "a")
    fails(errno.EINVAL, os.rename, "a", "a/b")
    fails(errno.ENOENT, os.rename, "nothing", "a/y")
    fails(errno.ENAMETOOLONG, write, "n" * 256, b"")
    write("n" * 255, b"long"), same(read("n" * 255), b"long", "a name of 255 bytes")
    write(b"\xff\xfe bytes \n", b"odd"), same(read(b"\xff\xfe bytes \n"), b"odd", "a name that is no text")


@check
def many_entries(o):
    """A large folder is listed completely and without duplicates, also while half of it goes."""
    os.mkdir("many")
    expected = {f"entry-{n:05}" for n in range(FILES)}
    for name in expected:
        os.close(os.open(f"many/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    listed = os.listdir("many")
    same(len(listed), FILES, "entries")
    same(set(listed), expected, "names")
    with os.scandir("many") as entries:
        same(sum(entry.is_file(follow_symlinks=False) for entry in entries), FILES, "files")
    seen = []
    with os.scandir("many") as entries:
        for n, entry in enumerate(entries):
            seen.append(entry.name)
            if n < FILES // 2:
                os.unlink(f"many/{entry.name}")
    same(len(seen), len(set(seen)), "names listed while others went")
    kept = set(os.listdir("many"))
    assert kept <= expected and kept == expected - set(seen[: FILES // 2]), "what was not removed is there"
    assert kept <= set(seen), "what was there throughout was listed"


@check
def sparse_files(o):
    """Holes read as zeros; the ends that matter are at 2 and 4 GiB."""
    places = [0, 4095, (1 << 31) - 3] + ([] if o.version == 2 else [(1 << 32) - 3, 5 << 30, (1 << 40) + 7])
    file = os.open("sparse", os.O_RDWR | os.O_CREAT, 0o644)
    if o.version == 2:
        places = places[:2]
    for place in places:
        os.pwrite(file, f"at {place}".encode(), place)
    os.fsync(file)
    os.close(file)
    file = os.open("sparse", os.O_RDONLY)
    for place in places:
        expected = f"at {place}".encode()
        same(os.pread(file, len(expected), place), expected, f"data at {place}")
    same(os.pread(file, 4096, 1 << 20 if o.version == 3 else 2000), b"\0" * 4096 if o.version == 3 else os.pread(file, 4096, 2000), "a hole")
    same(os.fstat(file).st_size, places[-1] + len(f"at {places[-1]}"), "size")
    os.close(file)
    if o.version == 3:
        assert os.stat("sparse").st_blocks * 512 < 1 << 20, "the holes take room"
    os.truncate("sparse", 1000)
    same(os.stat("sparse").st_size, 1000, "size after truncate")
    os.truncate("sparse", 100_000)
    same(read("sparse")[1000:], b"\0" * 99_000, "what truncate added")


@check
def links(o):
    write("file", b"content")
    for n in range(100):
        os.link("file", f"link{n}")
    same(os.stat("file").st_nlink, 101, "links")
    same(os.stat("link7").st_ino, os.stat("file").st_ino, "inode of a link")
    with open("link7", "ab") as file:
        file.write(b" more")
    same(read("file"), b"content more", "content by another name")
    os.unlink("file")
    same((os.stat("link0").st_nlink, read("link0")), (100, b"content more"), "after one name went")
    os.mkdir("folder")
    fails(errno.EPERM, os.link, "folder", "folder-link")
    fails(errno.EEXIST, os.link, "link0", "link1")
    for target in ["folder", "nowhere/at all", "/etc/passwd", "../../../../../..", "x" * 1000]:
        os.symlink(target, "symlink")
        same(os.readlink("symlink"), target, "target")
        same(os.lstat("symlink").st_size, len(target), "size of a link")
        os.unlink("symlink")
    os.symlink("loop", "loop")
    fails(errno.ELOOP, open, "loop")
    fails(errno.EEXIST, os.symlink, "y", "loop")


@check
def special_files(o):
    os.mkfifo("fifo", 0o640)
    assert stat.S_ISFIFO(os.stat("fifo").st_mode) and stat.S_IMODE(os.stat("fifo").st_mode) == 0o640
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert stat.S_ISSOCK(os.stat("socket").st_mode)
    if os.fork() == 0:
        write("fifo", b"through the fifo")
        os._exit(0)
    same(read("fifo"), b"through the fifo", "a fifo between processes of one client")
    os.wait()
    kinds = [("chr", stat.S_IFCHR, 1, 3), ("blk", stat.S_IFBLK, 7, 300)]
    for name, kind, major, minor in kinds:
        if o.privileged:
            os.mknod(name, kind | 0o600, os.makedev(major, minor))
            got = os.stat(name)
            same((stat.S_IFMT(got.st_mode), got.st_rdev), (kind, os.makedev(major, minor)), name)
        else:
            fails(errno.EPERM, os.mknod, name, kind | 0o600, os.makedev(major, minor))


@check
def modes_and_owners(o):
    write("file", b"")
    for mode in [0o0, 0o777, 0o4755, 0o1644, 0o640]:
        os.chmod("file", mode)
        same(stat.S_IMODE(os.stat("file").st_mode), mode, "mode")
    os.utime("file", ns=(1_000_000_000_123_456_000, 981_173_106_789_012_000))
    same(os.stat("file").st_mtime_ns // 1000, 981_173_106_789_012, "time of change, in microseconds")
    if o.version == 3:
        os.utime("file", ns=(1_000_000_000_123_456_789, 981_173_106_789_012_345))
        same(os.stat("file").st_mtime_ns, 981_173_106_789_012_345, "time of change")
        same(os.stat("file").st_atime_ns, 1_000_000_000_123_456_789, "time of access")
    before = os.stat("file").st_mtime_ns
    with open("file", "ab") as file:
        file.write(b"x")
    assert os.stat("file").st_mtime_ns > before, "a write moves the time on"
    if o.privileged and os.geteuid() == 0:
        os.chown("file", 1101, 1102)
        same((os.stat("file").st_uid, os.stat("file").st_gid), (1101, 1102), "owner")
        os.chmod("file", 0o6755), os.chown("file", 0, 0)
    elif not o.privileged:
        fails(errno.EPERM, os.chown, "file", 1101, 1102)
    old = os.umask(0o027)
    write("masked", b"", 0o666), os.mkdir("masked-folder", 0o777)
    os.umask(old)
    same(stat.S_IMODE(os.stat("masked").st_mode), 0o640, "mode under a umask")
    same(stat.S_IMODE(os.stat("masked-folder").st_mode), 0o750, "mode of a folder under a umask")


def as_user(uid, gid, groups, function):
    """Runs it in a process with these ids; its failure is ours."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups), os.setresgid(gid, gid, gid), os.setresuid(uid, uid, uid)
            function()
            message = b""
        except BaseException:
            message = traceback.format_exc().encode() or b"?"
        os.write(writer, message)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as source:
        message = source.read().decode().strip()
    os.waitpid(child, 0)
    assert not message, f"as {uid}:{gid}:{groups}: " + " | ".join(message.splitlines()[-3:])


@check
def users(o):
    """What each user may, and to whom belongs what they make."""
    os.chmod(".", 0o777)
    if not o.callers:
        write("anybodys", b"x")
        same(os.stat("anybodys").st_uid, o.squashed_to, "owner of what root makes")
        as_user(1101, 1101, [], lambda: write("tests", b"x"))
        same(os.stat("tests").st_uid, o.squashed_to, "owner of what a user makes")
        return

    def tests():
        write("tests-file", b"mine", 0o600), os.mkdir("private", 0o700), write("private/file", b"mine")
        write("group-file", b"ours"), os.chown("group-file", 1101, 1300), os.chmod("group-file", 0o660)
        os.chmod("tests-file", 0o640), os.chmod("tests-file", 0o600)
        fails(errno.EPERM, os.chown, "tests-file", 1102, -1)
        fails(errno.EPERM, os.chown, "tests-file", -1, 0)
        fails(errno.EPERM, os.mknod, "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))

    def other():
        fails(errno.EACCES, open, "tests-file", "rb"), fails(errno.EACCES, open, "tests-file", "ab")
        fails(errno.EACCES, os.listdir, "private"), fails(errno.EACCES, open, "private/file")
        fails(errno.EACCES, write, "private/new", b""), fails(errno.EACCES, open, "group-file", "rb")
        fails(errno.EPERM, os.chmod, "tests-file", 0o777), fails(errno.EACCES, open, "roots-file", "ab")
        assert not os.access("tests-file", os.R_OK) and os.access("roots-file", os.R_OK)
        same(read("roots-file"), b"root's", "what all may read")
        fails(errno.EACCES, write, "roots-folder/new", b""), fails(errno.EPERM, os.utime, "roots-file", (1, 1))

    def colleague():
        same(read("group-file"), b"ours", "by a supplementary group"), write("group-file", b"both's")
        fails(errno.EACCES, open, "tests-file", "rb")

    def sticky():
        fails(errno.EPERM, os.unlink, "sticky/roots"), fails(errno.EPERM, os.rename, "sticky/roots", "sticky/x")
        write("sticky/own", b""), os.unlink("sticky/own")

    write("roots-file", b"root's"), os.mkdir("roots-folder", 0o755)
    os.mkdir("sticky"), os.chmod("sticky", 0o1777), write("sticky/roots", b"")
    os.mkdir("setgid"), os.chown("setgid", 0, 1300), os.chmod("setgid", 0o2777)
    as_user(1101, 1101, [1300], tests)
    as_user(1102, 1102, [], other)
    as_user(1102, 1102, [1299, 1300], colleague)
    as_user(1102, 1102, [], sticky)
    as_user(1102, 1102, [], lambda: write("setgid/file", b""))
    same((os.stat("setgid/file").st_uid, os.stat("setgid/file").st_gid), (1102, 1300), "a file in a set-gid folder")
    got = os.stat("tests-file")
    same((got.st_uid, got.st_gid, stat.S_IMODE(got.st_mode)), (1101, 1101, 0o600), "what a user made")
    same(read("private/file"), b"mine", "root reads all")
    os.chmod("group-file", 0o4770)
    as_user(1102, 1102, [1300], lambda: write("group-file", b"changed"))
    same(stat.S_IMODE(os.stat("group-file").st_mode) & 0o4000, 0, "set-uid bit after a write by another")


@check
def removed_while_open(o):
    """The client renames to .nfs...; the data stay, and the odd name goes with the last descriptor."""
    file = os.open("file", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(file, b"before")
    os.unlink("file")
    assert "file" not in os.listdir(".")
    os.pwrite(file, b" and after", 6)
    os.fsync(file)
    same(os.pread(file, 100, 0), b"before and after", "content of a removed file")
    os.close(file)
    for _ in range(100):  # the client removes it in the background
        if not os.listdir("."):
            break
        time.sleep(0.1)
    same(os.listdir("."), [], "what is left behind")
    write("a", b"a"), write("b", b"b")
    file = os.open("b", os.O_RDONLY)
    os.rename("a", "b")
    same(os.read(file, 10), b"b", "content of a replaced file")
    os.close(file)
    same((read("b"), os.listdir(".")), (b"a", ["b"]), "after a replacement")


@check
def exclusive_and_append(o):
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    os.close(os.open("lock", flags, 0o600))
    same(stat.S_IMODE(os.stat("lock").st_mode), 0o600, "mode of an exclusively made file")
    fails(errno.EEXIST, os.open, "lock", flags)
    os.symlink("target", "link")
    fails(errno.EEXIST, os.open, "link", flags)
    winners = []
    for _ in range(8):
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                os.open("race", flags, 0o600)
                os.write(writer, b"w")
            except FileExistsError:
                pass
            os._exit(0)
        os.close(writer)
        winners.append(reader)
    for _ in range(8):
        os.wait()
    same(sum(len(os.read(reader, 1)) for reader in winners), 1, "winners of a race for a name")
    for reader in winners:
        os.close(reader)
    appended = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    for n in range(100):
        os.write(appended, f"line {n}\n".encode())
    os.close(appended)
    same(len(read("log").splitlines()), 100, "appended lines")


@check
def locks(o):
    """Between processes of this client (nolock)."""
    write("file", b"x")
    first, second = open("file", "r+b"), open("file", "r+b")
    fcntl.flock(first, fcntl.LOCK_EX)
    fails(errno.EWOULDBLOCK, fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(first, fcntl.LOCK_UN)
    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    first.close(), second.close()


@check
def mapped(o):
    size = 1 << 20
    write("file", bytes(size))
    with open("file", "r+b") as file, mmap.mmap(file.fileno(), size) as memory:
        for place in range(0, size, 4096):
            memory[place : place + 8] = place.to_bytes(8, "big")
        memory.flush()
    expected = bytearray(size)
    for place in range(0, size, 4096):
        expected[place : place + 8] = place.to_bytes(8, "big")
    same(hashlib.sha256(read("file")).digest(), hashlib.sha256(expected).digest(), "what was written through memory")


@check
def direct(o):
    """Past the page cache: aligned for local file systems, which is no matter over NFS."""
    buffer = mmap.mmap(-1, 1 << 20)
    buffer.write(os.urandom(1 << 20))
    file = os.open("file", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
    same(os.pwritev(file, [buffer], 0), 1 << 20, "bytes written")
    same(os.pwritev(file, [buffer], 1 << 20), 1 << 20, "bytes written")
    back = mmap.mmap(-1, 1 << 20)
    for place in [0, 1 << 20]:
        same(os.preadv(file, [back], place), 1 << 20, "bytes read")
        assert back[:] == buffer[:], f"data at {place}"
    os.close(file)
    assert read("file") == buffer[:] * 2, "through the page cache"


@check
def random_writes(o):
    """Overlapping writes, truncations and reads of one file, against bytes in memory."""
    chance = random.Random(7)
    model, file = bytearray(), os.open("file", os.O_RDWR | os.O_CREAT, 0o644)
    for n in range(2000):
        place, length = chance.randrange(1 << 18), chance.randrange(1, 20_000)
        what = chance.random()
        if what < 0.6:
            data = chance.randbytes(length)
            if place > len(model):
                model.extend(bytes(place - len(model)))
            model[place : place + length] = data
            os.pwrite(file, data, place)
        elif what < 0.9:
            assert os.pread(file, length, place) == model[place : place + length], f"step {n}: {length} at {place}"
        elif what < 0.95:
            os.ftruncate(file, place)
            model = model[:place] + bytes(max(0, place - len(model)))
        else:
            os.fsync(file)
    os.close(file)
    assert read("file") == model, "at the end"


@check
def totals(o):
    got = os.statvfs(".")
    assert got.f_blocks >= got.f_bfree >= got.f_bavail > 0, f"blocks: {got}"
    if o.version == 3:
        assert got.f_files > 0 and got.f_namemax == 255, f"files: {got}"


parser = argparse.ArgumentParser()
for flag in ["callers", "privileged", "local"]:
    parser.add_argument(f"--{flag}", action="store_true")
parser.add_argument("--squashed-to", type=int, default=0)
parser.add_argument("--version", type=int, default=3)
run(parser)
