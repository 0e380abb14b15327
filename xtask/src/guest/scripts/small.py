"""Makes a tree of 1,007 files of 0.1 to 8 KB in 158 directories, always the same; --change rewrites 950 of its files."""
import os
import random
import sys

FILES, FOLDERS, CHANGED = 1007, 158, 950


def text(rng):
    words = []
    length = 0
    size = rng.randrange(100, 8000)
    while length < size:
        words.append("%08x" % rng.getrandbits(32))
        length += 9
    return " ".join(words) + "\n"


def main():
    change = sys.argv[1] == "--change"
    root = sys.argv[2] if change else sys.argv[1]
    rng = random.Random(2 if change else 1)
    if change:
        paths = sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if ".git" not in folder)
        for path in paths[:CHANGED]:
            with open(path, "w") as file:
                file.write(text(rng))
        return
    folders = [root]
    for n in range(1, FOLDERS):
        folders.append(os.path.join(rng.choice(folders), "folder%d" % n))
    for folder in folders:
        os.mkdir(folder)
    for n in range(FILES):
        folder = folders[n % FOLDERS]
        with open(os.path.join(folder, "file%d" % n), "w") as file:
            file.write(text(rng))


main()
