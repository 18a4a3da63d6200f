#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# scripts/guest/kunit.py: in the guest, once modules with KUnit suites are loaded:
# prints what the suites said as flat TAP, one result for each row of each table.
# Owns the reading of KTAP. Never runs a suite: loading the module does, and that
# succeeds whatever they say.
#
# debugfs has the suites and their verdicts, but only the first 512 bytes of
# what a case said; all of it is in the kernel log. Either must agree with the
# other and with the suites in the sources.
#
# kunit.py [LOG DEBUGFS SOURCES]: of a log and folders, which is how scripts/test-scripts
# shows what turns a run red.

import pathlib
import re
import subprocess
import sys

DEBUGFS = pathlib.Path("/sys/kernel/debug/kunit")
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "kernel"

SUITE = re.compile(r"    # Subtest: (\S+)$")
PLAN = re.compile(r"    1\.\.(\d+)$")
ROW = re.compile(r"        (ok|not ok) \d+ (.*)$")
CASE = re.compile(r"    (ok|not ok) \d+ (\S+?)(\s+# SKIP.*)?$")
END = re.compile(r"(ok|not ok) \d+ (\S+)( # SKIP.*)?$")
NAME = re.compile(r"struct kunit_suite \w+ = \{\s*\.name = \"([^\"]+)\"")

count = 0


def result(verdict, name, directive=""):
    global count
    count += 1
    print(f"{verdict} {count} {name}{directive}")


def must(condition, what):
    if not condition:
        result("not ok", what)


def read_suite(name, lines):
    """The lines of one suite, without its end. Returns whether all were ok."""
    plan = None
    cases = 0
    rows = []
    good = True
    for line in lines:
        row = ROW.match(line)
        case = CASE.match(line)
        if PLAN.match(line) and plan is None:
            plan = int(PLAN.match(line).group(1))
        elif row:
            rows.append(row.groups())
        elif case:
            verdict, title, skip = case.groups()
            cases += 1
            good &= verdict == "ok"
            for row_verdict, row_title in rows:
                result(row_verdict, f"{name}: {title}: {row_title}")
            if not rows:
                result(verdict, f"{name}: {title}", skip or "")
            else:
                must((verdict == "ok") == all(v == "ok" for v, _ in rows),
                     f"{name}: {title}: its rows say something else")
            rows = []
        elif line.strip() and not line.strip().startswith(("KTAP version", "# Subtest:")):
            print("#", line.strip().lstrip("# "))
    must(plan == cases, f"{name}: {plan} cases planned, {cases} gave a result")
    must(not rows, f"{name}: the log breaks off")
    return good


def read_log(log):
    """Yields (suite, lines, verdict): verdict is None when the end is missing."""
    suite, lines = None, []
    for line in log:
        start = SUITE.match(line)
        end = END.match(line)
        if start:
            if suite:
                yield suite, lines, None
            suite, lines = start.group(1), []
        elif suite and end and end.group(2) == suite:
            yield suite, lines, end.group(1)
            suite = None
        elif suite:
            lines.append(line)
    if suite:
        yield suite, lines, None


def kernel_log():
    return subprocess.run(["dmesg", "-t"], check=True, capture_output=True, text=True,
                          errors="replace").stdout


def main(log, debugfs, sources):
    print("TAP version 13")
    known = {match for path in sorted(sources.rglob("*_test.c"))
             for match in NAME.findall(path.read_text(encoding="utf-8"))}
    loaded = {path.name for path in debugfs.iterdir()} if debugfs.is_dir() else set()
    must(known, "there are suites in the sources")
    for name in sorted(known ^ loaded):
        result("not ok", f"{name}: in the {'sources' if name in known else 'modules'} only")

    seen = set()
    for name, lines, verdict in read_log(log.splitlines()):
        good = read_suite(name, lines)
        must(name not in seen, f"{name}: ran twice")
        seen.add(name)
        must(verdict == ("ok" if good else "not ok"), f"{name}: its cases say something else")
        path = debugfs / name / "results"
        if path.exists():
            last = path.read_text(encoding="utf-8", errors="replace").splitlines()[-1]
            match = END.match(last)
            must(match and match.group(1) == verdict, f"{name}: debugfs says '{last}'")
    for name in sorted(loaded - seen):
        result("not ok", f"{name}: nothing in the kernel log")
    print(f"1..{count}")


if len(sys.argv) > 1:
    main(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), *map(pathlib.Path, sys.argv[2:4]))
else:
    main(kernel_log(), DEBUGFS, SOURCES)
