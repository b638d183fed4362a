#!/usr/bin/env python3
"""Records the captures in Fixtures whose controllers are a kernel's, with `ble serve` and with BlueZ as peers.

`Tests/KernelTests/record [NAME ...]` starts it. The others are recorded by `Tests/InteropTests/record_fixtures.py`,
which describes fixtures.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bluez import BlueZ
from kernel_tests import HERE, ROOT, World
from machine import OUT, Machine

FIXTURES = ROOT / "Fixtures"
SERVED = "F1:23:45:67:89:AB"
VALUE, NOTIFIED, INDICATED, COMMAND = (f"b1e0005{n}-5eed-4000-8000-c0ffee000000" for n in range(1, 5))
RECIPES = {}


def recipe(name: str, title: str):
    """Registers the peer's actions for a fixture, and the fixture's note."""

    def register(body):
        RECIPES[name] = (title, body)
        return body

    return register


def recorder(world: World, name: str):
    """The run of our host on hci0 while the context is entered."""
    program = shlex.quote(str(world.binary.parent / "fixture-recorder"))
    return world.machine.start(f"chroot /host {program} {name} hci0 {OUT}/captures/{name}.btsnoop")


@recipe(
    "explore-kernel",
    "All attributes of `ble serve` on hci1 (F2:34:56:78:9A:BC), explored on hci0, both on user channels of a real kernel "
    "with BlueZ’s virtual controllers (btvirt 5.66).",
)
def explore_kernel(world: World):
    with world.serve("hci1") as server:
        server.event("ready", deadline=40)
        with recorder(world, "explore-kernel") as run:
            run.ended(60).succeeded()


@recipe(
    "explore-bluez",
    "All attributes of a GATT application of BlueZ 5.66 on hci1, explored on hci0’s user channel; the controllers are "
    "btvirt’s, in a real kernel.",
)
def explore_bluez(world: World):
    application = f"chroot /host /usr/bin/python3 -B {shlex.quote(str(HERE))}/gatt_application.py hci1"
    with BlueZ(world.machine), world.machine.start(application) as bluez:
        bluez.event("ready", deadline=40)
        with recorder(world, "explore-bluez") as run:
            run.ended(60).succeeded()


@recipe(
    "served-to-bluez",
    "BlueZ 5.66 as the central, by bluetoothctl on hci1: it resolves our peripheral’s services on hci0, reads, writes and "
    "subscribes; the controllers are btvirt’s, in a real kernel.",
)
def served_to_bluez(world: World):
    with BlueZ(world.machine) as bluez:
        with recorder(world, "served-to-bluez") as run:
            run.line("ready", 40)
            bluez.find(SERVED)
            bluez.tell(f"connect {SERVED}", "Connection successful", 40)
            bluez.answer("ServicesResolved: yes", 40)
            bluez.tell("menu gatt")
            bluez.tell(f"select-attribute {VALUE}")
            bluez.tell("read", r"^\s+07 26")
            bluez.tell('write "0x10 0x20 0x30"')
            bluez.tell("read", r"^\s+10 20 30")
            for uuid in (NOTIFIED, INDICATED):
                bluez.tell(f"select-attribute {uuid}")
                bluez.tell("notify on", "Notify started")
                bluez.answer(r"^\s+07 07 26")
                bluez.tell("notify off", "Notify stopped")
            bluez.tell(f"select-attribute {COMMAND}")
            bluez.tell('write "0xaa" 0 command')
            bluez.tell("back")
            bluez.tell(f"disconnect {SERVED}", "Successful disconnected|Disconnection successful", 40)
            run.ended(60).succeeded()


def store(name: str, title: str, capture: Path, ble: Path):
    """Stores a capture with its note and its description among the fixtures."""
    assert capture.stat().st_size < 100_000, f"{name} has {capture.stat().st_size} bytes"
    (FIXTURES / f"{name}.btsnoop").write_bytes(capture.read_bytes())
    note = f"# {name}\n\n{title}\n\nRecorded by `Tests/KernelTests/record {name}`.\n"
    (FIXTURES / f"{name}.md").write_text(note)
    said = subprocess.run([ble, "decode", "--json", capture], check=True, capture_output=True)
    (FIXTURES / f"{name}.json").write_bytes(said.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which fixtures; all where none is named")
    parser.add_argument("--image", type=Path, default=ROOT / ".vm", help="where build-image has put the machine's image")
    parser.add_argument("--build", type=Path, default=ROOT / ".build/debug", help="where ble and fixture-recorder are")
    options = parser.parse_args()
    if unknown := set(options.names) - set(RECIPES):
        parser.error(f"there is no fixture {', '.join(sorted(unknown))}")
    failures = 0
    with tempfile.TemporaryDirectory() as kept:
        directory = Path(kept)
        os.chmod(directory, 0o755)
        (directory / "captures").mkdir()
        with Machine(options.image, directory) as machine:
            world = World(machine, (options.build / "ble").resolve())
            for name, (title, body) in RECIPES.items():
                if options.names and name not in options.names:
                    continue
                try:
                    body(world)
                    shutil.copy(directory / "captures" / f"{name}.btsnoop", directory / f"{name}.btsnoop")
                    store(name, title, directory / f"{name}.btsnoop", world.binary)
                    print(f"ok      {name}", flush=True)
                except Exception as error:  # noqa: BLE001  (the others are recorded all the same)
                    failures += 1
                    print(f"FAILED  {name}: {type(error).__name__} {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
