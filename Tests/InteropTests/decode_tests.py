"""`ble decode --json` and tshark read the same captures: what both say of a packet must be the same."""

import asyncio
import collections
import gzip
import json
import os
import shutil
from pathlib import Path

from harness import World, test

ROOT = Path(__file__).resolve().parents[2]
# Captures that others have recorded, where they are beside the clone.
PUBLIC = Path(os.environ.get("BLE_CAPTURES", ROOT.parent / "shared" / "captures"))

# What tshark calls a field, and how it is found in a line of `ble decode --json`.
FIELDS = {
    "bthci_cmd.opcode": lambda packet: [packet["command"]["opcode"]] if "command" in packet else [],
    "bthci_evt.code": lambda packet: [packet["event"]["code"]] if "code" in packet.get("event", {}) else [],
    "bthci_evt.le_meta_subevent": lambda packet: [packet["event"]["subevent"]]
    if "subevent" in packet.get("event", {})
    else [],
    "bthci_evt.opcode": lambda packet: values(packet.get("event"), "commandOpcode"),
    "bthci_evt.status": lambda packet: values(packet.get("event"), "status"),
    "bthci_evt.connection_handle": lambda packet: values(packet.get("event"), "connectionHandle"),
    "bthci_cmd.connection_handle": lambda packet: values(packet.get("command"), "connectionHandle"),
    "bthci_evt.reason": lambda packet: values(packet.get("event"), "reason"),
    "bthci_evt.rssi": lambda packet: values(packet.get("event"), "rssi"),
    "bthci_evt.bd_addr": lambda packet: addresses(packet.get("event")),
    "bthci_cmd.bd_addr": lambda packet: addresses(packet.get("command")),
    "bthci_acl.chandle": lambda packet: values(packet.get("acl"), "handle"),
    "bthci_acl.pb_flag": lambda packet: values(packet.get("acl"), "boundary"),
    "bthci_acl.length": lambda packet: values(packet.get("acl"), "length"),
    "btcommon.eir_ad.entry.type": lambda packet: [
        number
        for layer in ("command", "event")
        for name in ("data", "advertisingData", "scanResponseData", "extendedInquiryResponse")
        for structures in every(packet.get(layer), name)
        if isinstance(structures, list)
        for number in values(structures, "type")
    ],
    "btl2cap.cid": lambda packet: values(head(packet, "l2cap"), "cid"),
    "btl2cap.length": lambda packet: values(head(packet, "l2cap"), "length"),
    "btl2cap.cmd_code": lambda packet: values(packet.get("l2cap", {}).get("signalling"), "code"),
    "btatt.opcode": lambda packet: values(head(packet, "att"), "opcode"),
    "btatt.handle": lambda packet: [
        number
        for place, name in (("att", "handle"), ("att", "valueHandle"), ("attributes", "startingHandle"))
        for number in values(packet.get("att", {}).get(place) if place != "att" else packet.get("att"), name)
    ],
    "btatt.starting_handle": lambda packet: values(packet.get("att"), "startingHandle"),
    "btatt.ending_handle": lambda packet: values(packet.get("att"), "endingHandle"),
    "btatt.error_code": lambda packet: values(packet.get("att"), "errorCode"),
    "btatt.value": lambda packet: values(packet.get("att"), "value"),
    "btsmp.opcode": lambda packet: values(packet.get("smp"), "code"),
}

# Of these tshark gives some and we all, as a rule: what it gives must be among ours.
SUBSETS = {
    "bthci_evt.bd_addr", "bthci_cmd.bd_addr", "btatt.handle", "btatt.value", "bthci_evt.connection_handle",
    "bthci_evt.status", "bthci_evt.reason",
}  # fmt: skip

# What must be there where tshark has it.
NEEDED = {
    "bthci_cmd.opcode", "bthci_evt.code", "bthci_evt.le_meta_subevent", "bthci_acl.chandle", "bthci_acl.length",
    "btl2cap.cid", "btl2cap.length", "btatt.opcode", "btsmp.opcode", "btcommon.eir_ad.entry.type",
}  # fmt: skip

# Where tshark 4.0 is not to be followed: the field, when, and why.
LIMITS = (
    (
        "btl2cap.cmd_code",
        lambda packet, theirs, ours: packet["acl"]["handle"] == 0x0EDC and bool(packet["malformed"]),
        "tshark goes on behind commands that are too short, in the log of a Qualcomm controller, which is no L2CAP",
    ),
    (
        "btatt.handle",
        lambda packet, theirs, ours: packet["att"]["opcode"] in (0x0B, 0x0D, 0x13) and "answers" in packet,
        "tshark takes a response for the answer to a request on another link",
    ),
    (
        "btatt.handle",
        lambda packet, theirs, ours: theirs[: len(ours)] == ours and len(theirs) > len(ours),
        "tshark reads octets of a value as a handle, by the profile that it takes the UUID to be of",
    ),
    (
        "btatt.value",
        lambda packet, theirs, ours: len(ours) == 1 and all(value in ours[0] for value in theirs),
        "tshark gives the part of a value that its profile's fields leave over",
    ),
    (
        "bthci_evt.status",
        lambda packet, theirs, ours: packet["event"].get("code") == 0xFF,
        "tshark knows some vendors' events",
    ),
    (
        "bthci_evt.rssi",
        lambda packet, theirs, ours: packet["event"].get("code") == 0xFF,
        "tshark knows some vendors' events",
    ),
)


def every(value, name: str) -> list:
    """All that stands under a name, however deep."""
    if isinstance(value, dict):
        return ([value[name]] if name in value else []) + [
            each for key in value if key != name for each in every(value[key], name)
        ]
    return [each for element in value for each in every(element, name)] if isinstance(value, list) else []


def values(value, name: str) -> list:
    return [each for each in every(value, name) if not isinstance(each, (dict, list))]


def head(packet: dict, layer: str) -> dict:
    """A layer without what lies in its lists."""
    return {key: value for key, value in packet.get(layer, {}).items() if not isinstance(value, (dict, list))}


def addresses(value) -> list:
    if isinstance(value, dict):
        return [each for member in value.values() for each in addresses(member)]
    if isinstance(value, list):
        return [each for element in value for each in addresses(element)]
    return [value.lower()] if isinstance(value, str) and len(value) == 17 and value.count(":") == 5 else []


def normalized(field: str, text: str):
    """tshark's text as our JSON has it."""
    if field.endswith("bd_addr"):
        return text.lower()
    if field == "btatt.value":
        return text.lower().replace(":", "")
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 0)


async def tshark(capture: Path) -> list[tuple[str, dict]]:
    """For each packet the time in microseconds and the fields that tshark has."""
    arguments = [argument for field in ("frame.time_epoch", *FIELDS) for argument in ("-e", field)]
    process = await asyncio.create_subprocess_exec(
        "tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode(errors="replace")
    packets = []
    for line in output.decode(errors="replace").splitlines():
        time, *cells = line.split("\t")
        seconds, _, fraction = time.partition(".")
        fields = {
            field: [normalized(field, each) for each in cell.split(";")] for field, cell in zip(FIELDS, cells) if cell
        }
        packets.append((int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0") or 0), fields))
    return packets


def disagreements(packet: dict, time: int, theirs: dict) -> list[tuple[str, str]]:
    """Where both do not say the same: the limit that explains it, or nothing, and what is different."""
    found = []
    if packet["microseconds"] != time:
        found.append(("", f"time {packet['microseconds']} instead of {time}"))
    for field, expected in theirs.items():
        ours = FIELDS[field](packet)
        if not ours and field not in NEEDED:
            continue
        if field in SUBSETS:
            agrees = not collections.Counter(expected) - collections.Counter(ours) or set(expected) <= set(ours)
        else:
            agrees = ours == expected
        if agrees:
            continue
        reason = next(
            (why for name, applies, why in LIMITS if name == field and applies(packet, expected, ours)), ""
        )
        found.append((reason, f"{field} {ours} instead of {expected}"))
    return found


async def compare(world: World, capture: Path) -> tuple[int, collections.Counter, list[str]]:
    """How many fields were compared, how often a limit of tshark's applied, and what is different."""
    outcome = await world.tool.run("decode", str(capture), "--json", capture=False, machine_readable=False, deadline=60)
    ours = [json.loads(line) for line in outcome.succeeded().output.splitlines()]
    theirs = await tshark(capture)
    problems = [] if len(ours) == len(theirs) else [f"{len(ours)} packets instead of {len(theirs)}"]
    limits: collections.Counter = collections.Counter()
    compared = 0
    for packet, (time, fields) in zip(ours, theirs):
        compared += len(fields)
        for reason, difference in disagreements(packet, time, fields):
            if reason:
                limits[reason] += 1
            else:
                problems.append(f"packet {packet['index']}: {difference}")
    return compared, limits, problems


def all_captures() -> list[Path]:
    public = sorted(each for each in PUBLIC.glob("*") if each.suffix in (".log", ".btsnoop", ".pcap", ".pcapng"))
    return public + sorted((ROOT / "Fixtures").glob("*.btsnoop"))


@test("decode says of every capture what tshark says", presets=(), deadline=300)
async def agreement(world: World):
    if shutil.which("tshark") is None:
        assert not os.environ.get("CI"), "tshark is not installed"
        return
    failures = []
    for capture in all_captures():
        compared, limits, problems = await compare(world, capture)
        explained = "".join(f"; {count} times {reason}" for reason, count in limits.items())
        if world.directory and os.environ.get("BLE_VERBOSE"):
            print(f"{capture.name}: {compared} fields, {len(problems)} different{explained}")
        if not compared:
            problems.append("nothing to compare")
        failures += [f"{capture.name}: {problem}" for problem in problems[:10]]
        if len(problems) > 10:
            failures.append(f"{capture.name}: and {len(problems) - 10} more")
    assert not failures, "\n".join(failures)


@test("decode says what a file is not", presets=())
async def no_captures(world: World):
    good = (ROOT / "Fixtures" / "explore-legacy.btsnoop").read_bytes()
    for content, *mentioned in (
        (b"", "empty"),
        (b"#!/bin/sh\necho this is a script and not a capture\n", "text"),
        (gzip.compress(good), "gzip"),
        (b"\x00\x01\x02\x03" + bytes(40), "not a capture"),
        (good[:-3], "damaged", "octet"),
        (good[:1000] + b"\xff" * 24 + good[1024:], "damaged", "octet"),
    ):
        path = world.directory / "file"
        path.write_bytes(content)
        outcome = await world.tool.run("decode", str(path), capture=False, machine_readable=False, deadline=20)
        outcome.failed(*mentioned)
    outcome = await world.tool.run("decode", "/nonexistent", capture=False, machine_readable=False, deadline=10)
    outcome.failed("/nonexistent")
    for arguments in (("--filter", "layer=tcp"), ("--filter", "x"), ("--color", "red")):
        outcome = await world.tool.run(
            "decode", "-", *arguments, capture=False, machine_readable=False, deadline=10
        )  # fmt: skip
        outcome.failed(arguments[1])


@test("decode reads what is before the damage, and standard input", presets=())
async def damage(world: World):
    good = (ROOT / "Fixtures" / "explore-legacy.btsnoop").read_bytes()
    path = world.directory / "cut"
    path.write_bytes(good[:-3])
    cut = await world.tool.run("decode", str(path), "--json", capture=False, machine_readable=False, deadline=20)
    whole = await world.tool.run(
        "decode", str(ROOT / "Fixtures" / "explore-legacy.btsnoop"), "--json", capture=False, machine_readable=False
    )
    lines = whole.succeeded().output.splitlines()
    assert cut.output.splitlines() == lines[:-1], f"{len(cut.output.splitlines())} of {len(lines)} lines"
    process = await asyncio.create_subprocess_exec(
        str(world.tool.binary), "decode", "-", "--json",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(good), 20)
    assert process.returncode == 0 and output.decode().splitlines() == lines
