#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# run_pyverbs.py TESTS DEVICE GID OUTPUT [MODULE]...: runs rdma-core's Python tests
# in the folder TESTS on a device and writes a line "VERDICT NAME REASON" for each to
# OUTPUT. Every module runs in a process of its own, so that one which dies
# or hangs costs its own tests only. Judges nothing: check-rdma-core compares.

import os
import subprocess
import sys
import unittest

LIMIT = 900  # seconds for a module, on a loaded machine
# They need hardware of their own and skip everything elsewhere.
HARDWARE = ("test_mlx5_", "test_efa", "test_cuda_")


def modules(tests):
    return sorted(
        name[:-3]
        for name in os.listdir(tests)
        if name.startswith("test_") and name.endswith(".py") and not name.startswith(HARDWARE)
    )


class Lines(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file = file
        self.failed = False

    def write(self, verdict, test, reason=""):
        print(verdict, test.id(), " ".join(str(reason).split())[:200], file=self.file, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.failed = False
        self.write("start", test)

    def addSuccess(self, test):
        # Is called as well after a subtest that failed.
        if not self.failed:
            self.write("ok", test)

    def addSkip(self, test, reason):
        self.write("skip", test, reason)

    def addFailure(self, test, err):
        self.write("fail", test, err[1])

    def addError(self, test, err):
        self.write("fail", test, err[1])

    def addSubTest(self, test, subtest, err):
        if err is not None and not self.failed:
            self.failed = True
            self.write("fail", test, f"{subtest}: {err[1]}")


def run_module(tests, module, device, gid):
    sys.path[:0] = [os.path.dirname(tests), tests]
    sys.argv = ["tests", "--dev", device, "--gid", gid]
    from args_parser import parser

    parser.parse_args()
    suite = unittest.defaultTestLoader.loadTestsFromName("tests." + module)
    suite.run(Lines(sys.stdout))


def run_all(tests, device, gid, output, names):
    for module in names or modules(tests):
        command = [sys.executable, __file__, "--module", tests, module, device, gid]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=LIMIT, check=False)
            out, end = done.stdout, f"ended with {done.returncode}"
            if done.returncode == 0:
                end = None
            else:
                sys.stderr.write(done.stderr.decode(errors="replace")[-2000:])
        except subprocess.TimeoutExpired as expired:
            out, end = expired.stdout or b"", "out of time"
        started = None
        for line in out.decode(errors="replace").splitlines():
            words = line.split(" ", 2)
            if words[0] == "start":
                started = words[1]
            elif words[0] in ("ok", "skip", "fail"):
                started = None
                print(line.rstrip(), file=output, flush=True)
        if started or end:
            print("fail", started or "tests." + module, end, file=output, flush=True)
        print(f"{device}: {module}", flush=True)


if sys.argv[1] == "--module":
    run_module(os.path.realpath(sys.argv[2]), *sys.argv[3:6])
else:
    with open(sys.argv[4], "w", encoding="utf-8") as file:
        run_all(os.path.realpath(sys.argv[1]), sys.argv[2], sys.argv[3], file, sys.argv[5:])
