"""A Bumble central and a Bumble peripheral, and their exchanges."""

import contextlib

import bumble_peripheral as bumble
from bumble_central import Central, Link
from harness import bulk, expect, stream_values

PERIPHERAL, CENTRAL = "F0:00:00:00:00:01", "F0:00:00:00:00:02"


@contextlib.asynccontextmanager
async def two_hosts(adapter: str, **settings):
    """A central and an advertising peripheral, each with settings of Bumble's device configuration."""
    async with (
        bumble.Peripheral(adapter, address=PERIPHERAL, settings={"irk": bytes(range(16)), **settings}) as peripheral,
        Central(adapter, address=CENTRAL, settings={"irk": bytes(range(16, 32)), **settings}) as central,
    ):
        await peripheral.advertise()
        yield central, peripheral


async def converse(link: Link, peripheral: bumble.Peripheral, count: int = 200):
    """Exchanges values of every length, in both directions, in order."""
    handles = {uuid: each.handle for uuid, each in peripheral.characteristics.items()}
    expect(await link.read(handles[bumble.LONG]), bumble.LONG_VALUE, "512 bytes read")
    for value in (b"", b"\x00", bytes(range(256)) * 2):
        await link.write(handles[bumble.STORE], value)
        expect(peripheral.value(bumble.STORE), value, f"{len(value)} bytes written")
    values = stream_values(count)
    async with link.subscription(handles[bumble.NOTIFY], handles[bumble.NOTIFY] + 1) as queue:
        await peripheral.notify_all(bumble.NOTIFY, values)
        expect([await queue.get() for _ in values], values, "notifications")
    writes = bulk(10 * count)
    peripheral.sink.writes.clear()
    peripheral.sink.count = 0
    for value in writes:
        await link.write_command(handles[bumble.SINK], value)
    await peripheral.sink.wait_for(sum(map(len, writes)))
    expect(peripheral.sink.writes, writes, "writes without response")
