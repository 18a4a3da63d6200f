# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One migration over RDMA between two QEMUs of this machine, and what was measured
of it. Owns the guest's memory patterns and the order of a run; says nothing on
whether a figure is good."""

import contextlib
import dataclasses
import os
import tempfile
import time

from qemu import PAGE, Qemu, QemuError
from tracing import Registrations

MIB = 1 << 20
RAM = 64 * MIB
# Where writer.S finds its orders, and the pages that it is told to write: most of them
# every pattern leaves untouched, and QEMU comes to them long before it comes to the end.
ORDERS = 0x1000
WRITER_FIRST = 20 * MIB
WRITER_MIBS = 16
WRITER_PAGES = WRITER_MIBS * MIB // PAGE
WRITER_PAUSE = 1000
# While the guest runs, bytes a second: slow enough for it to write meanwhile.
RUNNING_BANDWIDTH = 16 * MIB
# In milliseconds. QEMU stops the guest when it can send what is left in this time: all
# that the guest writes over and over, but not what has never been sent.
DOWNTIME_LIMIT = (WRITER_MIBS + 8) * MIB * 1000 // RUNNING_BANDWIDTH
FILLED = 16 * MIB
KSM = "/sys/kernel/mm/ksm"
MIGRATION_LIMIT = 300
PORT = 4444


def untouched(_):
    """Nothing is written."""


def scattered(guest):
    """A page in every MiB, which is what QEMU registers at a time without pin-all,
    each with its own content."""
    for number, address in enumerate(range(MIB, RAM, MIB)):
        guest.fill(address + number % 16 * PAGE, PAGE, number + 1)


def contiguous(guest):
    """16 MiB that change every 64 KiB."""
    for number, address in enumerate(range(MIB, MIB + FILLED, 64 << 10)):
        guest.fill(address, 64 << 10, number % 255 + 1)


def ksm_setting(name, value=None):
    """Reads a setting of KSM, or writes it."""
    with open(f"{KSM}/{name}", "r" if value is None else "w", encoding="ascii") as file:
        return int(file.read()) if value is None else file.write(str(value))


def merged(guest):
    """16 MiB of equal pages that KSM has made one."""
    guest.fill(MIB, FILLED, 0x5a)
    old = {name: ksm_setting(name) for name in ("pages_to_scan", "sleep_millisecs")}
    ksm_setting("pages_to_scan", 20000)
    ksm_setting("sleep_millisecs", 10)
    ksm_setting("run", 1)
    limit = time.monotonic() + 120
    try:
        while guest.memory() > MIB:
            if time.monotonic() > limit:
                raise QemuError(f"KSM left {guest.memory() // MIB} MiB of {FILLED // MIB}")
            time.sleep(0.2)
    finally:
        # 0 stops the scanner and leaves what is merged as it is.
        ksm_setting("run", 0)
        for name, value in old.items():
            ksm_setting(name, value)


PATTERNS = {"untouched": untouched, "scattered": scattered, "merged": merged,
            "contiguous": contiguous}


# How the source's QEMU is started: the options of gift-run, None for without it.
STOCK, GIFT, UNREFRESHED = "stock", "gift-run", "no refresh"
HOWS = {STOCK: None, GIFT: [], UNREFRESHED: ["--no-refresh"]}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What is to be migrated, and how: a key of HOWS."""
    how: str
    pin_all: bool
    pattern: str
    running: bool


@dataclasses.dataclass
class Result:
    """What one migration took. Memory in bytes, times in seconds; writes are the
    pages that the guest wrote first after the migration began."""
    before: int = 0
    during: int = 0
    after: int = 0
    registrations: int = 0
    register_time: float = 0.0
    total_time: float = 0.0
    first_writes: int = 0
    late_writes: int = 0
    wrong_bytes: int = 0
    said: str = ""

    @property
    def growth(self):
        """By how much the source's guest memory grew at most."""
        return max(self.during, self.after) - self.before


def differing_bytes(one, other):
    """Number of bytes in which two files of one size differ."""
    wrong = 0
    with open(one, "rb") as a, open(other, "rb") as b:
        while True:
            x, y = a.read(PAGE), b.read(PAGE)
            if x != y:
                wrong += sum(i != j for i, j in zip(x, y)) + abs(len(x) - len(y))
            if not x and not y:
                return wrong


def written(guest):
    """Number of different pages that the guest's firmware has written, in order.
    Each has in it how many there were when it was written last."""
    low, high = 0, WRITER_PAGES
    while low < high:
        page = (low + high) // 2
        count = guest.read_word(WRITER_FIRST + page % WRITER_MIBS * MIB +
                                page // WRITER_MIBS * PAGE)
        if count and (count - 1) % WRITER_PAGES == page:
            low = page + 1
        else:
            high = page
    return low


def migrate(source, address, result, registrations):
    """Starts the migration and follows it to its end."""
    begun = None
    source.qmp("migrate", uri=f"rdma:{address}:{PORT}")
    limit = time.monotonic() + MIGRATION_LIMIT
    while True:
        state = source.qmp("query-migrate")
        status = state.get("status")
        registrations.look()
        result.during = max(result.during, source.memory())
        if begun is None and status not in (None, "none", "setup"):
            begun = written(source)
        # The status comes a moment before the time that it took.
        if status == "completed" and state.get("total-time"):
            result.total_time = state["total-time"] / 1000
            result.late_writes = written(source) - begun
            return
        if status in ("failed", "cancelled") or time.monotonic() > limit:
            raise QemuError(f"the migration is {status}: {state.get('error-desc', '')} "
                            f"{source.last_words()[-500:]}")
        time.sleep(0.05)


def arrived(destination):
    """Waits until the destination has taken in what the source has sent."""
    limit = time.monotonic() + MIGRATION_LIMIT
    while destination.qmp("query-status")["status"] == "inmigrate":
        if time.monotonic() > limit:
            raise QemuError("the destination does not end the migration")
        time.sleep(0.05)


def launcher(scenario, gift_run):
    """What stands before QEMU's command line on the source."""
    options = HOWS[scenario.how]
    if options is None:
        return []
    # With pin-all the guest's RAM is registered whole, for writes that a source
    # never receives. Without, it is registered in chunks that ask for nothing, which
    # is what gift-run gives GIFT to unless it is told otherwise.
    if scenario.pin_all:
        options = [*options, "--drop-write", "--min-size", str(RAM), "--max-size", str(RAM)]
    return [gift_run, *options, "--report", "--"]


def run(scenario, address, rom, gift_run):
    """Runs SCENARIO on the RDMA device that has ADDRESS; returns the Result."""
    result = Result()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        destination = stack.enter_context(
            Qemu("destination", folder, RAM // MIB, rom,
                 arguments=["-incoming", f"rdma:{address}:{PORT}"]))
        source = stack.enter_context(
            Qemu("source", folder, RAM // MIB, rom, launcher(scenario, gift_run),
                 merge=scenario.pattern == "merged"))
        for word, value in enumerate((WRITER_FIRST, WRITER_PAGES, WRITER_PAUSE)):
            source.write_word(ORDERS + 4 * word, value)
        PATTERNS[scenario.pattern](source)
        for qemu in (source, destination):
            qemu.qmp("migrate-set-capabilities", capabilities=[
                {"capability": "rdma-pin-all", "state": scenario.pin_all}])
        source.qmp("migrate-set-parameters", **{
            "downtime-limit": DOWNTIME_LIMIT,
            "max-bandwidth": RUNNING_BANDWIDTH if scenario.running else 1 << 30})
        result.before = result.during = source.memory()
        if scenario.running:
            source.qmp("cont")
        with Registrations(source.process.pid) as registrations:
            migrate(source, address, result, registrations)
        result.registrations = registrations.count
        result.register_time = registrations.seconds
        arrived(destination)
        result.after = source.memory()
        result.first_writes = written(source)
        files = [os.path.join(folder, name) for name in ("source.ram", "destination.ram")]
        source.save(files[0])
        destination.save(files[1])
        result.wrong_bytes = differing_bytes(*files)
        source.qmp("quit")
        source.process.wait(60)
        result.said = source.last_words()
    return result
