#!/usr/bin/env python3
"""Makes a large capture and measures what `ble decode`, tshark and btmon need to read it, one after the other.

    large_capture.py                        # of 1 GB, by all three: most of an hour, nearly all of it tshark's
    large_capture.py --size 100M            # of 100 MB
    large_capture.py --make trace.btsnoop   # only makes the file

The capture is btsnoop of H4 packets: links that come and go, between reports of what advertises around. Each link has its
commands and their events, discovery, reads, writes, notifications of 20 and of 244 octets, and values in fragments. There
is no Read By Type Request in it: btmon 5.66 crashes where it reads one.

Each program writes to /dev/null. The memory is the greatest that was resident. `ble decode` also reads a capture of a
tenth of the length, which must take it as much memory.
"""

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = struct.Struct(">IIIIQ")  # btsnoop: original length, included length, flags, drops, time; the packet follows
EPOCH = 0x00E03AB44A676000  # of 2000-01-01 in microseconds, as btsnoop counts them
LINKS = 64  # different ones, before the first comes again
FRAGMENT = 27


class Link:
    """What happens on one link and around it, as H4 packets with their flags."""

    def __init__(self, number: int):
        self.random = random.Random(number)
        self.handle = 0x0040 + number % 4
        self.peer = self.random.randbytes(5) + b"\xc0"
        self.neighbours = [(self.random.randbytes(5) + b"\xc0", self.random.randbytes(24)) for _ in range(40)]
        self.packets: list[tuple[int, bytes]] = []
        self.connect()
        self.discover()
        for turn in range(120):
            self.converse(turn)
        self.command(0x0406, struct.pack("<HB", self.handle, 0x13))
        self.event(0x0F, struct.pack("<BBH", 0, 1, 0x0406))
        self.event(0x05, struct.pack("<BHB", 0, self.handle, 0x16))

    def command(self, opcode: int, parameters: bytes = b""):
        self.packets.append((2, struct.pack("<BHB", 1, opcode, len(parameters)) + parameters))

    def event(self, code: int, parameters: bytes):
        self.packets.append((3, struct.pack("<BBB", 4, code, len(parameters)) + parameters))

    def complete(self, opcode: int, returned: bytes = b"\0"):
        self.event(0x0E, struct.pack("<BH", 1, opcode) + returned)

    def frame(self, pdu: bytes, received: bool, room: int = 251):
        """An ATT PDU, in as many ACL packets as the controller's room makes of it."""
        frame = struct.pack("<HH", len(pdu), 0x0004) + pdu
        for start in range(0, len(frame), room):
            part = frame[start : start + room]
            boundary = 1 if start else 2 if received else 0
            header = struct.pack("<BHH", 2, self.handle | boundary << 12, len(part))
            self.packets.append((int(received), header + part))
        if not received:
            self.event(0x13, struct.pack("<BHH", 1, self.handle, -(-len(frame) // room)))

    def exchange(self, request: bytes, response: bytes, room: int = 251):
        self.frame(request, False)
        self.frame(response, True, room)

    def connect(self):
        self.command(0x2042, struct.pack("<BBHH", 0, 0, 0, 0))
        self.complete(0x2042)
        self.command(0x2043, struct.pack("<BBB6sBHHHHHHHH", 0, 1, 1, self.peer, 1, 96, 96, 24, 40, 0, 500, 0, 0))
        self.event(0x0F, struct.pack("<BBH", 0, 1, 0x2043))
        addresses = struct.pack("<B6s6s6s", 1, self.peer, bytes(6), bytes(6))
        connected = struct.pack("<BBHB", 0x0A, 0, self.handle, 0) + addresses + struct.pack("<HHHB", 36, 0, 500, 0)
        self.event(0x3E, connected)
        self.command(0x2022, struct.pack("<HHH", self.handle, 251, 2120))
        self.complete(0x2022, struct.pack("<BH", 0, self.handle))
        self.event(0x3E, struct.pack("<BHHHHH", 0x07, self.handle, 251, 2120, 251, 2120))

    def discover(self):
        self.exchange(struct.pack("<BH", 0x02, 247), struct.pack("<BH", 0x03, 247))
        services = ((0x0001, 0x0007, 0x1800), (0x0010, 0x001F, 0xFFF0), (0x0020, 0x002F, 0x180F))
        self.exchange(
            struct.pack("<BHHH", 0x10, 1, 0xFFFF, 0x2800),
            b"\x11\x06" + b"".join(struct.pack("<HHH", *service) for service in services),
        )
        types = {0x11: 0x2803, 0x12: 0xFFF1, 0x13: 0x2902, 0x21: 0x2803, 0x22: 0x2A19, 0x24: 0x2803, 0x25: 0xFFF2}
        self.exchange(
            struct.pack("<BHH", 0x04, 0x11, 0x2F),
            b"\x05\x01" + b"".join(struct.pack("<HH", *each) for each in types.items()),
        )
        self.exchange(struct.pack("<BHH", 0x12, 0x13, 1), b"\x13")

    def converse(self, turn: int):
        self.advertise()
        for _ in range(4):
            self.frame(struct.pack("<BH", 0x1B, 0x12) + self.random.randbytes(20), True)
        for _ in range(4):
            self.frame(struct.pack("<BH", 0x1B, 0x12) + self.random.randbytes(244), True)
        self.exchange(struct.pack("<BH", 0x0A, 0x22), struct.pack("<BB", 0x0B, turn % 100))
        self.exchange(struct.pack("<BH", 0x0A, 0x25), b"\x0b" + self.random.randbytes(180), FRAGMENT)
        self.exchange(struct.pack("<BH", 0x12, 0x25) + self.random.randbytes(20), b"\x13")
        self.frame(struct.pack("<BH", 0x52, 0x25) + self.random.randbytes(100), False)
        self.command(0x1405, struct.pack("<H", self.handle))
        self.complete(0x1405, struct.pack("<BHb", 0, self.handle, -40 - turn % 40))

    def advertise(self):
        """Two legacy reports and two extended ones."""
        for _ in range(2):
            address, data = self.random.choice(self.neighbours)
            advertised = b"\x02\x01\x06\x05\x03\x0d\x18\x0f\x18\x10\x09" + b"neighbour " + address.hex()[:5].encode()
            report = struct.pack("<BB6sB", 0, 1, address, len(advertised)) + advertised + b"\xc8"
            self.event(0x3E, b"\x02\x01" + report)
        for _ in range(2):
            address, data = self.random.choice(self.neighbours)
            advertised = b"\x02\x01\x06" + bytes([len(data) + 3, 0xFF, 0x4C, 0x00]) + data
            report = struct.pack("<HB6sBBBbbHB6s", 0x0013, 1, address, 1, 0, 0xFF, 127, -60, 0, 0, bytes(6))
            self.event(0x3E, b"\x0d\x01" + report + bytes([len(advertised)]) + advertised)

    def records(self) -> tuple[list[tuple[int, int, bytes]], int]:
        """For each packet when it comes after the first, its flags and bytes; and when the next link begins."""
        clock, timed = 0, []
        for flags, packet in self.packets:
            timed.append((clock, flags, packet))
            clock += self.random.randrange(100, 4000)
        return timed, clock


def make(target: Path, size: int) -> int:
    """Writes the capture, which is as long as whole links allow; the number of its packets."""
    links = [Link(number).records() for number in range(LINKS)]
    packets, written, clock, turn = 0, 16, EPOCH + 800_000_000 * 10**6, 0
    with target.open("wb") as file:
        file.write(b"btsnoop\0" + struct.pack(">II", 1, 1002))
        while True:
            timed, duration = links[turn % LINKS]
            block = b"".join(
                RECORD.pack(len(packet), len(packet), flags, 0, clock + after) + packet
                for after, flags, packet in timed
            )
            if written + len(block) > size:
                return packets
            file.write(block)
            packets, written, clock, turn = packets + len(timed), written + len(block), clock + duration, turn + 1


def measure(command: list[str]) -> tuple[float, float, float, str]:
    """Seconds of the wall and of the processor, megabytes, and what went wrong."""
    started = time.monotonic()
    peak, ended = 0, 0
    with open(os.devnull, "wb") as nowhere, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=nowhere, stderr=errors)
        # The memory that waiting for the process tells counts what this one held when it began. What it has held at most
        # never falls, so that the last that is seen of it is as good.
        while not ended:
            peak = max(peak, resident(process.pid))
            time.sleep(0.01)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()[-200:]
    problem = f"ended by {process.returncode}: {said}" if process.returncode else ""
    return seconds, usage.ru_utime + usage.ru_stime, peak / 1024, problem


def resident(process: int) -> int:
    """The most kilobytes that a process has held at a time."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def octets(text: str) -> int:
    return int(text[:-1]) * {"K": 10**3, "M": 10**6, "G": 10**9}[text[-1]] if text[-1] in "KMG" else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=octets, default="1G", help="bytes, with K, M or G (default: 1G)")
    parser.add_argument("--make", type=Path, metavar="FILE", help="make the capture and measure nothing")
    options = parser.parse_args()
    if options.make:
        print(f"{make(options.make, options.size)} packets")
        return
    folder = ROOT / ".build-large"
    folder.mkdir(exist_ok=True)
    ble = os.environ.get("BLE", str(ROOT / ".build/release/ble"))
    failed = False
    try:
        large, tenth = folder / "large.btsnoop", folder / "tenth.btsnoop"
        packets = make(large, options.size)
        fewer = make(tenth, options.size // 10)
        print(f"{packets} packets, {large.stat().st_size} bytes")
        print(f"{'':24} {'wall':>10} {'processor':>10} {'memory':>11} {'packets':>19}", flush=True)
        runs = [
            ("ble decode, of a tenth", fewer, [ble, "decode", tenth]),
            ("ble decode", packets, [ble, "decode", large]),
            ("ble decode --json", packets, [ble, "decode", "--json", large]),
            ("ble decode -v", packets, [ble, "decode", "-v", large]),
            ("ble decode --summary", packets, [ble, "decode", "--summary", large]),
            ("btmon -r", packets, ["btmon", "-r", large]),
            ("tshark -r", packets, ["tshark", "-n", "-r", large]),
        ]
        for name, count, (program, *arguments) in runs:
            if shutil.which(program) is None:
                print(f"{name:24} is not installed")
                continue
            seconds, processor, memory, problem = measure([program, *map(str, arguments)])
            failed = failed or bool(problem) and program == ble
            rate = f"{count / seconds / 1000:8.0f} thousand/s" if not problem else f" {problem}"
            print(f"{name:24} {seconds:8.1f} s {processor:8.1f} s {memory:8.0f} MB {rate}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
