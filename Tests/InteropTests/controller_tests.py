"""`ble controller`: its sockets, its options, and clients that are not hosts."""

import asyncio
import contextlib
import dataclasses
import random
import signal
from pathlib import Path
from types import SimpleNamespace

import bumble_peripheral as bumble
from bumble_central import Central
from controllers import PRESETS, connect_when_listening
from harness import BumblePeer, ServedPeer, World, expect, stream_values, test
from meeting import PERIPHERAL, converse, two_hosts

# A part of a name has at most 63 bytes, so no server is asked for this one.
UNKNOWN_HOST = 64 * "a"

GARBAGE = {
    "text": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "zeros": bytes(1000),
    "events": bytes.fromhex("040e0401030c00") * 100,
    "an event after a command": bytes.fromhex("01030c00 040e0401030c00"),
    "what ends in the middle": bytes.fromhex("0101"),
    "a long packet that never ends": bytes.fromhex("024000ffff") + bytes(60_000),
    "commands of every opcode, empty": b"".join(
        bytes([1, opcode & 0xFF, opcode >> 8, 0])
        for group in (1, 3, 4, 5, 8)
        for opcode in range(group << 10, (group << 10) + 128)
    ),
    "commands of every opcode, random": b"".join(
        bytes([1, opcode & 0xFF, opcode >> 8, length]) + random.Random(opcode).randbytes(length)
        for group in (1, 3, 4, 5, 8)
        for opcode in range(group << 10, (group << 10) + 128)
        for length in (1, 7, 25, 255)
    ),
    "data for links that are not there": b"".join(
        bytes([2, handle & 0xFF, handle >> 8 & 0xFF, 8, 0, 4, 0, 4, 0, 1, 2, 3, 4]) for handle in range(0, 0x10000, 97)
    ),
    "isochronous and synchronous data": (bytes.fromhex("0300000401020304") + bytes.fromhex("050000040001020304")) * 50,
}


@contextlib.asynccontextmanager
async def served(world: World, *arguments: str):
    """A separate `ble controller` for the test, on a free port. Returns its adapter for hosts, and the process."""
    listening = ("--listen", "tcp:127.0.0.1:0")
    async with world.tool.start("controller", *listening, *arguments, capture=False, stdin=False) as process:
        event = await process.event("listening")
        yield event["listener"], process
        outcome = await process.interrupt(signal.SIGTERM)
        outcome.succeeded()
        assert not outcome.errors.strip(), outcome.errors


def at(world: World, adapter: str) -> World:
    """The world whose controllers are at another adapter."""
    port = int(adapter.rsplit(":", 1)[1])
    return dataclasses.replace(world, controllers=SimpleNamespace(hci_port=port, preset=PRESETS["OURS"]))


@test("clients of ble controller that send garbage, or vanish in the middle, affect no other client", presets=("OURS",))
async def garbage(world: World):
    async with two_hosts(world.adapter) as (central, peripheral):
        link = await central.connect(PERIPHERAL)
        connection = await peripheral.connections.get()
        talk = asyncio.ensure_future(converse(link, peripheral, 2000))
        for content in GARBAGE.values():
            reader, writer = await asyncio.open_connection("127.0.0.1", world.controllers.hci_port)
            writer.write(content)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
                writer.write_eof()
                # The bytes that arrive until the other end has closed do not matter.
                async with asyncio.timeout(10):
                    while await reader.read(65536):
                        pass
            writer.close()
        flood = [await asyncio.open_connection("127.0.0.1", world.controllers.hci_port) for _ in range(300)]
        for _, writer in flood:
            writer.transport.abort()
        await talk
        assert not link.disconnected.done() and connection.device is not None, "the link is gone"
        await converse(link, peripheral)
    (await world.ble("info")).succeeded()


@test("ble controller reports where it listens and who connects, and leaves no socket behind", presets=())
async def lines(world: World):
    path = str(world.directory / "hci")
    captures = world.directory / "captures"
    async with served(world, "--listen", f"unix:{path}", "--capture", str(captures)) as (adapter, process):
        expect((await process.event("listening"))["listener"], f"unix:{path}", "listener")
        async with bumble.Peripheral(adapter, address=PERIPHERAL) as peripheral:
            first = await process.event("connected", listener=adapter)
            await peripheral.advertise()
            async with Central(f"unix-client:{path}") as central:
                second = await process.event("connected", listener=f"unix:{path}")
                assert first["address"] != second["address"], f"both are {first['address']}"
                expect(str(central.device.public_address).split("/")[0].upper(), second["address"], "public address")
                link = await central.connect(PERIPHERAL)
                await converse(link, peripheral)
            await process.event("disconnected", controller=second["controller"], reason="the host has disconnected")
        await process.event("disconnected", controller=first["controller"])
        _, writer = await connect_when_listening(int(adapter.rsplit(":", 1)[1]))
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        event = await process.event("disconnected")
        assert "0x47" in event["reason"], event
        writer.close()
        again = await world.tool.run("controller", "--listen", f"unix:{path}", capture=False, deadline=10)
        again.failed(path, "another program")
    assert not Path(path).exists(), "the socket is left"
    for number in (1, 2):
        file = captures / f"controller-{number}.btsnoop"
        assert file.stat().st_size > 1000, f"{file.name} is too short"
        kept = world.tool.captures / f"{world.tool.label}-{file.name}"
        file.rename(kept)
        world.tool.recorded(kept)


@test("ble controller replaces a socket whose owner was killed", presets=())
async def stale(world: World):
    path = str(world.directory / "hci")
    for _ in range(2):
        arguments = ("controller", "--listen", f"unix:{path}")
        async with world.tool.start(*arguments, capture=False, stdin=False) as process:
            await process.event("listening")
            (await world.tool.run("info", adapter=f"unix:{path}", deadline=10)).succeeded()
            process.process.kill()
            await process.process.wait()
        assert Path(path).exists(), "nothing was left, and so nothing is tested"


@test("ble controller reports wrong arguments in one line", presets=())
async def wrong_arguments(world: World):
    for arguments, *mentioned in (
        (("--listen", "nowhere"), "unix:PATH", "tcp:HOST:PORT"),
        (("--listen", "tcp:127.0.0.1"), "port"),
        (("--listen", "tcp:127.0.0.1:70000"), "65535"),
        (("--listen", "tcp:192.0.2.1:0"), "192.0.2.1"),
        (("--listen", f"tcp:{UNKNOWN_HOST}:0"), UNKNOWN_HOST),
        (("--listen", "unix:/nonexistent/hci"), "/nonexistent"),
        (("--listen", f"unix:{world.directory}"), str(world.directory)),
        (("--listen", "hci0"), "hci0"),
        (("--listen",), "listen"),
        (("--acl-length", "26"), "acl-length"),
        (("--acl-packets", "0"), "acl-packets"),
        (("--vanish-after", "never"), "never"),
        (("--loss", "2"), "from 0 to 1"),
        (("--garbage", "some"), "some"),
        (("--latency", "5 minutes"), "5 minutes"),
        (("--distance=-1",), "distance"),
        (("--seed", "dice"), "dice"),
        (("--capture", "/nonexistent/captures"), "/nonexistent/captures"),
    ):
        arguments = arguments if "--listen" in arguments else ("--listen", "tcp:127.0.0.1:0", *arguments)
        outcome = await world.tool.run("controller", *arguments, capture=False, machine_readable=False, deadline=10)
        outcome.failed(*mentioned)


@test("values arrive complete and in order over an air that loses, delays and spreads packets", presets=())
async def lossy_air(world: World):
    async with served(world, "--loss", "0.2", "--latency", "2ms", "--jitter", "3ms", "--seed", "1") as (adapter, _):
        async with two_hosts(adapter) as (central, peripheral):
            link = await central.connect(PERIPHERAL)
            expect(await link.table(), await peripheral.table(), "table")
            await converse(link, peripheral)
            await link.disconnect()
        async with ServedPeer(at(world, adapter)) as peer:
            arguments = ("subscribe", peer.address, bumble.NOTIFY, "--count", "200")
            async with world.tool.start(*arguments, adapter=adapter) as process:
                await peer.subscribed()
                values = stream_values(200)
                await peer.send(bumble.NOTIFY, values)
                outcome = (await process.ended(30)).succeeded()
            expect([bytes.fromhex(event["value"]) for event in outcome.events], values, "notifications")


@test("the smallest buffers that a controller may have are sufficient", presets=())
async def small_buffers(world: World):
    async with (
        served(world, "--acl-length", "27", "--acl-packets", "1", "--no-pacing") as (adapter, _),
        two_hosts(adapter) as (central, peripheral),
    ):
        link = await central.connect(PERIPHERAL)
        await converse(link, peripheral, 1000)


@test("links over an air that dies end at their supervision timeouts", presets=())
async def dead_air(world: World):
    async with (
        served(world, "--dead-after", "10s") as (adapter, process),
        two_hosts(adapter) as (central, peripheral),
    ):
        link = await central.connect(PERIPHERAL)
        await peripheral.connections.get()
        await process.event("airDied", deadline=40)
        expect(await link.disconnected, 0x08, "the central's reason")
        expect(await peripheral.disconnections.get(), 0x08, "the peripheral's reason")


@test("controllers that are far apart do not receive each other", presets=())
async def distance(world: World):
    signals = []
    for metres, audible in (("1", True), ("30", True), ("100000", False)):
        async with served(world, "--distance", metres) as (adapter, _):
            async with BumblePeer(at(world, adapter)) as peer:
                if not audible:
                    outcome = (await world.tool.run("scan", "--duration", "0.5", adapter=adapter)).succeeded()
                    assert not outcome.events, f"{len(outcome.events)} events at {metres} m"
                    continue
                async with world.tool.start("scan", "--duration", "20", adapter=adapter) as scan:
                    signals.append((await scan.event("advertisement", address=peer.address))["rssi"])
                    await scan.interrupt()
    assert signals[0] > signals[1], f"signals of {signals[0]} dBm at 1 m and {signals[1]} dBm at 30 m"


@test("ble scan and ble serve continue after hardware errors of their controllers", presets=())
async def hardware_errors(world: World):
    async with (
        served(world, "--hardware-error-after", "3s") as (adapter, process),
        ServedPeer(at(world, adapter)) as peer,
        world.tool.start("scan", "--duplicates", "--duration", "20", adapter=adapter) as scan,
    ):
        await scan.event("advertisement", address=peer.address)
        for _ in range(2):
            await process.event("hardwareError")
        scan.consumed = len(scan.events)
        await scan.event("advertisement", address=peer.address)
        async with asyncio.timeout(10):
            while "resetting" not in scan.errors:
                await asyncio.sleep(0.01)
        await scan.interrupt()


@test("ble ends without a crash, whatever its controller does", presets=(), deadline=120)
async def faulty_controllers(world: World):
    for arguments in (
        ("--garbage", "0.3"), ("--truncation", "0.1"), ("--completion-loss", "0.1"), ("--completion-delay", "20ms"),
        ("--buffer-loss", "0.2"), ("--silent-after", "300ms"), ("--vanish-after", "300ms"),
        ("--garbage", "0.2", "--truncation", "0.2", "--completion-loss", "0.05", "--buffer-loss", "0.05"),
    ):  # fmt: skip
        async with served(world, *arguments, "--seed", "5") as (adapter, _):
            outcomes = await asyncio.gather(
                *(
                    world.tool.run(*command, adapter=adapter, capture=False, timeout=1, deadline=60)
                    for command in (("info",), ("scan", "--duration", "0.5"), ("explore", "F0:DE:AD:00:00:01"))
                )
            )
            for outcome in outcomes:
                assert outcome.status >= 0, f"{outcome.command} on {arguments}: signal {-outcome.status}"
                assert "crashed" not in outcome.errors, outcome.errors[:200]


@test("ble controller vanishes on request", presets=())
async def vanishing(world: World):
    async with served(world, "--vanish-after", "300ms") as (adapter, process):
        reader, writer = await connect_when_listening(int(adapter.rsplit(":", 1)[1]))
        event = await process.event("connected")
        expect(await reader.read(), b"", "what is left to read")
        await process.event("vanished", controller=event["controller"])
        writer.close()
