"""The controller is killed during operations, and restarted."""

import bumble_peripheral as bumble
from harness import ServedPeer, World, expect, test

PRESETS = ("DEFAULT", "LEGACY", "OURS", "NEWER")


@test("a scan continues when its controller was killed and restarted", presets=PRESETS)
async def scan(world: World):
    async with world.start("scan", "--duplicates", "--duration", "120") as process:
        for number in range(2):
            name = f"Before {number}" if number == 0 else f"After {number}"
            async with world.peripheral(name=name) as peripheral:
                await peripheral.advertise()
                await process.event("advertisement", name=name, deadline=30)
                await world.controllers.kill()
            await world.controllers.start()
        async with world.peripheral(name="Finally") as peripheral:
            await peripheral.advertise()
            await process.event("advertisement", name="Finally", deadline=30)
        await process.interrupt()


@test("a connection ends with an error when its controller is killed", presets=PRESETS)
async def connection(world: World):
    async with world.peripheral() as peripheral:
        await peripheral.advertise()
        async with world.start("subscribe", peripheral.address, bumble.NOTIFY) as process:
            await peripheral.subscriptions.get()
            await peripheral.notify_all(bumble.NOTIFY, [b"before"])
            await process.event("notification")
            await world.controllers.kill()
            outcome = await process.ended(20)
        assert outcome.status > 0, f"status {outcome.status}"
        assert outcome.errors.strip(), "no word why"
    await world.controllers.start()


@test("ble serve advertises and serves again when its controller was killed and restarted", presets=PRESETS)
async def server(world: World):
    async with ServedPeer(world) as peer:
        for _ in range(3):
            async with world.central() as central:
                link = await central.connect(peer.address, deadline=30)
                await peer.process.event("connected")
                expect(await link.read(peer.value_handle(bumble.LONG)), bumble.LONG_VALUE, "a value")
                await world.controllers.kill()
                await peer.process.event("disconnected", deadline=20)
            await world.controllers.start()


@test("a controller that is missing at the start is an error at once", presets=PRESETS)
async def absent(world: World):
    await world.controllers.kill()
    (await world.ble("scan", "--duration", "1", deadline=15)).failed()
    (await world.ble("serve", world.file("profile.json", {"name": "X"}), deadline=15)).failed()
    await world.controllers.start()
    (await world.ble("scan", "--duration", "0.2")).succeeded()
