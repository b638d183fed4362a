#!/usr/bin/env python3
"""The counting app of Benchmarks/Descriptor/CountingApp on bleak and BlueZ, with the same commands and answers.

counting_app.py ADAPTER scan|connect

`subscribe acquired` uses BlueZ's AcquireNotify, a socket for the values, instead of bleak's default StartNotify.
"""

import asyncio
import json
import sys

from bleak import BleakClient, BleakScanner

PEER = "4E:55:4C:00:00:02"
READ, WRITTEN, NOTIFIED = (f"0000fff{n}-0000-1000-8000-00805f9b34fb" for n in (1, 2, 3))
VALUE = b"\x55" * 20


def tell(**fields):
    print(json.dumps(fields), flush=True)


class App:
    def __init__(self, adapter: str):
        self.bluez = {"adapter": adapter}
        self.received = 0

    def receive(self, _source, _content):
        self.received += 1

    def take(self):
        tell(received=self.received)
        self.received = 0

    async def scan(self, lines):
        # bleak asks BlueZ for duplicates by default.
        async with BleakScanner(detection_callback=self.receive, bluez=self.bluez):
            tell(ready=True)
            while await lines.readline():
                self.take()

    async def connect(self, lines):
        device = await BleakScanner.find_device_by_address(PEER, timeout=30, bluez=self.bluez)
        async with BleakClient(device, bluez=self.bluez) as peer:
            characteristics = peer.services
            read, written, notified = (characteristics.get_characteristic(uuid) for uuid in (READ, WRITTEN, NOTIFIED))
            tell(ready=True)
            while line := await lines.readline():
                verb, *arguments = line.decode().split()
                count = int(arguments[0]) if arguments and arguments[0].isdigit() else 0
                if verb == "reads":
                    for _ in range(count):
                        await peer.read_gatt_char(read)
                elif verb == "writes":
                    for _ in range(count):
                        await peer.write_gatt_char(written, VALUE, response=True)
                elif verb == "commands":
                    for _ in range(count):
                        await peer.write_gatt_char(written, VALUE, response=False)
                elif verb == "subscribe":
                    options = {"use_start_notify": "acquired" not in arguments}
                    await peer.start_notify(notified, self.receive, bluez=options)
                elif verb == "unsubscribe":
                    await peer.stop_notify(notified)
                else:
                    self.take()
                    continue
                tell(operations=count)


async def main():
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    app = App(sys.argv[1])
    await (app.scan(lines) if sys.argv[2] == "scan" else app.connect(lines))


asyncio.run(main())
