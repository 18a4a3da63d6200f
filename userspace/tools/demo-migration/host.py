# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the demonstration changes on its machine: an rxe device on a network of its
own, ib_gift's every_driver, small pages. All of it is put back."""

import contextlib
import subprocess

NETDEV, DEVICE = "gift-mig0", "rxe-mig0"
ADDRESS = "10.9.0.1"
EVERY_DRIVER = "/sys/module/ib_gift/parameters/every_driver"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


def run(*command):
    """Runs a command, which must succeed."""
    subprocess.run(command, check=True)


@contextlib.contextmanager
def setting(path, value):
    """A file of sysfs that says VALUE for a while."""
    with open(path, encoding="ascii") as file:
        old = file.read().strip()
    # A choice of several shows which one it is.
    if "[" in old:
        old = old.split("[")[1].split("]")[0]
    with open(path, "w", encoding="ascii") as file:
        file.write(value)
    try:
        yield
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(old)


@contextlib.contextmanager
def device():
    """An rxe device that rdma_cm finds by ADDRESS; rdma_cm does not work on lo."""
    for module in ("dummy", "rdma_rxe", "rdma_ucm"):
        run("modprobe", module)
    run("ip", "link", "add", NETDEV, "mtu", "9000", "type", "dummy")
    try:
        run("ip", "addr", "add", f"{ADDRESS}/24", "dev", NETDEV)
        run("ip", "link", "set", NETDEV, "up")
        run("rdma", "link", "add", DEVICE, "type", "rxe", "netdev", NETDEV)
        try:
            yield ADDRESS
        finally:
            run("rdma", "link", "delete", DEVICE)
    finally:
        run("ip", "link", "delete", NETDEV)


@contextlib.contextmanager
def prepared(huge_pages):
    """All of it; HUGE_PAGES leaves transparent huge pages as they are."""
    with contextlib.ExitStack() as stack:
        if not huge_pages:
            stack.enter_context(setting(HUGE_PAGES, "never"))
        stack.enter_context(setting(EVERY_DRIVER, "1"))
        yield stack.enter_context(device())
