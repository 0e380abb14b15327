# What a program does with files, a little of everything: in the folder $1, which it makes and removes.
import os
import sys

CHUNK, CHUNKS, FILES = 65536, 48, 30
folder = sys.argv[1]


def path(name):
    return f"{folder}/{name}"


os.mkdir(folder)
with open(path("data"), "wb") as file:
    for n in range(CHUNKS):
        file.write(bytes([n]) * CHUNK)
    file.flush()
    os.fsync(file.fileno())
with open(path("data"), "rb") as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    for n in range(CHUNKS):
        assert file.read(CHUNK) == bytes([n]) * CHUNK, f"chunk {n}"
for n in range(FILES):
    with open(path(f"file{n}"), "w") as file:
        file.write("x" * 100 * n)
os.symlink("data", path("link"))
assert os.readlink(path("link")) == "data"
os.rename(path("file1"), path("other"))
os.link(path("file2"), path("second"))
assert sum(entry.stat(follow_symlinks=False).st_size >= 0 for entry in os.scandir(folder)) == FILES + 3
for n in range(10, 20):
    os.chmod(path(f"file{n}"), 0o600)
assert not os.path.exists(path("none"))
os.statvfs(folder)
for name in os.listdir(folder):
    os.unlink(path(name))
os.rmdir(folder)
