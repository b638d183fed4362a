"""Advertisements of sensors, for measurements: each one has other readings than the one before of its device."""

import struct

from cryptography.hazmat.primitives.ciphers.aead import AESCCM

DEVICES = 100
KEY = bytes(range(16))


def mac(device: int) -> bytes:
    """The address, the most significant byte first."""
    return bytes([0xC0, 0, 0, 0, device >> 8, device & 0xFF])


def service(uuid: int, data: bytes) -> bytes:
    return bytes([len(data) + 3, 0x16]) + uuid.to_bytes(2, "little") + data


def manufacturer(company: int, data: bytes) -> bytes:
    return bytes([len(data) + 3, 0xFF]) + company.to_bytes(2, "little") + data


def sealed(nonce: bytes, text: bytes, additional: bytes = b"") -> tuple[bytes, bytes]:
    """The encrypted text and its tag of four bytes."""
    result = AESCCM(KEY, tag_length=4).encrypt(nonce, text, additional or None)
    return result[:-4], result[-4:]


def bthome(address: bytes, count: int) -> bytes:
    return service(0xFCD2, bytes([0x40, 0x00, count & 0xFF]) + measured(count))


def measured(count: int) -> bytes:
    """A temperature and a humidity as in BTHome."""
    return struct.pack("<BhBH", 0x02, 1000 + count % 2000, 0x03, 3000 + count % 5000)


def bthome_encrypted(address: bytes, count: int) -> bytes:
    counter = count.to_bytes(4, "little")
    text, tag = sealed(address + b"\xd2\xfc\x41" + counter, measured(count))
    return service(0xFCD2, b"\x41" + text + counter + tag)


def ruuvi3(address: bytes, count: int) -> bytes:
    return manufacturer(0x0499, struct.pack(">BBBBHhhhH", 3, 80, 20, count % 100, 51_325, count % 2000, 4, 1024, 2800))


def ruuvi5(address: bytes, count: int) -> bytes:
    values = struct.pack(">BhHHhhhHBH", 5, 4000 + count % 999, 20_000, 50_000, 4, -4, 1036, 0xAC36, 66, count & 0xFFFF)
    return manufacturer(0x0499, values + address)


def ruuvi6(address: bytes, count: int) -> bytes:
    values = struct.pack(">BhHHHHBBBBBB", 6, 4000 + count % 999, 20_000, 50_000, 112, 600, 50, 20, 10, 0, count & 0xFF, 0)
    return manufacturer(0x0499, values + address[-3:])


def mibeacon4(address: bytes, count: int) -> bytes:
    body = struct.pack("<HBhH", 0x100D, 4, 100 + count % 200, 300 + count % 500)
    return service(0xFE95, b"\x50\x40\x5b\x04" + bytes([count & 0xFF]) + address[::-1] + body)


def mibeacon5(address: bytes, count: int) -> bytes:
    head = b"\x58\x50\x5b\x05" + bytes([count & 0xFF])
    extended = (count >> 8).to_bytes(3, "little")
    body = struct.pack("<HBh", 0x1004, 2, 100 + count % 200)
    text, tag = sealed(address[::-1] + head[2:] + extended, body, b"\x11")
    return service(0xFE95, head + address[::-1] + text + extended + tag)


def atc1441(address: bytes, count: int) -> bytes:
    return service(0x181A, address + struct.pack(">hBBHB", 100 + count % 200, 40, 80, 2900, count & 0xFF))


def pvvx(address: bytes, count: int) -> bytes:
    return service(0x181A, address[::-1] + struct.pack("<hHHBBB", 1000 + count % 999, 4000, 2900, 80, count & 0xFF, 0))


def ibeacon(address: bytes, count: int) -> bytes:
    return manufacturer(0x004C, b"\x02\x15" + KEY + struct.pack(">HHb", 1, count & 0xFFFF, -59))


def altbeacon(address: bytes, count: int) -> bytes:
    return manufacturer(0x0118, b"\xbe\xac" + KEY + struct.pack(">Ib", count, -59) + b"\0")


def eddystone(address: bytes, count: int) -> bytes:
    return service(0xFEAA, struct.pack(">BBHhII", 0x20, 0, 2900, 5000 + count % 900, count, count))


def govee(address: bytes, count: int) -> bytes:
    packed = (200 + count % 99) * 1000 + 400
    return manufacturer(0xEC88, b"\0" + packed.to_bytes(3, "big") + bytes([80, 0]))


def switchbot(address: bytes, count: int) -> bytes:
    return service(0xFD3D, bytes([0x54, 0, 80, count % 10, 0x80 | (20 + count % 30), 40]))


FORMATS = {
    "BTHome": bthome,
    "BTHome, encrypted": bthome_encrypted,
    "Ruuvi 3": ruuvi3,
    "Ruuvi 5": ruuvi5,
    "Ruuvi 6": ruuvi6,
    "MiBeacon 4": mibeacon4,
    "MiBeacon 5, encrypted": mibeacon5,
    "ATC (atc1441)": atc1441,
    "ATC (pvvx)": pvvx,
    "iBeacon": ibeacon,
    "AltBeacon": altbeacon,
    "Eddystone TLM": eddystone,
    "Govee": govee,
    "SwitchBot": switchbot,
}


def lines(name: str, number: int) -> list[str]:
    """Advertisements of DEVICES devices in turn, for the null controller: address and data in hexadecimal digits."""
    make = FORMATS[name]
    addresses = [mac(device) for device in range(DEVICES)]
    result = []
    for index in range(number):
        address = addresses[index % DEVICES]
        result.append(f"{address[::-1].hex()} {(bytes([2, 1, 6]) + make(address, 1 + index // DEVICES)).hex()}")
    return result
