# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""How long the kernel took for the memory registrations of one process. Owns a
tracing instance and two probes on the verbs command that every ibv_reg_mr() ends
in; takes both away again."""

import os
import re

TRACING = "/sys/kernel/tracing"
GROUP = "demo_migration"
COMMAND = "ib_uverbs:ib_uverbs_reg_mr"


def write(path, text, flag=os.O_TRUNC):
    """Writes TEXT to a file of tracefs. Python's own append mode would seek, which
    these files refuse."""
    file = os.open(path, os.O_WRONLY | flag)
    try:
        os.write(file, text.encode("ascii"))
    finally:
        os.close(file)


class Registrations:
    """A context in which the registrations of PID's threads are timed: of those that
    were there when look() was called last, or earlier.

    The tracer is not told which threads: it would follow the scheduler for that, and
    an emulator whose processors run side by side may hang when code is patched that
    another processor runs at that moment."""

    LINE = re.compile(r"-(\d+)\s+\[\d+\].*?(\d+\.\d+): (begin|end): ")

    def __init__(self, pid):
        self.pid = pid
        self.count = 0
        self.seconds = 0.0
        self._threads = set()
        self._folder = f"{TRACING}/instances/{GROUP}"

    def look(self):
        """Notes the threads that there are."""
        self._threads.update(os.listdir(f"/proc/{self.pid}/task"))

    def __enter__(self):
        self.look()
        write(f"{TRACING}/kprobe_events",
              f"p:{GROUP}/begin {COMMAND}\nr:{GROUP}/end {COMMAND}\n", os.O_APPEND)
        os.makedirs(self._folder, exist_ok=True)
        write(f"{self._folder}/events/{GROUP}/enable", "1")
        return self

    def __exit__(self, *_):
        write(f"{self._folder}/events/{GROUP}/enable", "0")
        begun = {}
        with open(f"{self._folder}/trace", encoding="ascii") as trace:
            for match in filter(None, map(self.LINE.search, trace)):
                thread, stamp, event = match.groups()
                if thread not in self._threads:
                    continue
                if event == "begin":
                    begun[thread] = float(stamp)
                elif thread in begun:
                    self.count += 1
                    self.seconds += float(stamp) - begun.pop(thread)
        os.rmdir(self._folder)
        write(f"{TRACING}/kprobe_events", f"-:{GROUP}/begin\n-:{GROUP}/end\n", os.O_APPEND)
