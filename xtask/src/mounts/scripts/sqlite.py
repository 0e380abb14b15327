#!/usr/bin/python3
"""Transactions of SQLite's own program in the folder $1, $2 of them for each way of journalling; the data come out right.

For each journal: two writers at once, each with its own table, both counting in a third; one of them killed in the
middle of another run; then integrity_check, and sums that only complete transactions give.
"""
import os, random, signal, subprocess, sys, tempfile

FOLDER, TRANSACTIONS = sys.argv[1], int(sys.argv[2])


def sqlite(path, script, **named):
    # Waiting for the other writer is part of the work.
    head = ".bail on\n.timeout 60000\n"
    return subprocess.run(["sqlite3", path], input=head + script, text=True, capture_output=True, **named)


def must(path, script):
    done = sqlite(path, script)
    if done.returncode != 0 or done.stderr:
        sys.exit(f"sqlite3: {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def transactions(table, count, seed):
    chance = random.Random(seed)
    for n in range(count):
        amount = chance.randrange(1000)
        text = "x" * chance.randrange(1, 2000)
        yield "BEGIN IMMEDIATE;"
        yield f"INSERT INTO {table} VALUES ({n}, {amount}, '{text}');"
        if n % 7 == 3:
            yield f"UPDATE {table} SET amount = amount + 1 WHERE id = {n // 2};"
            yield "UPDATE total SET amount = amount + changes();"
        if n % 11 == 5:
            yield f"UPDATE total SET amount = amount - (SELECT amount FROM {table} WHERE id = {n - 1});"
            yield f"DELETE FROM {table} WHERE id = {n - 1};"
        yield f"UPDATE total SET amount = amount + {amount};"
        yield "COMMIT;"


def consistent(path, what):
    checked = must(path, "PRAGMA integrity_check;")
    if checked != "ok":
        sys.exit(f"{what}: integrity_check says {checked[:300]}")
    total, parts = must(
        path, "SELECT amount FROM total; SELECT (SELECT ifnull(sum(amount),0) FROM a) + (SELECT ifnull(sum(amount),0) FROM b);"
    ).split()
    if total != parts:
        sys.exit(f"{what}: the total is {total}, and the parts are {parts}")


for journal in ["delete", "wal"]:
    path = os.path.join(FOLDER, f"{journal}.db")
    made = must(
        path,
        f"PRAGMA journal_mode={journal}; CREATE TABLE a(id INTEGER PRIMARY KEY, amount INTEGER, text TEXT);"
        "CREATE TABLE b(id INTEGER PRIMARY KEY, amount INTEGER, text TEXT);"
        "CREATE TABLE total(amount INTEGER); INSERT INTO total VALUES (0);",
    )
    if made.split()[0] != journal:
        sys.exit(f"the journal is {made}, not {journal}")
    writers = []
    for seed, table in enumerate("ab"):
        script = tempfile.TemporaryFile("w+")
        script.write(".bail on\n.timeout 60000\n")
        script.writelines(line + "\n" for line in transactions(table, TRANSACTIONS // 2, seed))
        script.seek(0)
        writers.append(subprocess.Popen(["sqlite3", path], stdin=script, stderr=subprocess.PIPE, text=True))
    for writer in writers:
        complaint = writer.stderr.read().strip()
        if writer.wait() != 0 or complaint:
            sys.exit(f"{journal}: a writer ended with {writer.returncode}: {complaint[:300]}")
    consistent(path, journal)
    expected = TRANSACTIONS // 2 - sum(1 for n in range(TRANSACTIONS // 2) if n % 11 == 5)
    for table in "ab":
        count = int(must(path, f"SELECT count(*) FROM {table};"))
        if count != expected:
            sys.exit(f"{journal}: {count} rows in {table}, not {expected}")

    # Killed in the middle: what was not committed is rolled back by the next who comes.
    victim = subprocess.Popen(["sqlite3", path], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    victim.stdin.write(".timeout 60000\nPRAGMA cache_size=10;\nBEGIN IMMEDIATE;\n")
    for n in range(300):
        victim.stdin.write(f"INSERT INTO a VALUES ({1_000_000 + n}, 5, '{'y' * 3000}');\n")
    victim.stdin.write("SELECT 'there';\n")
    victim.stdin.flush()
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    consistent(path, f"{journal}, after a writer was killed")
    print(f"ok {journal}: {TRANSACTIONS} transactions, {os.path.getsize(path) >> 10} KiB")
