#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# run_pyverbs.py TESTS DEVICE GID OUTPUT [--only NAMES] [MODULE]...: runs rdma-core's
# Python tests in the folder TESTS on a device and writes a line "VERDICT NAME REASON"
# for each to OUTPUT. Of those that the file NAMES does not name it says "there".
# Every module runs in a process of its own, so that one which dies or hangs costs
# its own tests only. Judges nothing: check-rdma-core compares.

import os
import random
import select
import signal
import sys
import time
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
        # Attributes are chosen at random: two runs choose the same.
        random.seed(test.id())
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


def prepare(tests, device, gid):
    """Importing the tests takes longer than most of them: it is done once."""
    # Last: the folder above has the sources of pyverbs, which are no module.
    sys.path += [os.path.dirname(tests), tests]
    sys.argv = ["tests", "--dev", device, "--gid", gid]
    from args_parser import parser

    parser.parse_args()
    __import__("tests")


def cases(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


def child(module, names, pipe):
    os.setpgid(0, 0)
    with os.fdopen(pipe, "w", encoding="utf-8") as file:
        suite = unittest.defaultTestLoader.loadTestsFromName("tests." + module)
        if names is not None:
            tests = list(cases(suite))
            for test in tests:
                if test.id() not in names:
                    print("there", test.id(), file=file)
            suite = unittest.TestSuite(test for test in tests if test.id() in names)
        suite.run(Lines(file))
    # Not by way of Python's end, which may still find something to close.
    os._exit(0)


def run_module(module, names):
    """Gives what the module's process wrote, and how it ended if not well."""
    out, pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        child(module, names, pipe)
    os.close(pipe)
    end = time.monotonic() + LIMIT
    text = b""
    while True:
        if not select.select([out], [], [], max(0, end - time.monotonic()))[0]:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return text, "out of time"
        data = os.read(out, 65536)
        if not data:
            break
        text += data
    os.close(out)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return text, f"ended with {status}" if status else None


def run_all(device, output, selected, names):
    for module in selected:
        begin = time.monotonic()
        text, end = run_module(module, names)
        started = None
        for line in text.decode(errors="replace").splitlines():
            words = line.split(" ", 2)
            if words[0] == "start":
                started = words[1]
            elif words[0] in ("ok", "skip", "fail", "there"):
                started = None
                print(line.rstrip(), file=output, flush=True)
        if started or end:
            print("fail", started or "tests." + module, end, file=output, flush=True)
        print(f"{device}: {module} ({time.monotonic() - begin:.0f} s)", flush=True)


def main(tests, device, gid, output, *selected):
    tests = os.path.realpath(tests)
    prepare(tests, device, gid)
    names = None
    if selected[:1] == ("--only",):
        with open(selected[1], encoding="utf-8") as file:
            names = set(file.read().split())
        selected = selected[2:]
    with open(output, "w", encoding="utf-8") as file:
        run_all(device, file, selected or modules(tests), names)


main(*sys.argv[1:])
