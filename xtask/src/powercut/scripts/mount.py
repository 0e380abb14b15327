"""Works on a mount with a cache until somebody kills it, the mount or the machine.

mount.py MOUNTPOINT JOB LIFE. First everything is read and compared: files of others, whose versions are in
JOB/versions.LIFE, and our own, of which JOB/acks says what was closed. Then JOB/looked.LIFE is there, and files are
read and written at random. What is wrong is in JOB/wrong.
"""

import os
import random
import sys
import time

mountpoint, job, life = sys.argv[1:4]
LINE = 64
OWN_MAX = 100
CHUNK = 32 << 10


def content(name, generation, size):
    """As mounted.rs has it."""
    count = (size + LINE - 1) // LINE
    head = f"{name} {generation} "
    text = "".join(f"{head}{index}".ljust(LINE - 1) + "\n" for index in range(count))
    return text.encode()[:size]


def note(file, text):
    with open(os.path.join(job, file), "a") as out:
        out.write(text + "\n")
        out.flush()
        os.fsync(out.fileno())


def read(name):
    with open(os.path.join(mountpoint, name), "rb") as file:
        parts = []
        while part := file.read(CHUNK):
            parts.append(part)
        return b"".join(parts)


def compare(name, allowed):
    seen = read(name)
    for generation in allowed:
        if seen == content(name, generation, len(seen)) and allowed[generation] in (None, len(seen)):
            return {generation: len(seen)}
    note("wrong", f"life {life}: {name}: {len(seen)} bytes that begin {seen[:40]!r}, allowed {allowed}")
    return {generation: size for generation, size in allowed.items() if size is not None}


def others():
    with open(os.path.join(job, f"versions.{life}")) as file:
        rows = [line.split() for line in file]
    return {name: {int(version): int(size)} for name, version, size in rows}


def acknowledged():
    own = {}
    try:
        with open(os.path.join(job, "acks")) as file:
            for line in file:
                name, generation, size = line.split()
                # The next may have been made whose acknowledgement the kill prevented.
                own[name] = {int(generation): int(size), int(generation) + 1: None}
    except FileNotFoundError:
        pass
    return own


def write(name, generation):
    size = random.choice([random.randrange(1, 5000), random.randrange(1, 200_000)])
    draft = f"{name}.draft"
    bytes_ = content(name, generation, size)
    with open(os.path.join(mountpoint, draft), "wb", buffering=0) as file:
        for at in range(0, size, CHUNK):
            file.write(bytes_[at : at + CHUNK])
        if random.random() < 0.3:
            os.fsync(file.fileno())
    os.rename(os.path.join(mountpoint, draft), os.path.join(mountpoint, name))
    note("acks", f"{name} {generation} {size}")
    return {generation: size}


while not os.path.ismount(mountpoint):
    time.sleep(0.05)
static, own = others(), acknowledged()
for name, allowed in static.items():
    compare(name, allowed)
for name in own:
    own[name] = compare(name, own[name])
    # One whose acknowledgement a kill has prevented: it has been seen, and stays.
    for generation, size in own[name].items():
        note("acks", f"{name} {generation} {size}")
note(f"looked.{life}", "")
while True:
    if random.random() < 0.7:
        name = random.choice([*static, *own])
        compare(name, static.get(name) or own[name])
    else:
        name = f"own/{random.randrange(OWN_MAX)}"
        own[name] = write(name, max(own.get(name, [0])) + 1)
