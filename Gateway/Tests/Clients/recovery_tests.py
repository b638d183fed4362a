"""Gateways and devices of this stack only, and failures seen by aioesphomeapi."""

import asyncio
import contextlib
import json

import bumble_peripheral as bumble
import profiles
from api_tests import Advertisements
from connection_tests import Link
from harness import World, check_running, environment, expect, test, until


@contextlib.asynccontextmanager
async def served(world: World):
    """`ble serve` as the device. The test fails if it ends by itself."""
    profile = world.directory / "profile.json"
    profile.write_text(json.dumps(profiles.profile()))
    path = world.logs / f"{world.label}-serve.log"
    log = open(path, "wb")
    process = await asyncio.create_subprocess_exec(
        world.ble, "serve", str(profile), "--json", "--adapter", world.adapter, "--state-dir", str(world.directory / "serve"),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, env=environment(),
    )  # fmt: skip
    try:
        events = Events(process)
        await events.event("ready")
        yield events
    finally:
        log.close()
        try:
            check_running(process, "ble serve", path)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class Events:
    """The events of `ble serve`, and its commands."""

    def __init__(self, process):
        self.process = process

    async def event(self, name: str) -> dict:
        """Waits for the next event with this name."""
        async with asyncio.timeout(20):
            while line := await self.process.stdout.readline():
                event = json.loads(line)
                if event["event"] == name:
                    return event
        raise AssertionError(f"ble serve ended before {name}")

    def send(self, text: str):
        self.process.stdin.write(text.encode() + b"\n")


@test("ble serve as the device: values and notifications")
async def served_device(world: World):
    async with served(world) as device, world.gateway() as gateway, gateway.connected() as client:
        async with Link(client, profiles.ADDRESS) as link:
            await link.discover()
            expect(await link.read(bumble.LONG), bumble.LONG_VALUE, "the long value")
            value = bytes(range(256)) * 2
            await link.write(bumble.STORE, value)
            expect(await link.read(bumble.STORE), value, "the written value")
            for uuid, verb in ((bumble.NOTIFY, "notify"), (bumble.INDICATE, "indicate")):
                values = await link.subscribe(uuid)
                await device.event("subscribed")
                sent = [index.to_bytes(4, "big") for index in range(50)]
                for each in sent:
                    device.send(f"{verb} {uuid} {each.hex()}")
                expect([await values.get() for _ in sent], sent, f"the values of {verb}")


@test("ble serve as the device: it is paired, and the bond survives a restart of the gateway", deadline=90)
async def served_pairing(world: World):
    async with served(world), world.gateway() as gateway:
        for attempt in range(2):
            async with gateway.connected() as client, Link(client, profiles.ADDRESS) as link:
                await link.discover()
                if attempt == 0:
                    result = await client.bluetooth_device_pair(link.address)
                    expect((result.paired, result.error), (True, 0), "the pairing")
                expect(await link.read(bumble.ENCRYPTED), b"secret", "the value that needs encryption")
            await gateway.stop()
            await gateway.start()


@test("a restart of the gateway keeps its identity and its key")
async def restart_identity(world: World):
    async with world.gateway() as gateway:
        found = []
        for _ in range(2):
            async with gateway.connected() as client:
                found.append((await client.device_info()).mac_address)
            await gateway.stop()
            await gateway.start()
        expect(len(set(found)), 1, "the number of addresses")


@test("a restart of the controller ends connections, and the scan continues by itself", deadline=120)
async def controller_restart(world: World):
    async with world.gateway() as gateway, gateway.connected() as client:
        async with world.peripheral(name="Peer") as peer:
            await peer.advertise()
            link = Link(client, peer.address)
            await link.__aenter__()
            found = Advertisements(client)
            await world.controllers.kill()
            await until(lambda: not link.is_connected, "the end of the connection", 60)
        await world.controllers.start()
        async with world.peripheral(name="Peer") as peer:
            await peer.advertise()
            count = len(found.received)
            await until(lambda: len(found.received) > count, "advertisements after the restart", 60)
            async with Link(client, peer.address) as link:
                await link.discover()
                expect(await link.read(bumble.STORE), b"stored", "a value after the restart")


@test("two adapters: the connections are shared between them", deadline=120)
async def two_adapters(world: World):
    async with (
        world.gateway("--adapter", world.adapter) as gateway,
        world.peripheral(name="One") as one,
        world.peripheral(name="Two", address="F0:01:02:03:04:06") as two,
        gateway.connected() as client,
    ):
        await one.advertise()
        await two.advertise()

        def are_open(status: dict) -> bool:
            return [adapter["isOpen"] for adapter in status["adapters"]] == [True, True]

        await gateway.status_with(are_open, "both adapters are open", 60)
        # No client subscribes to advertisements, so no adapter scans: the one with fewer connections is chosen.
        async with Link(client, one.address) as first, Link(client, two.address) as second:
            for link in (first, second):
                await link.discover()
                expect(await link.read(bumble.STORE), b"stored", "the value")
            adapters = (await gateway.status())["adapters"]
            expect([adapter["connectionCount"] for adapter in adapters], [1, 1], "the connections through the adapters")
            async with asyncio.timeout(10):
                centrals = [str((await each.connections.get()).peer_address) for each in (one, two)]
            assert centrals[0] != centrals[1], f"both devices see the adapter {centrals[0]}"
