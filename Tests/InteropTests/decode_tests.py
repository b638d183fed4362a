"""`ble decode --json` and tshark read the same captures: the fields of each packet that both report must be equal."""

import asyncio
import gzip
import json
import os
import shutil
import struct
from pathlib import Path

import tshark_fields
from harness import Skipped, World, test
from tshark_comparison import Comparison, tshark

ROOT = Path(__file__).resolve().parents[2]
# Captures of other projects, if they are beside the clone.
PUBLIC = Path(os.environ.get("BLE_CAPTURES", ROOT.parent / "shared" / "captures"))


def require_tshark():
    if shutil.which("tshark") is None:
        raise Skipped("tshark is not installed")


async def compare(world: World, capture: Path) -> Comparison:
    outcome = await world.tool.run("decode", str(capture), "--json", capture=False, machine_readable=False, deadline=60)
    packets = [json.loads(line) for line in outcome.succeeded().output.splitlines()]
    return Comparison(packets, await tshark(capture))


def all_captures() -> list[Path]:
    public = sorted(each for each in PUBLIC.glob("*") if each.suffix in (".log", ".btsnoop", ".pcap", ".pcapng"))
    return public + sorted((ROOT / "Fixtures").glob("*.btsnoop"))


@test("decode reports of every capture what tshark reports", presets=(), deadline=300)
async def agreement(world: World):
    require_tshark()
    failures = []
    for capture in all_captures():
        comparison = await compare(world, capture)
        problems = comparison.problems
        if not comparison.compared:
            problems.append("nothing to compare")
        failures += [f"{capture.name}: {problem}" for problem in problems[:10]]
        if len(problems) > 10:
            failures.append(f"{capture.name}: and {len(problems) - 10} more")
    assert not failures, "\n".join(failures)


@test("decode and tshark agree on a capture with packets of a vendor's H4 type", presets=())
async def vendor_types(world: World):
    packets = (
        (0, "01030c00"), (1, "040e0401030c00"), (1, "30aabbcc"), (0, "30"), (1, "0413050104f00100"),
    )  # fmt: skip
    content = b"btsnoop\0" + struct.pack(">II", 1, 1002)
    for number, (direction, packet) in enumerate(packets):
        data = bytes.fromhex(packet)
        time = 0x00E0_3AB4_4A67_6000 + 1000 * number
        content += struct.pack(">IIIIq", len(data), len(data), direction, 0, time) + data
    capture = world.directory / "vendor.btsnoop"
    capture.write_bytes(content)
    outcome = await world.tool.run("decode", str(capture), "--json", capture=False, machine_readable=False, deadline=60)
    lines = [json.loads(line) for line in outcome.succeeded().output.splitlines()]
    table = tshark_fields.table()
    types = [table["hci_h4.type"].ours(line) for line in lines]
    assert types == [[1], [4], [0x30], [0x30], [4]], types
    require_tshark()
    comparison = await compare(world, capture)
    assert comparison.compared and not comparison.problems, "\n".join(comparison.problems)


@test("decode reports what kind of file a file is", presets=())
async def no_captures(world: World):
    good = (ROOT / "Fixtures" / "explore-legacy.btsnoop").read_bytes()
    for content, *mentioned in (
        (b"", "empty"),
        (b"#!/bin/sh\necho this is a script and not a capture\n", "text"),
        (gzip.compress(good), "gzip"),
        (b"\x00\x01\x02\x03" + bytes(40), "not a capture"),
        (good[:-3], "damaged", "byte"),
        (good[:1000] + b"\xff" * 24 + good[1024:], "damaged", "byte"),
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


@test("decode reads the packets before damage, and standard input", presets=())
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
