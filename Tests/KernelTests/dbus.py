"""The part of D-Bus that a GATT application of BlueZ needs: types on the wire, calls, answers, signals."""

import itertools
import socket
import struct

ALIGNMENT = {"y": 1, "b": 4, "n": 2, "q": 2, "i": 4, "u": 4, "x": 8, "t": 8, "d": 8, "s": 4, "o": 4, "g": 1, "a": 4}
ALIGNMENT |= {"(": 8, "{": 8, "v": 1}
FORMATS = {"y": "<B", "b": "<I", "n": "<h", "q": "<H", "i": "<i", "u": "<I", "x": "<q", "t": "<Q", "d": "<d"}
CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
FIELDS = {
    1: "path",
    2: "interface",
    3: "member",
    4: "error",
    5: "reply_to",
    6: "destination",
    7: "sender",
    8: "signature",
}
FIELD_TYPES = {"path": "o", "reply_to": "u", "signature": "g"}


def types(signature: str) -> list[str]:
    """The complete types in a signature."""
    found, start = [], 0
    while start < len(signature):
        end = start
        while signature[end] == "a":
            end += 1
        if signature[end] in "({":
            depth = 1
            while depth:
                end += 1
                depth += (signature[end] in "({") - (signature[end] in ")}")
        found.append(signature[start : end + 1])
        start = end + 1
    return found


def encode(buffer: bytearray, kind: str, value):
    """Appends a value of a type; a variant is given as its type and its value."""
    buffer += bytes(-len(buffer) % ALIGNMENT[kind[0]])
    if kind in FORMATS:
        buffer += struct.pack(FORMATS[kind], value)
    elif kind in "so":
        data = value.encode()
        buffer += struct.pack("<I", len(data)) + data + b"\0"
    elif kind == "g":
        buffer += bytes([len(value)]) + value.encode() + b"\0"
    elif kind == "v":
        encode(buffer, "g", value[0])
        encode(buffer, *value)
    elif kind[0] == "a":
        buffer += bytes(4)
        place = len(buffer) - 4
        buffer += bytes(-len(buffer) % ALIGNMENT[kind[1]])
        start = len(buffer)
        for each in value.items() if kind[1] == "{" else value:
            encode(buffer, kind[1:], each)
        struct.pack_into("<I", buffer, place, len(buffer) - start)
    else:
        for each, member in zip(types(kind[1:-1]), value, strict=True):
            encode(buffer, each, member)


def decode(data: bytes, place: int, kind: str):
    """The value of a type at a position, and the position after it."""
    place += -place % ALIGNMENT[kind[0]]
    if kind in FORMATS:
        size = struct.calcsize(FORMATS[kind])
        return struct.unpack_from(FORMATS[kind], data, place)[0], place + size
    if kind in "so":
        end = place + 4 + struct.unpack_from("<I", data, place)[0]
        return data[place + 4 : end].decode(), end + 1
    if kind == "g":
        end = place + 1 + data[place]
        return data[place + 1 : end].decode(), end + 1
    if kind == "v":
        inner, place = decode(data, place, "g")
        return decode(data, place, inner)
    if kind[0] == "a":
        (length,) = struct.unpack_from("<I", data, place)
        place += 4
        place += -place % ALIGNMENT[kind[1]]
        end, values = place + length, []
        while place < end:
            value, place = decode(data, place, kind[1:])
            values.append(value)
        return (bytes(values) if kind == "ay" else dict(values) if kind[1] == "{" else values), end
    members = []
    for each in types(kind[1:-1]):
        value, place = decode(data, place, each)
        members.append(value)
    return tuple(members), place


class Message:
    def __init__(self, kind: int, serial: int, fields: dict, arguments: list):
        self.kind, self.serial, self.fields, self.arguments = kind, serial, fields, arguments


class Bus:
    """A connection to the system's bus."""

    def __init__(self, path: str = "/run/dbus/system_bus_socket", user: int = 0):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(user).encode().hex().encode() + b"\r\n")
        if not self.socket.recv(1024).startswith(b"OK"):
            raise ConnectionError("the bus does not know us")
        self.socket.sendall(b"BEGIN\r\n")
        self.serials = itertools.count(1)
        self.buffer = b""
        self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, kind: int, fields: dict, signature: str = "", arguments=()) -> int:
        body = bytearray()
        for each, argument in zip(types(signature), arguments, strict=True):
            encode(body, each, argument)
        if signature:
            fields = fields | {"signature": signature}
        serial = next(self.serials)
        header = bytearray(struct.pack("<cBBBII", b"l", kind, 0, 1, len(body), serial))
        numbers = {name: number for number, name in FIELDS.items()}
        encode(
            header, "a(yv)", [(numbers[name], (FIELD_TYPES.get(name, "s"), value)) for name, value in fields.items()]
        )
        header += bytes(-len(header) % 8)
        self.socket.sendall(bytes(header + body))
        return serial

    def call(
        self, destination: str, path: str, interface: str, member: str, signature: str = "", arguments=(), on_call=None
    ):
        """Calls a method and returns its results; `on_call` gets the calls that arrive in the meantime."""
        fields = {"path": path, "interface": interface, "member": member, "destination": destination}
        serial = self.send(CALL, fields, signature, arguments)
        while True:
            for message in self.receive():
                if message.fields.get("reply_to") == serial:
                    if message.kind == ERROR:
                        raise RuntimeError(f"{member}: {message.fields['error']} {message.arguments}")
                    return message.arguments
                if message.kind == CALL and on_call:
                    on_call(message)

    def answer(self, call: Message, signature: str = "", arguments=()):
        self.send(RETURN, {"reply_to": call.serial, "destination": call.fields["sender"]}, signature, arguments)

    def refuse(self, call: Message, error: str):
        self.send(ERROR, {"reply_to": call.serial, "destination": call.fields["sender"], "error": error})

    def receive(self):
        """The messages that have arrived; waits if there are none."""
        messages = list(self.complete())
        while not messages:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("the bus has gone")
            self.buffer += data
            messages = list(self.complete())
        return messages

    def complete(self):
        while len(self.buffer) >= 16:
            body_length, serial, fields_length = struct.unpack_from("<III", self.buffer, 4)
            start = 16 + fields_length
            start += -start % 8
            if len(self.buffer) < start + body_length:
                return
            packet, self.buffer = self.buffer[: start + body_length], self.buffer[start + body_length :]
            fields = {FIELDS.get(number, number): value for number, value in decode(packet, 12, "a(yv)")[0]}
            body, place, arguments = packet[start:], 0, []
            for each in types(fields.get("signature", "")):
                value, place = decode(body, place, each)
                arguments.append(value)
            yield Message(packet[1], serial, fields, arguments)
