#!/usr/bin/env python3
"""Makes a large capture out of small ones, and measures what `ble decode`, tshark and btmon need to read it.

    large_capture.py                            # 1 GB of the captures in Fixtures, by all programs, in .build-large
    large_capture.py --size 100M --share 1      # of 100 MB, and the others read all of it too
    large_capture.py --make trace.btsnoop       # only makes the file

The records are those of the captures in turn, again and again, with times that go on; so links come and go, and services
are discovered anew. Each program writes to /dev/null. The times are of the wall, the memory is the greatest that was
resident, both as the kernel accounts for the process. Programs that are much slower read only the first part of the file,
as `--share` says, and their seconds are multiplied; their memory is what they needed for that part.
"""

import argparse
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER, RECORD = 16, struct.Struct(">IIIIQ")  # of btsnoop: the file's, and each packet's, which is followed by the packet


def records(capture: Path) -> list[tuple[tuple, bytes]]:
    """The records of a btsnoop file: the header's numbers, the last of which is the time, and the packet."""
    data = capture.read_bytes()
    found, offset = [], HEADER
    while offset < len(data):
        header = RECORD.unpack_from(data, offset)
        offset += RECORD.size
        found.append((header, data[offset : offset + header[1]]))
        offset += header[1]
    return found


def make(sources: list[Path], target: Path, size: int) -> int:
    """Writes the capture; the number of its packets."""
    header = sources[0].read_bytes()[:HEADER]
    parts = [records(source) for source in sources]
    packets, written, clock = 0, HEADER, parts[0][0][0][4]
    with target.open("wb") as file:
        file.write(header)
        while True:
            for part in parts:
                shift = clock - part[0][0][4]
                block = b"".join(RECORD.pack(*head[:4], head[4] + shift) + packet for head, packet in part)
                if written + len(block) > size:
                    return packets
                file.write(block)
                packets, written, clock = packets + len(part), written + len(block), part[-1][0][4] + shift + 1000


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds and megabytes of a program that must succeed."""
    started = time.monotonic()
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, stderr=subprocess.PIPE)
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: {errors.decode(errors='replace').strip()}")
    return time.monotonic() - started, usage.ru_maxrss / 1024


def octets(text: str) -> int:
    return int(text[:-1]) * {"K": 10**3, "M": 10**6, "G": 10**9}[text[-1]] if text[-1] in "KMG" else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, help="btsnoop files of one data link (default: Fixtures)")
    parser.add_argument("--size", type=octets, default="1G", help="octets, with K, M or G (default: 1G)")
    parser.add_argument("--share", type=int, default=20, help="the others read one part of so many (default: 20)")
    parser.add_argument("--make", type=Path, metavar="FILE", help="make the capture and measure nothing")
    options = parser.parse_args()
    sources = options.sources or sorted((ROOT / "Fixtures").glob("*.btsnoop"))
    if options.make:
        print(f"{make(sources, options.make, options.size)} packets")
        return
    folder = ROOT / ".build-large"
    folder.mkdir(exist_ok=True)
    ble = os.environ.get("BLE", str(ROOT / ".build/release/ble"))
    try:
        large, part = folder / "large.btsnoop", folder / "part.btsnoop"
        packets = make(sources, large, options.size)
        partial = make(sources, part, options.size // options.share)
        print(f"{packets} packets, {large.stat().st_size} octets")
        runs = [
            ("ble decode", [ble, "decode", large], 1),
            ("ble decode --json", [ble, "decode", "--json", large], 1),
            ("ble decode --summary", [ble, "decode", "--summary", large], 1),
            ("ble decode, of a part", [ble, "decode", part], packets / partial),
            ("tshark", ["tshark", "-n", "-r", part], packets / partial),
            ("btmon", ["btmon", "-r", part], packets / partial),
        ]
        for name, (program, *arguments), factor in runs:
            if shutil.which(program) is None:
                print(f"{name:24} is not installed")
                continue
            seconds, memory = measure([program, *map(str, arguments)])
            scaled = f" (measured {seconds:.1f} s for {partial} packets)" if factor != 1 else ""
            rate = packets / (seconds * factor)
            print(f"{name:24} {seconds * factor:8.1f} s {rate / 1000:8.0f} thousand/s {memory:8.0f} MB{scaled}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
