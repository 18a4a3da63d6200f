# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One QEMU with a small guest: its start and end, QMP, qtest, and what its RAM
takes on the host. Owns the process and its sockets; knows nothing of RDMA."""

import json
import os
import re
import signal
import socket
import subprocess
import time

PAGE = 4096
START_LIMIT = 120


class QemuError(Exception):
    """QEMU refused a command, or is not there any more."""


def connect(path, process):
    """A socket to PATH once PROCESS listens on it."""
    limit = time.monotonic() + START_LIMIT
    while True:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
            return sock
        except OSError as error:
            sock.close()
            if process.poll() is not None:
                raise QemuError(f"QEMU ended with {process.returncode}") from error
            if time.monotonic() > limit:
                raise QemuError(f"QEMU does not listen on {path}") from error
            time.sleep(0.05)


class Qemu:
    """A guest of RAM_MIB with ROM as its firmware, not running yet.

    LAUNCHER is put before QEMU's command line, ARGUMENTS after it; FOLDER is where
    its sockets and its log go."""

    # qemu64 and TCG: the host is a virtual machine itself.
    MACHINE = ("qemu-system-x86_64 -accel tcg -M pc -cpu qemu64 -smp 1 -S -nodefaults "
               "-no-user-config -vga none -nic none -display none").split()

    def __init__(self, name, folder, ram_mib, rom, launcher=(), arguments=(), merge=False):
        self.ram = ram_mib << 20
        self.log = os.path.join(folder, name + ".log")
        paths = {kind: os.path.join(folder, f"{name}.{kind}") for kind in ("qmp", "qtest")}
        command = [*launcher, *self.MACHINE, "-m", str(ram_mib), "-bios", rom,
                   "-machine", f"mem-merge={'on' if merge else 'off'}",
                   "-qmp", f"unix:{paths['qmp']},server=on,wait=off",
                   "-qtest", f"unix:{paths['qtest']},server=on,wait=off", *arguments]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        try:
            self._qmp = connect(paths["qmp"], self.process).makefile("rw", encoding="utf-8")
            self._qtest = connect(paths["qtest"], self.process).makefile("rw", encoding="ascii")
            self._receive()
            self.qmp("qmp_capabilities")
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends the process; nothing of it is left afterwards."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def last_words(self):
        """What QEMU and the launcher said."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def _receive(self):
        while True:
            line = self._qmp.readline()
            if not line:
                raise QemuError(f"QEMU closed QMP: {self.last_words().strip()[-500:]}")
            message = json.loads(line)
            if "event" not in message:
                return message

    def qmp(self, command, **arguments):
        """Runs a QMP command and returns what it returns."""
        request = {"execute": command}
        if arguments:
            request["arguments"] = arguments
        self._qmp.write(json.dumps(request) + "\n")
        self._qmp.flush()
        answer = self._receive()
        if "error" in answer:
            raise QemuError(f"{command}: {answer['error']['desc']}")
        return answer["return"]

    def _qtest_command(self, line):
        self._qtest.write(line + "\n")
        self._qtest.flush()
        while True:
            answer = self._qtest.readline().split()
            if not answer:
                raise QemuError(f"QEMU closed qtest: {self.last_words().strip()[-500:]}")
            if answer[0] == "OK":
                return answer[1:]
            if answer[0] != "IRQ":
                raise QemuError(f"qtest: {line}: {' '.join(answer)}")

    def fill(self, address, length, byte):
        """Sets guest memory without the guest running."""
        self._qtest_command(f"memset {address:#x} {length:#x} {byte:#x}")

    def write_word(self, address, value):
        """Writes 32 bits of guest memory."""
        self._qtest_command(f"writel {address:#x} {value:#x}")

    def read_word(self, address):
        """Reads 32 bits of guest memory."""
        return int(self._qtest_command(f"readl {address:#x}")[0], 16)

    def save(self, path):
        """Writes all of the guest's RAM to a file."""
        self.qmp("pmemsave", val=0, size=self.ram, filename=path)

    def memory(self):
        """Bytes of the host's memory that the guest's RAM takes: the proportional
        set size of the mapping, so that a page merged by KSM counts by its share."""
        size = None
        with open(f"/proc/{self.process.pid}/smaps", encoding="ascii") as smaps:
            for line in smaps:
                if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                    start, end = (int(x, 16) for x in line.split()[0].split("-"))
                    size = end - start
                elif size == self.ram and line.startswith("Pss:"):
                    return int(line.split()[1]) << 10
        raise QemuError("the guest's RAM is not a mapping of its own")
