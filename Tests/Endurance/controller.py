"""A controller at a UNIX socket (H4) with peripherals, and with the faults of a bad controller.

Each peripheral is a GATT server with a value to read and write (FFF1) and one that notifies every second (FFF2).
"""

import asyncio
import random
import struct



class Peripheral:
    """The state of one link: the peripheral at its other end."""

    def __init__(self, handle, index):
        self.handle, self.index = handle, index
        self.is_subscribed = False
        self.received = b""


class Controller:
    """One bring-up of the controller after the other: a closed socket is followed by the next connection."""

    def __init__(self, count, seed):
        self.count = count
        self.random = random.Random(seed)
        self.writer = None
        self.faults = {}
        self.is_silent = self.refuses = self.keeps_buffers = False
        self.reset()

    def reset(self):
        self.links = {}
        self.accept_list = []
        self.wanted = None
        self.scans = False

    # The socket

    async def serve(self, reader, writer):
        if self.writer:
            self.writer.close()
        self.writer, self.is_silent = writer, False
        self.reset()
        try:
            while True:
                kind = (await reader.readexactly(1))[0]
                if kind == 1:
                    opcode, length = struct.unpack("<HB", await reader.readexactly(3))
                    self.command(opcode, await reader.readexactly(length))
                elif kind == 2:
                    handle, length = struct.unpack("<HH", await reader.readexactly(4))
                    self.data(handle, await reader.readexactly(length))
                else:
                    raise SystemExit(f"unknown H4 packet {kind}")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # The host or this program has closed the socket.
        finally:
            if self.writer is writer:
                self.writer = None
                self.reset()
            writer.close()

    def send(self, packet):
        if self.writer:
            self.writer.write(packet)

    def event(self, code, parameters):
        self.send(bytes([4, code, len(parameters)]) + parameters)

    def complete(self, opcode, values=b"", status=0):
        self.event(0x0E, struct.pack("<BHB", 1, opcode, status) + values)

    def status(self, opcode, status=0):
        self.event(0x0F, struct.pack("<BBH", status, 1, opcode))

    # Commands

    def command(self, opcode, parameters):
        if self.is_silent:
            return
        if self.refuses and opcode in (0x200B, 0x200C, 0x200D, 0x2011):
            if opcode == 0x200D:
                return self.status(opcode, 0x0C)
            return self.complete(opcode, status=0x0C)
        values = {
            0x1001: bytes.fromhex("0D00000DFFFF0000"),
            0x1002: self.supported_commands(),
            0x1003: bytes.fromhex("0000000060000000"),
            0x1009: bytes.fromhex("01004C554E4C"),
            0x1005: struct.pack("<HBHH", 251, 0, 32, 0),
            0x2002: struct.pack("<HB", 251, 32),
            0x2003: bytes(8),
            0x2007: bytes(1),
            0x200F: bytes([64]),
            0x2018: self.random.randbytes(8),
            0x201C: bytes([0xFF] * 8),
        }
        if opcode == 0x0C03:
            self.reset()
            self.complete(opcode)
        elif opcode == 0x0406:
            self.status(opcode)
            self.end_link(struct.unpack_from("<H", parameters)[0], 0x16)
        elif opcode == 0x200C:
            self.scans = parameters[0] == 1
            self.complete(opcode)
        elif opcode == 0x200D:
            self.status(opcode)
            policy, address = parameters[4], parameters[6:12]
            self.wanted = list(self.accept_list) if policy == 1 else [address]
            asyncio.get_running_loop().call_later(self.random.uniform(0.02, 0.3), self.connect)
        elif opcode == 0x200E:
            self.complete(opcode, status=0 if self.wanted is not None else 0x0C)
            if self.wanted is not None:
                self.wanted = None
                self.event(0x3E, bytes([1, 2]) + bytes(17))
        elif opcode == 0x2010:
            self.accept_list = []
            self.complete(opcode)
        elif opcode == 0x2011:
            self.accept_list.append(parameters[1:7])
            self.complete(opcode)
        elif opcode == 0x2012:
            self.accept_list = [address for address in self.accept_list if address != parameters[1:7]]
            self.complete(opcode)
        elif opcode == 0x2016:
            self.status(opcode)
            self.event(0x3E, bytes([4, 0]) + parameters[:2] + bytes(8))
        elif opcode == 0x2013:
            self.status(opcode)
            self.event(0x3E, bytes([3, 0]) + parameters[:2] + struct.pack("<HHH", 6, 0, 300))
        elif opcode == 0x041D:
            self.status(opcode)
            self.event(0x0C, bytes([0]) + parameters[:2] + bytes.fromhex("0DFFFF0000"))
        else:
            self.complete(opcode, values.get(opcode, b""))

    @staticmethod
    def supported_commands():
        commands = bytearray(64)
        for index, value in {0: 0x20, 5: 0xC0, 14: 0xA8, 15: 0x02, 25: 0xF7, 26: 0xFF, 27: 0xA7, 28: 0x0B}.items():
            commands[index] = value
        return bytes(commands)

    # Links

    def connect(self):
        linked = {link.index for link in self.links.values()}
        indices = [index for index in range(self.count) if self.address(index) in (self.wanted or [])]
        indices = [index for index in indices if index not in linked]
        if not indices or self.is_silent:
            return
        self.wanted = None
        index = self.random.choice(indices)
        handle = next(handle for handle in range(0x40, 0xEFF) if handle not in self.links)
        self.links[handle] = Peripheral(handle, index)
        fields = struct.pack("<BBHBB", 1, 0, handle, 0, 0) + self.address(index)
        self.event(0x3E, fields + struct.pack("<HHHB", 24, 0, 300, 0))

    @staticmethod
    def address(index):
        return bytes([index, 0x10, 0, 0x4C, 0x55, 0x4E])

    def end_link(self, handle, reason):
        if self.links.pop(handle, None):
            self.event(0x05, struct.pack("<BHB", 0, handle, reason))

    def data(self, handle, fragment):
        link = self.links.get(handle & 0xFFF)
        if not link:
            return
        if not self.keeps_buffers:
            self.event(0x13, struct.pack("<BHH", 1, link.handle, 1))
        link.received = fragment if handle >> 12 & 3 != 1 else link.received + fragment
        if len(link.received) < 4:
            return
        length, channel = struct.unpack_from("<HH", link.received)
        if len(link.received) >= 4 + length:
            frame, link.received = link.received[4 : 4 + length], b""
            if channel == 4:
                self.attribute(link, frame)

    # The peripherals' servers. Attributes: 1 service FFF0; 2, 3 FFF1; 4, 5 FFF2; 6 the configuration of FFF2.

    def answer(self, link, pdu):
        self.send(struct.pack("<BHHHH", 2, link.handle | 0x2000, len(pdu) + 4, len(pdu), 4) + pdu)

    def attribute(self, link, pdu):
        opcode = pdu[0]
        start, end = struct.unpack_from("<HH", pdu, 1) if len(pdu) >= 5 else (0, 0)
        uuid = struct.unpack_from("<H", pdu, 5)[0] if len(pdu) == 7 else 0
        if opcode == 0x02:
            self.answer(link, struct.pack("<BH", 3, 247))
        elif opcode == 0x10 and uuid == 0x2800 and start <= 1:
            self.answer(link, struct.pack("<BBHHH", 0x11, 6, 1, 6, 0xFFF0))
        elif opcode == 0x08 and uuid == 0x2803 and start <= 4:
            declarations = [(2, 0x0E, 3, 0xFFF1), (4, 0x10, 5, 0xFFF2)]
            wanted = [entry for entry in declarations if start <= entry[0] <= end]
            self.answer(link, bytes([0x09, 7]) + b"".join(struct.pack("<HBHH", *entry) for entry in wanted))
        elif opcode == 0x04 and start <= 6 <= end:
            self.answer(link, struct.pack("<BBHH", 5, 1, 6, 0x2902))
        elif opcode == 0x0A:
            self.answer(link, bytes([0x0B]) + bytes(20))
        elif opcode == 0x12:
            if start == 6:
                link.is_subscribed = pdu[3] == 1
            self.answer(link, bytes([0x13]))
        elif not opcode & 0x40 and opcode != 0x1E:
            self.answer(link, struct.pack("<BBHB", 1, opcode, start, 0x0A if opcode in (4, 8, 0x10) else 6))

    # Time

    async def notify(self):
        """Sends a notification a second on each link, and advertising reports while the host scans."""
        while True:
            await asyncio.sleep(1)
            if self.is_silent:
                continue
            for link in self.links.values():
                if link.is_subscribed:
                    self.answer(link, struct.pack("<BH", 0x1B, 5) + self.random.randbytes(16))
            for _ in range(20 if self.scans else 0):
                # Nonconnectable advertising from random addresses.
                address = self.random.randbytes(5) + b"\xC0"
                self.event(0x3E, bytes([2, 1, 3, 1]) + address + bytes([3, 2, 1, 6, 0xC4]))

    async def fail(self, pause):
        """Causes one fault after the other, with `pause` seconds between two on average."""
        while True:
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * pause)
            kinds = ["link", "link", "links", "link", "socket", "silence", "reset", "refusal", "buffers"]
            await self.befall(self.random.choice(kinds))

    async def befall(self, kind):
        self.faults[kind] = self.faults.get(kind, 0) + 1
        handles = sorted(self.links)
        if kind == "socket" and self.writer:
            self.writer.close()
        elif kind == "silence":
            # Until the host opens the socket again.
            self.is_silent = True
        elif kind == "reset":
            self.reset()
            self.event(0x10, bytes([0x42]))
        elif kind == "refusal":
            self.refuses = True
            for handle in handles[::3]:
                self.end_link(handle, 0x08)
            await asyncio.sleep(5)
            self.refuses = False
        elif kind == "buffers":
            # Packets are not completed until their links end.
            self.keeps_buffers = True
            await asyncio.sleep(3)
            self.keeps_buffers = False
            for handle in handles:
                self.end_link(handle, 0x08)
        elif handles:
            for handle in handles if kind == "links" else [self.random.choice(handles)]:
                self.end_link(handle, self.random.choice([0x08, 0x13]))
