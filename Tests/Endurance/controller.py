"""A controller at a UNIX socket (H4) with peripherals, and with the faults of a bad controller.

Each peripheral is a GATT server with a value to read and write (FFF1) and one that notifies every second (FFF2).
"""

import asyncio
import random
import struct
import time

# Opcodes (Vol 4, Part E, 7)
DISCONNECT = 0x0406
READ_REMOTE_VERSION_INFORMATION = 0x041D
RESET = 0x0C03
READ_LOCAL_VERSION_INFORMATION = 0x1001
READ_LOCAL_SUPPORTED_COMMANDS = 0x1002
READ_LOCAL_SUPPORTED_FEATURES = 0x1003
READ_BUFFER_SIZE = 0x1005
READ_BD_ADDR = 0x1009
LE_READ_BUFFER_SIZE = 0x2002
LE_READ_LOCAL_SUPPORTED_FEATURES = 0x2003
LE_READ_ADVERTISING_TX_POWER = 0x2007
LE_SET_SCAN_PARAMETERS = 0x200B
LE_SET_SCAN_ENABLE = 0x200C
LE_CREATE_CONNECTION = 0x200D
LE_CREATE_CONNECTION_CANCEL = 0x200E
LE_READ_FILTER_ACCEPT_LIST_SIZE = 0x200F
LE_CLEAR_FILTER_ACCEPT_LIST = 0x2010
LE_ADD_DEVICE_TO_FILTER_ACCEPT_LIST = 0x2011
LE_REMOVE_DEVICE_FROM_FILTER_ACCEPT_LIST = 0x2012
LE_CONNECTION_UPDATE = 0x2013
LE_READ_REMOTE_FEATURES = 0x2016
LE_RAND = 0x2018
LE_READ_SUPPORTED_STATES = 0x201C

# The commands that the controller refuses during that fault.
REFUSED = (LE_SET_SCAN_PARAMETERS, LE_SET_SCAN_ENABLE, LE_CREATE_CONNECTION, LE_ADD_DEVICE_TO_FILTER_ACCEPT_LIST)


class Peripheral:
    """The state of one link: the peripheral at its other end."""

    def __init__(self, handle, index):
        self.handle, self.index = handle, index
        self.is_subscribed = False
        self.received = b""


class Controller:
    """One bring-up of the controller after the other: a closed socket is followed by the next connection."""

    def __init__(self, count, seed, unreachable=0):
        """`unreachable`: how long a peripheral does not connect after its link has ended, in seconds."""
        self.count = count
        self.unreachable = unreachable
        # When a peripheral connects again, by its number.
        self.reachable_at = {}
        self.links = {}
        self.random = random.Random(seed)
        self.writer = None
        self.faults = {}
        self.is_silent = self.refuses = self.keeps_buffers = False
        self.reset()

    def reset(self):
        for link in self.links.values():
            self.delay_next_link(link)
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
        if self.refuses and opcode in REFUSED:
            if opcode == LE_CREATE_CONNECTION:
                return self.status(opcode, 0x0C)
            return self.complete(opcode, status=0x0C)
        values = {
            READ_LOCAL_VERSION_INFORMATION: bytes.fromhex("0D00000DFFFF0000"),
            READ_LOCAL_SUPPORTED_COMMANDS: self.supported_commands(),
            READ_LOCAL_SUPPORTED_FEATURES: bytes.fromhex("0000000060000000"),
            READ_BD_ADDR: bytes.fromhex("01004C554E4C"),
            READ_BUFFER_SIZE: struct.pack("<HBHH", 251, 0, 32, 0),
            LE_READ_BUFFER_SIZE: struct.pack("<HB", 251, 32),
            LE_READ_LOCAL_SUPPORTED_FEATURES: bytes(8),
            LE_READ_ADVERTISING_TX_POWER: bytes(1),
            LE_READ_FILTER_ACCEPT_LIST_SIZE: bytes([64]),
            LE_RAND: self.random.randbytes(8),
            LE_READ_SUPPORTED_STATES: bytes([0xFF] * 8),
        }
        if opcode == RESET:
            self.reset()
            self.complete(opcode)
        elif opcode == DISCONNECT:
            self.status(opcode)
            self.end_link(struct.unpack_from("<H", parameters)[0], 0x16)
        elif opcode == LE_SET_SCAN_ENABLE:
            self.scans = parameters[0] == 1
            self.complete(opcode)
        elif opcode == LE_CREATE_CONNECTION:
            self.status(opcode)
            policy, address = parameters[4], parameters[6:12]
            self.wanted = list(self.accept_list) if policy == 1 else [address]
            asyncio.get_running_loop().call_later(self.random.uniform(0.02, 0.3), self.connect)
        elif opcode == LE_CREATE_CONNECTION_CANCEL:
            self.complete(opcode, status=0 if self.wanted is not None else 0x0C)
            if self.wanted is not None:
                self.wanted = None
                self.event(0x3E, bytes([1, 2]) + bytes(17))
        elif opcode == LE_CLEAR_FILTER_ACCEPT_LIST:
            self.accept_list = []
            self.complete(opcode)
        elif opcode == LE_ADD_DEVICE_TO_FILTER_ACCEPT_LIST:
            self.accept_list.append(parameters[1:7])
            self.complete(opcode)
        elif opcode == LE_REMOVE_DEVICE_FROM_FILTER_ACCEPT_LIST:
            self.accept_list = [address for address in self.accept_list if address != parameters[1:7]]
            self.complete(opcode)
        elif opcode == LE_READ_REMOTE_FEATURES:
            self.status(opcode)
            self.event(0x3E, bytes([4, 0]) + parameters[:2] + bytes(8))
        elif opcode == LE_CONNECTION_UPDATE:
            self.status(opcode)
            self.event(0x3E, bytes([3, 0]) + parameters[:2] + struct.pack("<HHH", 6, 0, 300))
        elif opcode == READ_REMOTE_VERSION_INFORMATION:
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

    @property
    def is_complete(self):
        """Whether there is a link to each peripheral, with its subscription."""
        return sum(link.is_subscribed for link in self.links.values()) == self.count

    def delay_next_link(self, link):
        self.reachable_at[link.index] = time.monotonic() + self.unreachable

    def connect(self):
        linked = {link.index for link in self.links.values()}
        wanted = [index for index in range(self.count) if self.address(index) in (self.wanted or [])]
        wanted = [index for index in wanted if index not in linked]
        if not wanted or self.is_silent:
            return
        indices = [index for index in wanted if self.reachable_at.get(index, 0) <= time.monotonic()]
        if not indices:
            asyncio.get_running_loop().call_later(0.5, self.connect)
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
        link = self.links.pop(handle, None)
        if link:
            self.delay_next_link(link)
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
            await self.inject_fault(self.random.choice(kinds))

    async def inject_fault(self, kind):
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
