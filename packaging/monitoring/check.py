"""Whether the dashboard and the alerts ask for metrics that a server has: check.py PAGE METRICS.md FOLDER"""

import json
import re
import sys

page_path, described_path, folder = sys.argv[1:]
page = open(page_path).read()
described = open(described_path).read()
failures = []


def metrics(text):
    found = re.findall(r"\b((?:nfskit|process)_[a-z_]+)", text)
    return {re.sub(r"_(bucket|sum|count)$", "", name) if "seconds" in name else name for name in found}


there = set(re.findall(r"^# TYPE (\S+)", page, re.M))
labels = set(re.findall(r'[{,]([a-z]+)="', page)) | {"instance", "job", "le"}
board = json.load(open(f"{folder}/dashboard.json"))
asked = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel["targets"]]
rules = open(f"{folder}/alerts.yml").read()
asked += re.findall(r"alert: (\S+)\n\s+expr: (?:\|\n)?((?:.|\n)*?)\n        (?:for|labels):", rules)
if len(asked) < 25:
    failures.append(f"only {len(asked)} expressions were found")
for title, expression in asked:
    for name in metrics(expression):
        if name not in there and f"`{name}`" not in described:
            failures.append(f"{title}: no {name}")
    for label in re.findall(r'[{,]\s*([a-z]+)\s*=~?"', expression):
        if label not in labels and label not in {"export", "layer", "status"}:
            failures.append(f"{title}: no label {label}")
# Panels lie beside and below each other, not upon each other.
taken = set()
for panel in board["panels"]:
    at = panel["gridPos"]
    cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
    if taken & cells or at["x"] + at["w"] > 24:
        failures.append(f"{panel['title']} lies upon another panel")
    taken |= cells
for name in there:
    if f"`{name}`" not in described:
        failures.append(f"{name} is not in {described_path}")
print(f"monitoring: {len(asked)} expressions, {len(there)} metrics, {len(failures)} failures")
for failure in failures:
    print(f"  {failure}")
sys.exit(bool(failures))
