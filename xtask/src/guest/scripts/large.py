#!/usr/bin/python3
"""Writes 5 GiB to the file named, reads them back through a cold cache, and prints their SHA-256.

Every MiB is the same noise with its number in front: quick to make and to compare, and no two are alike.
"""
import hashlib, os, random, sys

MIB = 1 << 20
BLOCKS = 5 * 1024
path = sys.argv[1]
noise = random.Random(2002).randbytes(MIB - 8)
digest = hashlib.sha256()

file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
for number in range(BLOCKS):
    block = number.to_bytes(8, "big") + noise
    digest.update(block)
    assert os.write(file, block) == MIB, f"a short write of block {number}"
os.fsync(file)
os.close(file)
assert os.stat(path).st_size == BLOCKS * MIB, f"its size is {os.stat(path).st_size}"

with open("/proc/sys/vm/drop_caches", "w") as drop:
    drop.write("3")
with open(path, "rb", buffering=0) as file:
    for number in range(BLOCKS):
        block = file.read(MIB)
        while len(block) < MIB and (more := file.read(MIB - len(block))):
            block += more
        assert block[:8] == number.to_bytes(8, "big"), f"block {number} says {block[:8].hex()}"
        assert block[8:] == noise, f"block {number} differs"
    assert not file.read(1), "it goes on after its end"
print(digest.hexdigest())
