"""A client of the native API with encryption that costs little: blocking, without a library for the API.

It performs the Noise handshake, decrypts each frame, and decodes only what it is asked for.
"""

import socket
import struct

from aioesphomeapi import api_pb2
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from noise.connection import NoiseConnection

HELLO_REQUEST = 1
SUBSCRIBE_ADVERTISEMENTS_REQUEST = 66
DEVICE_REQUEST = 68
DEVICE_RESPONSE = 69
GET_SERVICES_REQUEST = 70
GET_SERVICES_RESPONSE = 71
GET_SERVICES_DONE = 72
READ_REQUEST = 73
READ_RESPONSE = 74
ERROR_RESPONSE = 82
RAW_ADVERTISEMENTS = 93
PING_REQUEST = 7
PING_RESPONSE = 8


class RawClient:
    def __init__(self, port: int, key: bytes):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.start = 0
        noise = NoiseConnection.from_name(b"Noise_NNpsk0_25519_ChaChaPoly_SHA256")
        noise.set_as_initiator()
        noise.set_psks(key)
        noise.set_prologue(b"NoiseAPIInit\x00\x00")
        noise.start_handshake()
        self._send_frame(b"")
        self._send_frame(b"\x00" + noise.write_message())
        self._frame()
        noise.read_message(bytes(self._frame()[1:]))
        protocol = noise.noise_protocol
        self.encrypting = ChaCha20Poly1305(bytes(protocol.cipher_state_encrypt.k))
        self.decrypting = ChaCha20Poly1305(bytes(protocol.cipher_state_decrypt.k))
        self.sent = self.received = 0
        self.send(HELLO_REQUEST, api_pb2.HelloRequest(client_info="measure"))
        self.next(2)

    def close(self):
        self.socket.close()

    # Frames

    def _send_frame(self, content: bytes):
        self.socket.sendall(b"\x01" + struct.pack(">H", len(content)) + content)

    def _frame(self) -> memoryview:
        while True:
            available = len(self.buffer) - self.start
            if available >= 3:
                length = self.buffer[self.start + 1] << 8 | self.buffer[self.start + 2]
                if available >= 3 + length:
                    content = bytes(self.buffer[self.start + 3 : self.start + 3 + length])
                    self.start += 3 + length
                    return content
            if self.start > 0:
                del self.buffer[: self.start]
                self.start = 0
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the gateway has closed the connection")
            self.buffer += data

    # Messages

    def send(self, kind: int, message=None):
        payload = message.SerializeToString() if message is not None else b""
        plain = struct.pack(">HH", kind, len(payload)) + payload
        nonce = b"\0\0\0\0" + self.sent.to_bytes(8, "little")
        self.sent += 1
        self._send_frame(self.encrypting.encrypt(nonce, plain, None))

    def receive(self) -> tuple[int, bytes]:
        """The next message: its type and its payload. Pings are answered."""
        while True:
            nonce = b"\0\0\0\0" + self.received.to_bytes(8, "little")
            self.received += 1
            plain = self.decrypting.decrypt(nonce, self._frame(), None)
            kind = plain[0] << 8 | plain[1]
            if kind != PING_REQUEST:
                return kind, plain[4:]
            self.send(PING_RESPONSE)

    def next(self, kind: int) -> bytes:
        """The payload of the next message of a type; others are skipped."""
        while True:
            found, payload = self.receive()
            if found == kind:
                return payload
            if found == ERROR_RESPONSE:
                raise RuntimeError(f"the device answers {api_pb2.BluetoothGATTErrorResponse.FromString(payload)}")

    # Requests

    def subscribe(self):
        self.send(SUBSCRIBE_ADVERTISEMENTS_REQUEST, api_pb2.SubscribeBluetoothLEAdvertisementsRequest())

    def advertisements(self) -> int:
        """Waits for a batch, and returns the number of advertisements in it."""
        return len(api_pb2.BluetoothLERawAdvertisementsResponse.FromString(self.next(RAW_ADVERTISEMENTS)).advertisements)

    def connect(self, address: int, is_random: bool):
        self.send(
            DEVICE_REQUEST,
            api_pb2.BluetoothDeviceRequest(
                address=address, request_type=5, has_address_type=True, address_type=int(is_random)
            ),
        )
        response = api_pb2.BluetoothDeviceConnectionResponse.FromString(self.next(DEVICE_RESPONSE))
        if not response.connected:
            raise RuntimeError(f"no connection to {address:012X}: error {response.error}")

    def handles(self, address: int) -> dict[int, int]:
        """The value handles of the characteristics of a device: short UUID, or the 16 bits by which the UUIDs of one
        vendor differ, to handle."""
        self.send(GET_SERVICES_REQUEST, api_pb2.BluetoothGATTGetServicesRequest(address=address))
        handles = {}
        while True:
            kind, payload = self.receive()
            if kind == GET_SERVICES_DONE:
                return handles
            if kind == GET_SERVICES_RESPONSE:
                for service in api_pb2.BluetoothGATTGetServicesResponse.FromString(payload).services:
                    for characteristic in service.characteristics:
                        uuid = characteristic.short_uuid or characteristic.uuid[0] >> 32 & 0xFFFF
                        handles[uuid] = (characteristic.handle, characteristic.properties)

    def read(self, address: int, handle: int) -> bytes:
        self.send(READ_REQUEST, api_pb2.BluetoothGATTReadRequest(address=address, handle=handle))
        return self.next(READ_RESPONSE)
