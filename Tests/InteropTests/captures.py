"""Reads every capture of `--capture` with tshark: no packet may be malformed."""

import asyncio
import os
import shutil
from pathlib import Path

# Errors of tshark 4.0 itself: a display filter, and the cause.
LIMITS = {
    # An included service with a 128-bit UUID is declared without it (Vol 3, Part G, 3.2); tshark looks for one.
    "btatt.opcode == 0x09 && btatt.length == 6 && btatt.uuid16 == 0x2802": "include without a UUID",
    "btatt.opcode == 0x0b && btl2cap.length == 5 && btatt.uuid16 == 0x2802": "include without a UUID",
    # The part of a value after its last byte is empty, and may be requested (Vol 3, Part F, 3.4.4.5).
    "btatt.opcode == 0x0d && btl2cap.length == 1": "empty part of a value",
    # A controller that refuses a command may return the status alone (Vol 4, Part E, 4.5); tshark expects the handle.
    "bthci_evt.code == 0x0e && bthci_evt.status != 0x00": "return parameters of a refused command",
    # Long advertising data arrives in several reports, which may split an AD structure; tshark reads each separately.
    "bthci_evt.le_meta_subevent == 0x0d && bthci_evt.le_ext_advts_event_type.legacy == 0": "parts of long data",
    # The same for a train, whose data arrives in several commands. All but complete data, 0x03, is a part.
    "bthci_cmd.opcode == 0x203f && bthci_cmd.adv_data_operation != 0x03": "parts of long data",
    "bthci_evt.le_meta_subevent == 0x0f": "parts of long data",
    # A log message of a program begins with a priority and the length of the program's name; tshark reads it as a
    # number.
    "hci_mon.opcode == 13": "the name of a program that logs",
}

# In captures of tests that send malformed packets on purpose, only the packets of our side are checked.
ON_PURPOSE = "malformed"

# If both sides of a link send requests, tshark assigns responses and handles to the wrong side. In these captures its
# interpretation of values is not checked: responses, notifications, writes.
BOTH_ASK = "bluez"
VALUES = "btatt.opcode in {0x05, 0x07, 0x09, 0x0b, 0x0d, 0x0f, 0x11, 0x12, 0x16, 0x17, 0x1b, 0x1d, 0x21, 0x23, 0x52}"


class Checker:
    """Reads captures during the tests, and the remaining ones at the end."""

    def __init__(self):
        self.available = shutil.which("tshark") is not None
        self.queue: asyncio.Queue[Path | None] = asyncio.Queue()
        self.problems: list[str] = []
        self.count = 0
        self.workers = [asyncio.ensure_future(self.work())]

    def submit(self, capture: Path):
        self.queue.put_nowait(capture)

    async def work(self):
        while (capture := await self.queue.get()) is not None:
            if self.available:
                await self.check(capture)

    async def check(self, capture: Path):
        display_filter = "_ws.malformed" + "".join(f" && !({each})" for each in LIMITS)
        if ON_PURPOSE in capture.name:
            display_filter += " && hci_h4.direction == 0"
        if BOTH_ASK in capture.name:
            display_filter += f" && !({VALUES})"
        process = await asyncio.create_subprocess_exec(
            "nice", "tshark", "-n", "-r", str(capture), "-Y", display_filter,
            "-T", "fields", "-e", "frame.number", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await process.communicate()
        self.count += 1
        if process.returncode != 0:
            words = errors.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"]
            self.problems.append(f"{capture.name}: {words[-1]}")
        for line in output.decode(errors="replace").splitlines():
            self.problems.append(f"{capture.name}: packet {' '.join(line.split(chr(9)))}")

    async def finish(self) -> tuple[str, list[str]]:
        """Returns `passed`, `failed` or `skipped`, and lines with the reasons."""
        self.workers += [asyncio.ensure_future(self.work()) for _ in range((os.cpu_count() or 1) - 1)]
        for _ in self.workers:
            self.queue.put_nowait(None)
        await asyncio.gather(*self.workers)
        if not self.available:
            state = "failed" if os.environ.get("CI") else "skipped"
            return state, ["tshark is not installed: run apt-get install tshark"]
        if self.problems:
            more = [f"and {len(self.problems) - 20} more"] if len(self.problems) > 20 else []
            return "failed", self.problems[:20] + more
        if self.count == 0:
            return "skipped", ["no test that ran has recorded a capture"]
        return "passed", [f"nothing malformed in {self.count} captures"]
