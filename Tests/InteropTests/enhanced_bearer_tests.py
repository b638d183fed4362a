"""Enhanced ATT bearers between `ble` and Bumble, in both roles."""

import asyncio

from bumble import gatt_client, l2cap
from bumble.core import ProtocolError

import bumble_peripheral as bumble
import profiles
from bumble_central import Link
from harness import World, expect, test
from pairing_tests import CENTRAL, JUST_WORKS, PERIPHERAL, SECRET, Pairing, bumble_lock, our_lock, start

PRESETS = ("DEFAULT", "OURS")
MODEL = JUST_WORKS[True]


async def open_bearers(link: Link, count: int) -> list[gatt_client.Client]:
    found = await gatt_client.Client.connect_eatt(link.connection, count=count)
    return [found] if count == 1 else found


async def refused(link: Link, what: str):
    try:
        await open_bearers(link, 1)
    except (ProtocolError, l2cap.L2capError):
        return
    raise AssertionError(f"a bearer was opened {what}")


@test("Bumble opens enhanced bearers to ble serve, and reads and writes on all of them at once", presets=PRESETS)
async def bumble_opens_bearers(world: World):
    pairing = Pairing(world, MODEL, bonds=True)
    async with our_lock(pairing, "--enhanced-bearers", "3") as process, world.central(address=CENTRAL) as central:
        pairing.configure(central.device)
        link = await central.connect(profiles.ADDRESS)
        await refused(link, "on a link that is not encrypted")
        await link.connection.pair()
        await process.event("paired", deadline=20)
        clients = await open_bearers(link, 3)
        await refused(link, "beyond the limit")
        secret, store = (profiles.value_handle(uuid) for uuid in (bumble.ENCRYPTED, bumble.STORE))
        values = await asyncio.gather(*(client.read_value(secret) for client in clients for _ in range(20)))
        expect(set(values), {SECRET}, "the values")
        for index, client in enumerate(clients):
            await client.write_value(store, bytes([index] * 20), with_response=True)
            others = await asyncio.gather(*(other.read_value(store) for other in clients))
            expect(others, [bytes([index] * 20)] * len(clients), "the stored value on each bearer")
        await clients[0].bearer.disconnect()
        expect(await clients[1].read_value(secret), SECRET, "the value on another bearer")
        expect(await link.read(secret), SECRET, "the value on the fixed channel")
        await link.disconnect()
        await process.event("disconnected")
        process.send("quit")
        (await process.ended()).succeeded()


@test("ble opens enhanced bearers to a Bumble peripheral, and finds the same values with them", presets=PRESETS)
async def ble_opens_bearers(world: World):
    pairing = Pairing(world, MODEL, bonds=True)
    async with bumble_lock(pairing, settings={"eatt_enabled": True}):
        async with start(pairing, "pair", *pairing.options) as process:
            await process.event("paired", deadline=20)
            (await process.ended(20)).succeeded()
        arguments = ("explore", PERIPHERAL, "--address-type", "random", "--state-dir", pairing.state)
        plain = (await world.ble(*arguments)).succeeded().object
        assert "enhancedBearerMTUs" not in plain, "there are enhanced bearers without the option"
        found = (await world.ble(*arguments, "--enhanced-bearers", "4")).succeeded().object
        expect(found.pop("enhancedBearerMTUs"), [517] * 4, "MTUs of the enhanced bearers")
        # The client has reported its features.
        for table in (plain, found):
            for service in table["services"]:
                for characteristic in service["characteristics"]:
                    if characteristic["uuid"] == "2B29":
                        for member in ("value", "text", "fields"):
                            characteristic.pop(member, None)
        expect(found, plain, "the database")
