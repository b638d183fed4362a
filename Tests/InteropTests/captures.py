"""Reads every capture of `--capture` with tshark: no packet may be malformed."""

import asyncio
import os
import shutil
import tempfile
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


# A start of tshark takes longer than most captures. So up to this many are read together, as interfaces of one file:
# tshark keeps the state of each interface apart.
TOGETHER = 24


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
        waiting: dict[str, list[Path]] = {}
        while (capture := await self.queue.get()) is not None:
            alike = waiting.setdefault(display_filter(capture), [])
            alike.append(capture)
            if len(alike) == TOGETHER:
                await self.check(waiting.pop(display_filter(capture)))
        for alike in waiting.values():
            await self.check(alike)

    async def check(self, alike: list[Path]):
        """Reads captures of the same filter together, and each by itself if there is something to report."""
        if not self.available:
            return
        self.count += len(alike)
        if len(alike) > 1 and await self.is_well_formed(alike):
            return
        for capture in alike:
            status, output, errors = await run("tshark", *FIELDS, "-r", str(capture), "-Y", display_filter(capture))
            if status != 0:
                words = errors.strip().splitlines() or [f"status {status}"]
                self.problems.append(f"{capture.name}: {words[-1]}")
            for line in output.splitlines():
                self.problems.append(f"{capture.name}: packet {' '.join(line.split(chr(9)))}")

    async def is_well_formed(self, alike: list[Path]) -> bool:
        with tempfile.NamedTemporaryFile(suffix=".pcapng") as merged:
            status, _, _ = await run("mergecap", "-a", "-I", "none", "-w", merged.name, *map(str, alike))
            if status != 0:
                return False
            status, output, _ = await run("tshark", *FIELDS, "-r", merged.name, "-Y", display_filter(alike[0]))
            return status == 0 and not output

    async def finish(self, expects_captures: bool = False) -> tuple[str, list[str]]:
        """Returns `passed`, `failed` or `skipped`, and lines with the reasons.

        Without a capture, the check fails if CI is set and the tests that ran should have recorded some.
        """
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
            state = "failed" if expects_captures and os.environ.get("CI") else "skipped"
            return state, ["no test that ran has recorded a capture"]
        return "passed", [f"nothing malformed in {self.count} captures"]


FIELDS = ("-n", "-T", "fields", "-e", "frame.number", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info")


def display_filter(capture: Path) -> str:
    """The packets of a capture that must not be there."""
    words = "_ws.malformed" + "".join(f" && !({each})" for each in LIMITS)
    if ON_PURPOSE in capture.name:
        words += " && hci_h4.direction == 0"
    if BOTH_ASK in capture.name:
        words += f" && !({VALUES})"
    return words


async def run(*command: str) -> tuple[int, str, str]:
    """Runs a program at a low priority, and returns its status, output and errors."""
    process = await asyncio.create_subprocess_exec(
        "nice", *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode(errors="replace"), errors.decode(errors="replace")
