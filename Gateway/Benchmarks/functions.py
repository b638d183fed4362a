"""Finds the functions that a running `ble-gateway` uses, so that the linker can place them next to each other.

    functions.py PROGRAM OUTPUT

callgrind runs PROGRAM, which has the names of its functions, in three runs: without a client, while a client reads from a
device through it, and while it publishes readings. The functions of the first run come first in OUTPUT, one mangled name a line.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

program, output = Path(sys.argv[1]), Path(sys.argv[2])
folder = tempfile.TemporaryDirectory()
calls = Path(folder.name) / "calls"
wrapper = Path(folder.name) / "ble-gateway"
wrapper.write_text(
    f'#!/bin/sh\n[ "$1" = run ] || exec "{program}" "$@"\n'
    f'exec valgrind -q --tool=callgrind --demangle=no --callgrind-out-file={calls}.%p "{program}" "$@"\n'
)
wrapper.chmod(0o755)
os.environ["BLE_GATEWAY"] = str(wrapper)

import measure  # noqa: E402
import sensor_advertisements  # noqa: E402

PROFILE = """{"name": "Device", "advertise": {"services": ["180F"]}, "services": [{"uuid": "180F", "primary": true,
 "characteristics": [{"uuid": "2A19", "properties": ["read", "notify"], "value": "64"}]}]}"""


def functions_of_run() -> list[str]:
    """The functions of the run that has just ended."""
    names = set()
    for file in calls.parent.glob("calls.*"):
        for line in file.read_text(errors="replace").splitlines():
            if (match := re.match(r"c?fn=\(\d+\) ([^'\s]+)", line)) and not match[1].startswith("0x"):
                names.add(match[1])
        file.unlink()
    return sorted(names)


def run_idle(base: Path):
    with measure.air(base / "air"), measure.Gateway(f"unix:{base}/air", base / "state", readings="json"):
        time.sleep(20)


def run_with_client(base: Path):
    path, profile = base / "air", base / "device.json"
    profile.write_text(PROFILE)
    with measure.air(path), measure.Gateway(f"unix:{path}", base / "state", readings="json") as gateway:
        serve = [measure.BLE, "serve", profile, "--adapter", f"unix:{path}", "--state-dir", base / "device", "--json"]
        with measure.Process(*serve, stdout=subprocess.PIPE, text=True) as device:
            address = None
            while address is None:
                address = json.loads(device.process.stdout.readline()).get("address")
            client = gateway.client()
            client.subscribe()
            number = int(address.split()[0].replace(":", ""), 16)
            client.connect(number, is_random="random" in address)
            handle, _ = client.handles(number)[0x2A19]
            client.read(number, handle)
            time.sleep(10)
            client.close()
            time.sleep(5)


def run_with_broker(base: Path):
    file = base / "advertisements"
    file.write_text("\n".join(sensor_advertisements.lines("BTHome", 10_000)) + "\n")
    with measure.broker(base) as address, measure.null_controller("reports", base / "reports", 20, file):
        options = ["--mqtt", address, "--http", f"127.0.0.1:{measure.free_port()}"]
        with measure.Gateway(f"unix:{base}/reports", base / "state", *options) as gateway:
            client = gateway.client()
            client.subscribe()
            threading.Thread(target=measure.receive_all, args=(client,), daemon=True).start()
            time.sleep(20)


def main():
    names = {}
    for run in (run_idle, run_with_client, run_with_broker):
        with tempfile.TemporaryDirectory() as base:
            run(Path(base))
        found = functions_of_run()
        if not found:
            raise SystemExit(f"functions: {run.__name__} gave no names; did the gateway end within 10 seconds?")
        names |= dict.fromkeys(found)
        print(f"{run.__name__}: {len(found)} functions", file=sys.stderr)
    output.write_text("\n".join(names) + "\n")


main()
