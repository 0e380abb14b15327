"""Work on a mounted directory: `load.py prepare|run KIND DIR SECONDS THREADS SIZE`.

`run` prints what was done in a second: bytes of what moves data, pieces of all else.
"""

import mmap
import os
import random
import sys
import threading
import time

what, kind, folder, seconds, threads, size = sys.argv[1:]
seconds, threads, size = float(seconds), int(threads), int(size)
FILES = 300
MIB = 1 << 20
# What one program reads or writes, and forgets before it begins again.
LARGE = 32 * MIB
DEEP = [f"{folder}/tree/d{at % 20}/f{at}" for at in range(FILES)]


def path(number):
    return f"{folder}/{kind}{number}"


def drop_caches():
    """As if another host had begun: names, attributes and pages are asked for anew."""
    with open("/proc/sys/vm/drop_caches", "w") as knob:
        knob.write("3")


def forget(file):
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def make_large(number):
    with open(path(number), "wb", buffering=0) as file:
        for _ in range(LARGE // MIB):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


def make_tree(_):
    for at in range(20):
        os.makedirs(f"{folder}/tree/d{at}", exist_ok=True)
    for name in DEEP:
        with open(name, "wb") as file:
            file.write(b"x" * size)


def make_links(_):
    os.makedirs(f"{folder}/real", exist_ok=True)
    for at in range(FILES):
        with open(f"{folder}/real/f{at}", "wb") as file:
            file.write(b"x")
        os.symlink(f"real/f{at}", f"{folder}/l{at}")


def make_folder(number):
    os.makedirs(path(number), exist_ok=True)


def make_empty(number):
    open(path(number), "wb").close()


# Each of these does a piece of work again and again, and yields how much that was.


def read(number):
    """A large file from its beginning to its end."""
    buffer = memoryview(bytearray(size))
    while True:
        with open(path(number), "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                yield count
            forget(file.fileno())


def read_direct(number):
    """Pieces at random places, each from the server, one at a time."""
    file = os.open(path(number), os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, size)
    draw = random.Random(number)
    while True:
        yield os.preadv(file, [buffer], draw.randrange(LARGE // size) * size)


def read_pieces(number):
    """Pieces at random places, as a data base reads."""
    draw = random.Random(number)
    with open(path(number), "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for turn in range(1 << 40):
            yield len(os.pread(file.fileno(), size, draw.randrange(LARGE // size) * size))
            if turn % 1000 == 999:
                forget(file.fileno())


def read_mapped(number):
    while True:
        with open(path(number), "rb") as file:
            with mmap.mmap(file.fileno(), LARGE, prot=mmap.PROT_READ) as pages:
                for at in range(0, LARGE, MIB):
                    yield len(pages[at:at + MIB])
            forget(file.fileno())


def write(number):
    """A large file, which is on the server at its end."""
    piece = os.urandom(size)
    while True:
        with open(path(number), "wb", buffering=0) as file:
            for _ in range(LARGE // size):
                yield file.write(piece)
            os.fsync(file.fileno())


def write_on(number):
    """On and on, and nobody waits for the server."""
    piece = os.urandom(size)
    with open(path(number), "wb", buffering=0) as file:
        try:
            while True:
                yield file.write(piece)
                if file.tell() > 16 * LARGE:
                    file.seek(0)
        finally:
            # What is not on the server by now need not come there.
            file.truncate(0)


def write_direct(number):
    """One piece at a time, each of which goes to the server."""
    file = os.open(path(number), os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    buffer = mmap.mmap(-1, size)
    for turn in range(1 << 40):
        yield os.pwritev(file, [buffer], turn % (LARGE // size) * size)


def write_stable(number):
    """A program that wants each piece to be stable (O_SYNC)."""
    piece = os.urandom(size)
    file = os.open(path(number), os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    for turn in range(1 << 40):
        yield os.pwrite(file, piece, turn % (LARGE // size) * size)


def write_paced(number):
    """A log: a line now and then, stable every second."""
    with open(path(number), "ab", buffering=0) as file:
        for turn in range(1 << 40):
            yield file.write(b"x" * size)
            time.sleep(0.01)
            if turn % 100 == 99:
                os.fsync(file.fileno())


def copy(number):
    while True:
        with open(path(number), "rb", buffering=0) as source:
            with open(path(number) + ".copy", "wb", buffering=0) as target:
                while piece := source.read(size):
                    yield target.write(piece)
            forget(source.fileno())


def look(_):
    """The attributes of one file after the other."""
    while True:
        for name in DEEP:
            os.stat(name)
            yield 1


def opened(_):
    """Files that are opened and read, again and again."""
    while True:
        for name in DEEP:
            with open(name, "rb", buffering=0) as file:
                file.read()
            yield 1


def walk(_):
    """A tree, as find and ls -l go through it, for the first time."""
    while True:
        for at in range(20):
            for entry in os.scandir(f"{folder}/tree/d{at}"):
                entry.stat()
                yield 1
        drop_caches()


def build(_):
    """What make does: looks at all files, reads some and writes one."""
    while True:
        for at, name in enumerate(DEEP):
            os.stat(name)
            if at % 5 == 0:
                with open(name, "rb", buffering=0) as file:
                    file.read()
                with open(f"{folder}/tree/out", "wb") as out:
                    out.write(b"x" * 4 * size)
            time.sleep(0.002)
            yield 1


def through_links(_):
    while True:
        for at in range(FILES):
            os.stat(f"{folder}/l{at}")
            yield 1
        drop_caches()


def around_links(_):
    """The same files without the links."""
    while True:
        for at in range(FILES):
            os.stat(f"{folder}/real/f{at}")
            yield 1
        drop_caches()


def create(number):
    """Small files that come and go."""
    for turn in range(1 << 40):
        name = f"{path(number)}/f{turn % 100}"
        with open(name, "wb", buffering=0) as file:
            file.write(b"x" * size)
        yield 1
        if turn % 2:
            os.rename(name, name + ".new")
        else:
            os.unlink(name)


def commit(number):
    """A data base: a page, and that it is stable."""
    draw = random.Random(number)
    piece = os.urandom(size)
    with open(path(number), "r+b", buffering=0) as file:
        while True:
            os.pwrite(file.fileno(), piece, draw.randrange(LARGE // size) * size)
            os.fsync(file.fileno())
            yield 1


def trickle(_):
    """Hardly anything."""
    while True:
        for name in DEEP:
            os.stat(name)
            time.sleep(0.05)
            yield 1


KINDS = {
    "read": (make_large, read),
    "read-direct": (make_large, read_direct),
    "read-pieces": (make_large, read_pieces),
    "read-mapped": (make_large, read_mapped),
    "write": (make_empty, write),
    "write-on": (make_empty, write_on),
    "write-direct": (make_empty, write_direct),
    "write-stable": (make_empty, write_stable),
    "write-paced": (make_empty, write_paced),
    "copy": (make_large, copy),
    "look": (make_tree, look),
    "open": (make_tree, opened),
    "walk": (make_tree, walk),
    "build": (make_tree, build),
    "links": (make_links, through_links),
    "no-links": (make_links, around_links),
    "create": (make_folder, create),
    "commit": (make_large, commit),
    "trickle": (make_tree, trickle),
}
make, work = KINDS[kind]
if what == "prepare":
    shared = make in (make_tree, make_links)
    for number in range(1 if shared else threads):
        make(number)
    sys.exit()

begin = time.monotonic()
done = [0] * threads
failed = []


def one(number):
    try:
        for amount in work(number):
            done[number] += amount
            if time.monotonic() > begin + seconds:
                return
    except OSError as error:
        failed.append(error)


# A program that waits for a server that is gone must not keep us.
running = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(threads)]
for thread in running:
    thread.start()
for thread in running:
    thread.join(max(0.0, begin + seconds + 10 - time.monotonic()))
if failed:
    print("failed:", failed, flush=True)
    os._exit(1)
print(f"rate {sum(done) / (time.monotonic() - begin):.3f}", flush=True)
os._exit(0)
