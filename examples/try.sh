#!/bin/bash
# The examples, tried: bash examples/try.sh BINARY. A clause whose tool is missing says so and goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
nfskit=$(realpath "$1")
work=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT
fail() { echo "examples: FAILED: $*" >&2; exit 1; }
missing() { echo "examples: NOT TRIED: $*"; }

"$nfskit" serve mem: --listen 127.0.0.1:0 >"$work/served" 2>&1 &
pids+=($!)
for _ in $(seq 100); do grep -q 'nfs://' "$work/served" && break; sleep 0.1; done
url=$(grep -o 'nfs://[^ ]*' "$work/served" | head -1 | tr -d '"'"'")
port=$(grep -o 'nfsport=[0-9]*' <<<"$url" | cut -d= -f2)
[ -n "$port" ] || { cat "$work/served" >&2; fail "no server"; }

# The job of Slurm, by a stand-in for srun that starts two processes as srun does.
mkdir "$work/bin"
cat >"$work/bin/srun" <<'END'
#!/bin/bash
[ "$1" = --kill-on-bad-exit=1 ] && shift
export SLURM_STEP_NUM_TASKS=2
SLURM_PROCID=1 "$@" >"$0.second" 2>&1 &
SLURM_PROCID=0 "$@"
wait %1
END
chmod +x "$work/bin/srun"
# It works on this host alone: its name may have an address that leads elsewhere.
printf '#!/bin/sh\necho 127.0.0.1\n' >"$work/bin/hostname"
chmod +x "$work/bin/hostname"
job=$(pwd)/examples/curve.sbatch
(cd "$work" && PATH=$work/bin:$PATH NFSKIT=$nfskit SLURM_JOB_ID=$$ TIME=1s WARM_UP=200ms FILE_SET_MAX=1M \
    bash "$job" "$url" >"$work/curve" 2>&1) || [ $? = 1 ] || { cat "$work/curve" >&2; fail "the job of Slurm"; }
python3 - "$work/curve-$$.json" <<'END' || { cat "$work/curve" >&2; fail "the record of the job of Slurm"; }
import json, sys
record = json.load(open(sys.argv[1]))
assert record["workload"]["parameters"]["processes"] == 2, record["workload"]
END
[ -s "$work/curve-$$.html" ] || fail "the report of the job of Slurm"
if command -v sbatch >/dev/null; then
    sbatch --test-only examples/curve.sbatch "$url" 2>&1 | grep -qv 'error: .*option' || fail "sbatch"
fi
echo "examples: the job of Slurm measures with two processes"

# The job of Kubernetes: fields that depend on each other, and its command line for each index.
if python3 -c 'import yaml' 2>/dev/null; then
    python3 - "$nfskit" "$url" <<'END' || fail "the job of Kubernetes"
import os, subprocess, sys, yaml
nfskit, url = sys.argv[1:]
service, job = yaml.safe_load_all(open("examples/curve-job.yaml"))
spec, pod = job["spec"], job["spec"]["template"]["spec"]
[container] = pod["containers"]
assert (service["kind"], job["kind"]) == ("Service", "Job") and service["spec"]["clusterIP"] == "None"
assert pod["subdomain"] == service["metadata"]["name"]
assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"] == 4
assert f"--process=$(JOB_COMPLETION_INDEX)/{spec['completions']}" in container["args"]
first = f"--meet={job['metadata']['name']}-0.{pod['subdomain']}:"
[meet] = [argument for argument in container["args"] if argument.startswith(first)]
assert {"NFSKIT_MEET_KEY", "JOB_COMPLETION_INDEX"} == {variable["name"] for variable in container["env"]}
# The arguments as they are, but for names that this host does not have, and shorter.
instead = {"--target": url, "--meet": "127.0.0.1:" + str(20000 + os.getpid() % 10000), "--time": "1s", "--warm-up": "200ms"}
def line(index):
    for argument in container["args"]:
        name, _, value = argument.partition("=")
        value = instead.get(name, value).replace("$(JOB_COMPLETION_INDEX)", str(index))
        yield f"{name}={value}" if value else name
    yield "--file-set-max=1M"
environment = os.environ | {"NFSKIT_MEET_KEY": "0123456789abcdef"}
pods = [subprocess.Popen([nfskit, *line(index)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for index in range(4)]
for index, pod in enumerate(pods):
    out, error = pod.communicate(timeout=300)
    # 1: a point does not hold a rule of the benchmark, which such a short one may not.
    assert pod.returncode == 0 or index == 0 and pod.returncode == 1, (index, pod.returncode, error)
    assert bool(out) == (index == 0), (index, out)
END
    echo "examples: the job of Kubernetes measures with four processes"
else
    missing "curve-job.yaml: python3-yaml"
fi

# The questions to captures: two of them, made here by a relay.
mkdir -p "$work/captures/parquet"
for number in 1 2; do
    relay=$work/relay-$number
    "$nfskit" link --uncalibrated --to "127.0.0.1:$port" --pcap "$relay.pcap" none >"$relay" 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do grep -q 'nfs://' "$relay" && break; sleep 0.1; done
    near=$(grep -o '127.0.0.1:[0-9]*' "$relay" | head -1 | cut -d: -f2)
    "$nfskit" bench curve --target "nfs://127.0.0.1/?nfsport=$near&mountport=$near" \
        --loads 60 --time 1s --warm-up 200ms --file-set-max 256K >"$work/log" 2>&1 ||
        [ $? = 1 ] || { cat "$work/log" "$relay" >&2; fail "no traffic to capture"; }
    kill -TERM "${pids[-1]}" && wait "${pids[-1]}" || true
    "$nfskit" trace "$relay.pcap" --parquet "$work/captures/parquet/$number.parquet" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; fail "trace --parquet"; }
done
if python3 -c 'import duckdb' 2>/dev/null; then
    python3 - "$work/captures" <<'END' || fail "the questions to captures"
import importlib.util, os, re, sys, duckdb
questions = open("examples/captures.sql").read()
spec = importlib.util.spec_from_file_location("captures_spark", "examples/captures_spark.py")
spark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(spark)
os.chdir(sys.argv[1])
connection = duckdb.connect()
asked = 0
for statement in duckdb.extract_statements(questions):
    answer = connection.execute(statement)
    rows = answer.fetchall() if statement.type == duckdb.StatementType.SELECT else None
    if rows is not None:
        asked += 1
        assert rows or "status" in statement.query, statement.query
calls, files = connection.execute("SELECT count(*), count(DISTINCT filename) FROM calls").fetchone()
assert calls > 20 and files == 2, (calls, files)
try:
    import sqlglot
except ImportError:
    print("examples: NOT TRIED: captures_spark.py: sqlglot")
    sqlglot = None
if sqlglot:
    for question, query in spark.QUERIES.items():
        [translated] = sqlglot.transpile(query, read="spark", write="duckdb")
        assert connection.execute(translated).fetchall() or "status" in query, question
    assert len(spark.QUERIES) == asked, (len(spark.QUERIES), asked)
print(f"examples: {asked} questions to {calls} calls of {files} captures")
END
else
    missing "captures.sql: pip install duckdb"
fi
