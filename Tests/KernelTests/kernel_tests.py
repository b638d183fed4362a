#!/usr/bin/env python3
"""Runs `ble` over the HCI sockets of a real kernel, in a virtual machine, against itself and against BlueZ."""

import argparse
import asyncio
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path

import gatt_application as peer
from bluez import HCI0, HCI1, BlueZ
from machine import OUT, Machine

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "InteropTests"))
import tables  # noqa: E402
from captures import Checker  # noqa: E402

PROFILE = json.loads((HERE / "profile.json").read_text())
NAME, ADDRESS = PROFILE["name"], PROFILE["address"]
OURS_VALUE, OURS_NOTIFY, OURS_INDICATE, OURS_COMMAND, OURS_SECRET = (
    f"7E57000{number}-5EED-4000-8000-C0FFEE000000" for number in range(1, 6)
)
TESTS = []


class Skipped(Exception):
    """The reason why a test cannot run here, which is a failure if CI is set."""


def test(name: str):
    """Registers a test."""

    def register(body):
        TESTS.append((name, body))
        return body

    return register


def expect(found, expected, what: str):
    """Fails if the found value differs from the expected one."""
    if lines := tables.differences(found, expected, what):
        raise AssertionError("; ".join(lines[:6]))


class World:
    """The machine with `ble` in it."""

    def __init__(self, machine: Machine, binary: Path):
        self.machine = machine
        self.binary = binary
        self.calls = 0
        self.peer = ""

    def script(self, *arguments: str, adapter: str | None = None, under: str = "", machine_readable=True, timeout=None):
        """A shell script that runs `ble` with the host's files and libraries."""
        self.calls += 1
        words = [*arguments]
        if machine_readable:
            words.append("--json")
        if adapter is not None:
            words += ["--adapter", adapter]
            if not under:
                words += ["--capture", f"{OUT}/captures/{self.calls:02}-{self.peer}{arguments[0]}.btsnoop"]
        if timeout is not None:
            words += ["--timeout", str(timeout)]
        state = f"BLE_STATE_DIR=/run/tmp/state{self.calls}"
        return f"chroot /host {under} /usr/bin/env {state} {shlex.quote(str(self.binary))} {shlex.join(words)}"

    def ble(self, *arguments: str, deadline: float = 40, **options):
        """Runs `ble` to its end."""
        return self.machine.run(self.script(*arguments, **options), deadline)

    def start(self, *arguments: str, **options):
        """Runs `ble` while the context is entered."""
        return self.machine.start(self.script(*arguments, **options))

    def serve(self, adapter: str):
        shutil.copy(HERE / "profile.json", self.machine.out / "profile.json")
        return self.start("serve", f"{OUT}/profile.json", adapter=adapter)

    def hciconfig(self, adapter: str, state: str):
        self.machine.run(f"hciconfig {adapter} {state}").succeeded()


@test("info of hci0 over the user channel")
def info(world: World):
    found = world.ble("info", adapter="hci0").succeeded()
    assert "00:AA:01:00:00:00" in found.output.upper(), found.output
    assert found.object, "nothing said"


@test("info of hci0 over the raw channel, beside the kernel")
def raw_info(world: World):
    world.hciconfig("hci0", "up")
    try:
        found = world.ble("info", adapter="hci0?channel=raw").succeeded()
        assert "00:AA:01:00:00:00" in found.output.upper(), found.output
        status = world.machine.run("hciconfig hci0").output
        assert re.search(r"\bUP\b", status), f"the kernel's adapter is not up any more: {status}"
    finally:
        world.hciconfig("hci0", "down")


@test("scripts of the harness, on a controller of its own in the kernel")
def harness(world: World):
    harness = world.binary.parent / "hci-harness"
    assert harness.exists(), f"no {harness}: swift build --product hci-harness"
    scripts = ROOT / "Tests" / "Harness" / "Scripts"
    # Scripts that need the host's socket to be closed do not apply to a controller that stays.
    chosen = ["gatt-server-read", "gatt-server-indication", "gatt-client-explore", "l2cap-fragments", "hci-flow-control"]
    paths = shlex.join(str(scripts / f"{each}.hci") for each in chosen)
    command = f"chroot /host /usr/bin/env TMPDIR=/run/tmp {shlex.quote(str(harness))} --listen vhci --timeout 60 --script {paths}"
    outcome = world.machine.run(command, 240)
    assert f"{len(chosen)} passed, 0 failed" in outcome.output, outcome.output + outcome.errors


@test("an adapter that is up is busy, and the error says so")
def adapter_up(world: World):
    world.hciconfig("hci0", "up")
    try:
        world.ble("info", adapter="hci0").failed("hci0", "busy|in use|up|down|bluetoothd|another")
        doctor = world.ble("doctor")
        findings = [json.loads(line) for line in doctor.output.splitlines()]
        problems = [each["text"] for each in findings if each["severity"] == "problem"]
        assert len(problems) == 1 and re.match(r"hci0 .*is up: ", problems[0]), findings
        expect(doctor.status, 1, "the status of doctor")
    finally:
        world.hciconfig("hci0", "down")
    world.ble("info", adapter="hci0").succeeded()


@test("an adapter that another program uses is busy, and the error says so")
def adapter_taken(world: World):
    with world.serve("hci0") as server:
        server.event("ready", deadline=40)
        world.ble("info", adapter="hci0").failed("hci0", "busy|in use|another")
        world.ble("info", adapter="hci2").succeeded()
        server.send("quit")
        server.ended().succeeded()
    world.ble("info", adapter="hci0").succeeded()


@test("a missing adapter is reported")
def adapter_absent(world: World):
    world.ble("info", adapter="hci7").failed("hci7")
    world.ble("scan", "--duration", "1", adapter="hci7?channel=raw").failed("hci7")


@test("without CAP_NET_ADMIN the error says what is missing")
def permission(world: World):
    shutil.copy(world.binary, world.machine.out / "ble")
    without = "/usr/bin/setpriv --bounding-set=-net_admin,-net_raw --inh-caps=-all"
    world.ble("info", adapter="hci0", under=without).failed("permission|CAP_NET_ADMIN|root|sudo")
    nobody = World(world.machine, Path(f"{OUT}/ble"))
    version = world.machine.run(f"chroot /host /usr/bin/setpriv --reuid=65534 --clear-groups {OUT}/ble --version")
    if version.status != 0:
        # For example, if Swift's libraries are below a home directory that other users cannot open.
        raise Skipped(f"another user cannot run ble here: {version.errors.strip() or version.output.strip()[-200:]}")
    another = "/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups"
    nobody.ble("info", adapter="hci0", under=another).failed("permission|CAP_NET_ADMIN|root|sudo")


@test("adapters lists those of the kernel")
def adapters(world: World):
    output = world.ble("adapters", machine_readable=False).succeeded().output
    assert all(f"hci{index}" in output for index in range(3)), output


@test("explore on hci0 finds the attributes of serve on hci1, one by one")
def ours_with_ours(world: World):
    expected = tables.expected_of_profile(PROFILE)
    with world.serve("hci1") as server:
        server.event("ready", deadline=40)
        found = world.ble("explore", ADDRESS, "--address-type", "random", adapter="hci0").succeeded().object
        services = tables.normalized(found["services"])
        expect([each for each in services if each["handle"] >= 0x0100], expected, "services")
        expect(found["mtu"], 517, "mtu")
        server.event("connected")
        server.event("disconnected")
        found = world.ble("explore", NAME, adapter="hci0", timeout=20).succeeded().object
        expect(found["address"], ADDRESS, "address")
        server.send("quit")
        server.ended().succeeded()


@test("scan on hci0 finds serve on hci1")
def ours_scanned(world: World):
    with world.start("scan", "--duration", "30", adapter="hci0") as scan, world.serve("hci1") as server:
        server.event("ready", deadline=40)
        seen = scan.event("advertisement", address=ADDRESS, deadline=30)
        expect(seen["manufacturerData"], {"FFFF": "c0ffee"}, "manufacturerData")
        expect([tables.long_uuid(uuid) for uuid in seen["serviceUUIDs"]], [tables.long_uuid("180F")], "serviceUUIDs")


@test("values, including long ones, are transferred from hci0 to hci1 and back")
def ours_values(world: World):
    peer = (ADDRESS, "--address-type", "random")
    with world.serve("hci1") as server:
        server.event("ready", deadline=40)
        value = bytes(range(256)) * 2
        world.ble("write", *peer, OURS_VALUE, value.hex(), adapter="hci0").succeeded()
        found = world.ble("read", *peer, OURS_VALUE, adapter="hci0").succeeded().object
        expect(found["value"], value.hex(), "value")
        # Without a bond: the next processes have no key, and a bonded address without a key is refused.
        found = world.ble("read", *peer, OURS_SECRET, "--no-bond", adapter="hci0").succeeded().object
        expect(bytes.fromhex(found["value"]), b"secret", "a value for which they pair")
        for characteristic, verb, kind in (
            (OURS_NOTIFY, "notify", "notification"),
            (OURS_INDICATE, "indicate", "indication"),
        ):
            values = [bytes([index]) * 100 for index in range(100)]
            with world.start("subscribe", *peer, characteristic, "--count", "100", adapter="hci0") as subscriber:
                server.event("subscribed", deadline=40)
                for each in values:
                    server.send(f"{verb} {characteristic} {each.hex()}")
                got = [subscriber.event(kind, deadline=40)["value"] for _ in values]
                subscriber.ended().succeeded()
            expect(got, [each.hex() for each in values], kind)
        lines = "".join(bytes([index]).hex() * 300 + "\n" for index in range(100))
        (world.machine.out / "lines").write_text(lines)
        script = world.script("write", *peer, OURS_COMMAND, "-", "--without-response", adapter="hci0")
        world.machine.run(f"cat {OUT}/lines | {script}").succeeded()
        got = [server.event("write", deadline=40)["value"] for _ in range(100)]
        expect(got, [bytes([index]).hex() * 300 for index in range(100)], "writes without response")


def application() -> str:
    """A script that runs the GATT application on BlueZ's adapter."""
    return f"chroot /host /usr/bin/python3 -B {shlex.quote(str(HERE))}/gatt_application.py hci1"


@test("BlueZ as the peripheral on hci1: explore, read, write, subscribe")
def bluez_peripheral(world: World):
    target = (HCI1, "--address-type", "public")
    world.peer = "bluez-"  # see captures.py

    def value_of(*arguments: str) -> str:
        return world.ble("read", *target, *arguments, adapter="hci0").succeeded().object["value"]

    with BlueZ(world.machine), world.machine.start(application()) as bluez:
        bluez.event("ready", deadline=40)
        found = world.ble("explore", *target, adapter="hci0").succeeded().object
        services = {each["uuid"]: each for each in tables.normalized(found["services"])}
        for uuid in ("1800", "1801"):
            assert tables.long_uuid(uuid) in services, f"no {uuid} in {list(services)}"
        for uuid, characteristics in peer.SERVICES.items():
            discovered = {each["uuid"].lower(): each for each in services[uuid.upper()]["characteristics"]}
            expect(sorted(discovered), sorted(characteristics), f"characteristics of {uuid}")
            for name, (flags, value) in characteristics.items():
                properties = {
                    "writeWithoutResponse" if flag == "write-without-response" else flag.split("-")[-1]
                    for flag in flags
                }
                assert set(discovered[name]["properties"]) == properties, discovered[name]
                if "read" in flags:
                    expect(discovered[name]["value"], value.hex(), name)
        described = {each["uuid"].lower(): each for each in services[peer.SERVICE.upper()]["characteristics"]}[
            peer.VALUE
        ]
        expect(
            [(each["uuid"].lower(), each["value"]) for each in described["descriptors"]],
            [(peer.DESCRIPTION, b"A place to write to".hex())],
            "descriptors",
        )

        expect(value_of(peer.LONG), (bytes(range(256)) * 2).hex(), "a value of 512 bytes")
        # BlueZ 5.66 accepts 510 bytes in a Write Request: it counts the handle's two bytes among the value's 512.
        for value in (b"short", bytes(range(255)) * 2):
            world.ble("write", *target, peer.VALUE, value.hex(), adapter="hci0").succeeded()
            bluez.event("write", uuid=peer.VALUE)
            expect(value_of(peer.VALUE), value.hex(), f"{len(value)} bytes")
        # bluetoothd may not read data that arrives just before a disconnection: the link stays until it has.
        script = world.script("write", *target, peer.COMMAND, "-", "--without-response", adapter="hci0")
        with world.machine.start(f"( echo c0ffee; head -n 1 >/dev/null ) | {script}") as writer:
            expect(bluez.event("write", uuid=peer.COMMAND, deadline=40)["value"], "c0ffee", "written without response")
            writer.send("that was it")
            writer.ended().succeeded()

        for characteristic, kind in ((peer.NOTIFIED, "notification"), (peer.INDICATED, "indication")):
            values = [bytes([index]) * 50 for index in range(20)]
            with world.start("subscribe", *target, characteristic, "--count", "20", adapter="hci0") as subscriber:
                bluez.event("subscribed", uuid=characteristic, deadline=40)
                for value in values:
                    bluez.send(f"notify {characteristic} {value.hex()}")
                got = [subscriber.event(kind, deadline=40)["value"] for _ in values]
                subscriber.ended().succeeded()
            expect(got, [value.hex() for value in values], kind)
            bluez.event("unsubscribed", uuid=characteristic)


@test("BlueZ as the central on hci1: scan, connect, list, read, write, notify")
def bluez_central(world: World):
    world.peer = "bluez-"
    with BlueZ(world.machine) as bluez:
        with world.serve("hci0") as server:
            server.event("ready", deadline=40)
            bluez.find(f"{ADDRESS} {NAME}")
            bluez.tell(f"connect {ADDRESS}", "Connection successful", 40)
            server.event("connected")
            bluez.answer("ServicesResolved: yes", 40)
            bluez.tell("menu gatt")
            bluez.tell(f"list-attributes {ADDRESS}")
            for uuid in (OURS_VALUE, OURS_NOTIFY, OURS_INDICATE, OURS_COMMAND):
                assert any(uuid.lower() in line for line in bluez.control.output), f"BlueZ has not found {uuid}"

            bluez.tell(f"select-attribute {OURS_VALUE.lower()}")
            bluez.tell("read", "74 6f 20 62 65 20 72 65 70 6c 61 63 65 64")
            bluez.tell('write "0x10 0x20 0x30"')
            expect(server.event("write", deadline=40)["value"], "102030", "written")
            bluez.tell("read", r"^\s+10 20 30")
            for characteristic, verb in ((OURS_NOTIFY, "notify"), (OURS_INDICATE, "indicate")):
                bluez.tell(f"select-attribute {characteristic.lower()}")
                bluez.tell("notify on", "Notify started")
                server.event("subscribed")
                server.send(f"{verb} {characteristic} 0badf00d")
                bluez.answer(r"^\s+0b ad f0 0d")
                bluez.tell("notify off", "Notify stopped")
                server.event("unsubscribed")
            bluez.tell(f"select-attribute {OURS_COMMAND.lower()}")
            bluez.tell('write "0xaa" 0 command')
            expect(server.event("write", deadline=40)["value"], "aa", "written without response")
            bluez.tell("back")
            server.send("disconnect")
            bluez.answer(r"Connected: no", 40)
            server.event("disconnected")
            server.send("quit")
            server.ended().succeeded()


BONDS = "/run/tmp/bonds"


@test("BlueZ as the peripheral pairs with ble: just works, and the bond serves the next connections")
def bluez_pairs_just_works(world: World):
    world.peer = "bluez-"
    with BlueZ(world.machine) as bluez, world.machine.start(application()) as served:
        served.event("ready", deadline=40)
        bluez.take_up_agent("NoInputNoOutput")
        bluez.forget(HCI0)  # a test before may have failed with a bond
        target = (HCI1, "--address-type", "public", "--state-dir", f"{BONDS}1")
        refused = world.ble("read", *target, peer.GUARDED, "--authenticated", adapter="hci0")
        refused.failed("authentication")
        with world.start("pair", *target, adapter="hci0") as pairing:
            # There is nothing to compare, but BlueZ asks whether this device may pair at all.
            bluez.answer("Request authorization", 40)
            bluez.tell("yes")
            paired = pairing.ended(40).succeeded().object
        expect((paired["event"], paired["model"], paired["bonded"]), ("paired", "justWorks", True), "the pairing")
        expect(paired["secureConnections"], True, "Secure Connections")
        for _ in range(2):
            found = world.ble("read", *target, peer.SECRET, adapter="hci0").succeeded().object
            expect(bytes.fromhex(found["value"]), b"secret", "the value by the bond")
        again = world.ble("pair", *target, adapter="hci0").succeeded().object
        expect(again["event"], "encrypted", "pairing with a bonded peer")
        bluez.forget(HCI0)


@test("BlueZ as the peripheral accepts enhanced bearers of ble, and reads use them")
def bluez_enhanced_bearers(world: World):
    world.peer = "bluez-"
    with BlueZ(world.machine, channels=5) as bluez, world.machine.start(application()) as served:
        served.event("ready", deadline=40)
        bluez.take_up_agent("NoInputNoOutput")
        bluez.forget(HCI0)  # a test before may have failed with a bond
        target = (HCI1, "--address-type", "public", "--state-dir", f"{BONDS}5", "--enhanced-bearers", "3")
        with world.start("pair", *target, adapter="hci0") as pairing:
            bluez.answer("Request authorization", 40)
            bluez.tell("yes")
            pairing.ended(40).succeeded()
        explored = world.ble("explore", *target, adapter="hci0").succeeded().object
        expect(len(explored.get("enhancedBearerMTUs", [])), 3, "the number of enhanced bearers")
        characteristics = [item for service in explored["services"] for item in service["characteristics"]]
        values = {item["uuid"]: item.get("value") for item in characteristics}
        expect(bytes.fromhex(values[peer.SECRET.upper()]), b"secret", "a value that was read beside others")
        bluez.forget(HCI0)


@test("BlueZ as the peripheral pairs with ble: passkey typed at ble, and authenticated values are read")
def bluez_pairs_by_passkey(world: World):
    world.peer = "bluez-"
    with BlueZ(world.machine) as bluez, world.machine.start(application()) as served:
        served.event("ready", deadline=40)
        bluez.take_up_agent("DisplayOnly")
        bluez.forget(HCI0)  # a test before may have failed with a bond
        target = (HCI1, "--address-type", "public", "--state-dir", f"{BONDS}2")
        with world.start("pair", *target, "--io", "keyboard", adapter="hci0") as pairing:
            pairing.event("passkeyWanted", deadline=40)
            pairing.send(bluez.answer(r"Passkey: .*?(\d{6})").group(1))
            paired = pairing.event("paired", deadline=40)
            expect((paired["model"], paired["authenticated"]), ("passkeyTypedHere", True), "the pairing")
            pairing.ended().succeeded()
        for _ in range(2):
            found = world.ble("read", *target, peer.GUARDED, adapter="hci0").succeeded().object
            expect(bytes.fromhex(found["value"]), b"guarded", "the value by the bond")
        bluez.forget(HCI0)


def meets_lock(world: World, bluez: BlueZ, server):
    """BlueZ finds our server and connects."""
    server.event("ready", deadline=40)
    bluez.find(f"{ADDRESS} {NAME}")


def reads_secret(bluez: BlueZ):
    bluez.tell("menu gatt")
    bluez.tell(f"select-attribute {OURS_SECRET.lower()}")
    bluez.tell("read", "73 65 63 72 65 74")
    bluez.tell("back")


def bluez_central_pairs(world: World, agent: str, options: tuple[str, ...], carry, model: str, channels: int = 1):
    """BlueZ as the central pairs with our server, reads protected values, and reconnects with encryption."""
    world.peer = "bluez-"
    shutil.copy(HERE / "profile.json", world.machine.out / "profile.json")
    with BlueZ(world.machine, channels) as bluez:
        bluez.take_up_agent(agent)
        bluez.forget(ADDRESS)  # a test before may have failed with a bond
        with world.start("serve", f"{OUT}/profile.json", *options, adapter="hci0") as server:
            meets_lock(world, bluez, server)
            bluez.tell(f"pair {ADDRESS}")
            carry(bluez, server)
            paired = server.event("paired", deadline=40)
            expect((paired["model"], paired["bonded"]), (model, True), "the pairing")
            bluez.answers("Pairing successful", "ServicesResolved: yes")
            reads_secret(bluez)
            bluez.tell(f"disconnect {ADDRESS}", "Successful disconnected|Disconnection successful")
            server.event("disconnected", deadline=40)

            bluez.tell(f"connect {ADDRESS}", "Connection successful", 40)
            server.event("encryption", deadline=40, encrypted=True)
            reads_secret(bluez)
            assert not any(event.get("event") == "pairing" for event in later(server, "disconnected")), "paired again"
            bluez.tell(f"disconnect {ADDRESS}", "Successful disconnected|Disconnection successful")
            server.send("quit")
            server.ended().succeeded()
        bluez.forget(ADDRESS)


def later(server, name: str) -> list[dict]:
    """The events that arrived after the first one of a name."""
    events = [json.loads(line) for line in server.output if line.startswith("{")]
    return events[[event["event"] for event in events].index(name) :]


@test("BlueZ as the central pairs with ble serve: just works, and reconnects with encryption")
def bluez_central_just_works(world: World):
    options = ("--state-dir", f"{BONDS}3")
    bluez_central_pairs(world, "NoInputNoOutput", options, lambda *_: None, "justWorks")


@test("BlueZ as the central pairs with ble serve: passkey shown by ble, and reconnects with encryption")
def bluez_central_passkey(world: World):
    def carry(bluez: BlueZ, server):
        passkey = server.event("passkey", deadline=40)["passkey"]
        bluez.answer("Request passkey", 40)
        bluez.tell(passkey)

    options = ("--state-dir", f"{BONDS}4", "--io", "display")
    bluez_central_pairs(world, "KeyboardOnly", options, carry, "passkeyShownHere")


@test("BlueZ as the central opens an enhanced bearer to ble serve, and reads protected values over it")
def bluez_central_enhanced_bearer(world: World):
    # Of several channels of one request, the kernel confuses the identifiers: see README.md.
    options = ("--state-dir", f"{BONDS}6", "--enhanced-bearers", "4")
    bluez_central_pairs(world, "NoInputNoOutput", options, lambda *_: None, "justWorks", channels=2)
    capture = max((world.machine.out / "captures").glob("*-bluez-serve.btsnoop"))
    answers = [
        signal
        for packet in decoded(world, capture)
        if packet["direction"] == "hostToController"
        for signal in packet.get("l2cap", {}).get("signaling", [])
        if signal["codeName"] == "Credit Based Connection Response"
    ]
    assert answers and all(signal["result"] == 0 for signal in answers), f"BlueZ has opened no bearer: {answers}"


@test("bluetoothd is named as the program that uses an adapter")
def bluez_holds(world: World):
    with BlueZ(world.machine):
        world.ble("info", adapter="hci1").failed("hci1", "busy|in use|another|bluetoothd|up")
    world.hciconfig("hci1", "down")


def decoded(world: World, capture: Path) -> list[dict]:
    """The output of `ble decode` for a capture, outside the machine."""
    outcome = subprocess.run([world.binary, "decode", capture, "--json"], capture_output=True, check=True, timeout=60)
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def without_data(capture: bytes) -> bytes:
    """A btsnoop file of a monitor without ACL data: btmon 5.66 crashes when it reads a Read By Type Request."""
    kept, offset = [capture[:16]], 16
    while offset < len(capture):
        _, length, flags = struct.unpack_from(">III", capture, offset)
        end = offset + 24 + length
        if flags & 0xFFFF not in (4, 5):
            kept.append(capture[offset:end])
        offset = end
    return b"".join(kept)


def check_monitor_capture(world: World, capture: Path, shown: list[dict]):
    """Checks that the captured packets are the shown ones, and that other programs read the same number, with the same
    adapters: btmon in the machine, and tshark, if it is installed, outside."""
    expect(decoded(world, capture), shown, capture.name)
    numbers = [each.get("adapter", 0xFFFF) for each in shown]
    if shutil.which("tshark"):
        fields = ["-T", "fields", "-e", "hci_mon.adapter_id", "-e", "hci_mon.opcode"]
        outcome = subprocess.run(["tshark", "-n", "-r", capture, *fields], capture_output=True, check=True, timeout=60)
        theirs = [int(line.split()[0]) for line in outcome.stdout.decode().splitlines()]
        expect(theirs, numbers, f"adapters in tshark of {capture.name}")
    if capture.suffix == ".btsnoop":
        bare, text = capture.with_suffix(".bare"), capture.with_suffix(".btmon")
        bare.write_bytes(without_data(capture.read_bytes()))
        folder = f"{OUT}/captures"
        world.machine.run(f"btmon -r {folder}/{bare.name} > {folder}/{text.name}").succeeded()
        output = text.read_bytes().decode(errors="replace")
        theirs = re.findall(r"(?:\[hci(\d+)\]|\{0x\w+\} \[hci(\d+)\]) [0-9.]+$", output, re.MULTILINE)
        found = {int(one or other) for one, other in theirs}
        expect(sorted(found), sorted(set(numbers) - {0xFFFF}), f"adapters in btmon of {capture.name}")


@test("monitor shows ble on hci0 and hci2 and BlueZ on hci1, and others read its captures")
def monitored(world: World):
    target = (HCI1, "--address-type", "public")
    names = ["monitor-bluez.btsnoop", "monitor-bluez.pcapng"]
    world.peer = "monitored-bluez-"
    application = f"chroot /host /usr/bin/python3 -B {shlex.quote(str(HERE))}/gatt_application.py hci1"
    with world.start("monitor", "--capture", f"{OUT}/captures/{names[0]}") as monitor:
        monitor.line('"New Index".*"hci2"', 40)
        with BlueZ(world.machine), world.machine.start(application) as bluez:
            bluez.event("ready", deadline=40)
            world.ble("info", adapter="hci0").succeeded()
            world.ble("scan", "--duration", "1", adapter="hci0").succeeded()
            value = world.ble("read", *target, peer.LONG, adapter="hci0").succeeded().object["value"]
        monitor.signal("INT")
        shown = [json.loads(line) for line in monitor.ended().succeeded().output.splitlines()]
    expect([each["index"] for each in shown], list(range(1, len(shown) + 1)), "numbers")
    assert all(abs(each["microseconds"] / 1e6 - time.time()) < 3600 for each in shown), "times are not of today"
    for adapter, server in ((0, "controllerToHost"), (1, "hostToController")):
        read = [
            each["att"]["value"]
            for each in shown
            if each.get("adapter") == adapter
            and each.get("direction") == server
            and each.get("att", {}).get("name") in ("Read Response", "Read Blob Response")
        ]
        assert "".join(read).startswith(value[: 2 * 500]), f"hci{adapter}: {read}"
    check_monitor_capture(world, world.machine.out / "captures" / names[0], shown)

    world.hciconfig("hci2", "up")
    try:
        arguments = ("--capture", f"{OUT}/captures/{names[1]}", "--filter", "adapter=hci2", "--summary")
        with world.start("monitor", *arguments, machine_readable=False) as monitor:
            monitor.line("New Index.*hci2", 40)
            world.ble("info", adapter="hci2?channel=raw").succeeded()
            monitor.signal("INT")
            lines = monitor.ended().succeeded().output.splitlines()
    finally:
        world.hciconfig("hci2", "down")
    assert any(re.search(r"hci2 < Command Read BD_ADDR", line) for line in lines), lines
    assert not any(re.match(r" *\d+ [0-9:.]+ hci[01] ", line) for line in lines), lines
    assert any(re.match(r"\d+ packets from ", line) for line in lines), f"no summary in {lines[-10:]}"
    captured = decoded(world, world.machine.out / "captures" / names[1])
    check_monitor_capture(world, world.machine.out / "captures" / names[1], captured)
    assert {0, 1, 2} <= {each.get("adapter") for each in captured}, "the filter was for the capture too"
    if not shutil.which("tshark"):
        raise Skipped("tshark is not installed, so it has not read the captures; all else passed")


@test("monitor without CAP_NET_RAW reports the missing capability")
def monitor_permission(world: World):
    without = "/usr/bin/setpriv --bounding-set=-net_admin,-net_raw --inh-caps=-all"
    world.ble("monitor", under=without).failed("permission", "CAP_NET_RAW|root|setcap")


def load_tests():
    """Registers the tests of other files. They import this one, also if it is the program."""
    sys.modules.setdefault("kernel_tests", sys.modules[__name__])
    import adapter_tests  # noqa: F401, PLC0415


def binary() -> Path:
    """The `ble` that BLE names, or the last build."""
    candidates = (
        [os.environ["BLE"]] if os.environ.get("BLE") else [ROOT / f".build/{kind}/ble" for kind in ("release", "debug")]
    )
    for candidate in map(Path, candidates):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    sys.exit(f"kernel: no ble at {' or '.join(map(str, candidates))}: run make build, or name one in BLE")


def report(name: str, started: float, error: BaseException | None, verbose: bool):
    if isinstance(error, Skipped):
        print(f"skipped            {name}: {error}", flush=True)
        return
    milliseconds = round((time.monotonic() - started) * 1000)
    print(f"{'ok    ' if error is None else 'FAILED'} {milliseconds:6} ms  {name}", flush=True)
    if error is not None:
        lines = traceback.format_exception(error) if verbose else [f"{type(error).__name__}: {error}"]
        for line in "".join(lines).splitlines():
            print(f"                  {line}", flush=True)


async def check_captures(folder: Path) -> tuple[str, list[str]]:
    checker = Checker()
    for capture in sorted([*folder.glob("*.btsnoop"), *folder.glob("*.pcapng")]):
        checker.submit(capture)
    return await checker.finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--image", type=Path, default=ROOT / ".vm", help="where build-image has put the machine's image"
    )
    parser.add_argument("--filter", default="", help="only tests whose name has this text")
    parser.add_argument("--keep", type=Path, default=ROOT / ".build-kernel", help="where captures and logs are left")
    parser.add_argument("--list", action="store_true", help="list the tests and run none")
    parser.add_argument("-v", "--verbose", action="store_true", help="print where a test failed")
    options = parser.parse_args()
    load_tests()
    chosen = [(name, body) for name, body in TESTS if options.filter.lower() in name.lower()]
    if not chosen:
        sys.exit(f"kernel: no test has {options.filter!r} in its name")
    if options.list:
        for name, _ in chosen:
            print(name)
        return 0
    tool = binary()
    shutil.rmtree(options.keep, ignore_errors=True)
    (options.keep / "captures").mkdir(parents=True)
    os.chmod(options.keep, 0o755)
    started, passed, skipped, failures = time.monotonic(), 0, 0, []

    def done(name, since, error):
        nonlocal passed, skipped
        if isinstance(error, Skipped) and os.environ.get("CI"):
            error = AssertionError(f"{error}, and CI is set")
        report(name, since, error, options.verbose)
        if isinstance(error, Skipped):
            skipped += 1
        elif error is None:
            passed += 1
        else:
            failures.append(name)

    left = list(chosen)
    # An emulated processor sometimes breaks the code that a new kernel changes while it starts.
    starts = 3
    while left:
        since = time.monotonic()
        try:
            with Machine(options.image, options.keep) as machine:
                print(f"       {round((time.monotonic() - since) * 1000):6} ms  the machine has started", flush=True)
                world = World(machine, tool)
                while left and len(machine.free) >= 4:  # a silent shell is lost; a new machine has all shells
                    name, body = left.pop(0)
                    since, error = time.monotonic(), None
                    world.peer = ""
                    try:
                        body(world)
                    except Exception as caught:  # noqa: BLE001  (whatever it is, the next test runs)
                        error = caught
                    done(name, since, error)
        except Exception as error:  # noqa: BLE001
            starts -= 1
            if starts > 0:
                print(f"       the machine has not started, and is started again: {error!r}", flush=True)
                continue
            done("the machine starts", since, error)
            break
    failures += [name for name, _ in left]
    since = time.monotonic()
    state, lines = asyncio.run(check_captures(options.keep / "captures"))
    if state == "skipped":
        print(f"skipped            captures in tshark: {lines[0]}")
    elif state == "passed":
        done(f"captures in tshark: {lines[0]}", since, None)
    else:
        done("captures in tshark", since, AssertionError("\n".join(lines)))
    for name in failures:
        print(f"failed: {name}")
    print(f"in {time.monotonic() - started:.0f} s, captures and logs in {os.path.relpath(options.keep)}")
    print(f"{passed} passed, {len(failures)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
