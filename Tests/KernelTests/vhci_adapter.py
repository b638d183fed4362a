#!/usr/bin/env python3
"""Makes an adapter of the kernel out of a controller behind a UNIX socket: vhci_adapter.py PATH

The adapter's name is the only line of output. The adapter exists until this process or the controller ends. It has the
next free number and the controller's address, which is how a USB adapter that is plugged in behaves.
"""

import os
import selectors
import socket
import sys

COMMAND, ACL, EVENT, ISO, VENDOR = 1, 2, 4, 5, 0xFF


def packet_length(data: bytes) -> int | None:
    """The length of the H4 packet at the beginning of `data`; None if too few bytes are known."""
    if not data:
        return None
    if data[0] == EVENT:
        return 3 + data[2] if len(data) >= 3 else None
    if data[0] in (ACL, ISO):
        mask = 0x3FFF if data[0] == ISO else 0xFFFF
        return 5 + (int.from_bytes(data[3:5], "little") & mask) if len(data) >= 5 else None
    sys.exit(f"vhci: the controller has sent a packet of the unknown type {data[0]}")


def main(path: str):
    controller = socket.socket(socket.AF_UNIX)
    controller.connect(path)
    device = os.open("/dev/vhci", os.O_RDWR)
    os.write(device, bytes([VENDOR, 0]))  # create a primary controller
    selector = selectors.DefaultSelector()
    selector.register(controller, selectors.EVENT_READ)
    selector.register(device, selectors.EVENT_READ)
    received = b""
    while True:
        for key, _ in selector.select():
            if key.fileobj is controller:
                data = controller.recv(65536)
                if not data:
                    return
                received += data
                while (length := packet_length(received)) is not None and len(received) >= length:
                    os.write(device, received[:length])
                    received = received[length:]
                continue
            packet = os.read(device, 4096)
            if packet[0] == VENDOR:
                print(f"hci{int.from_bytes(packet[2:4], 'little')}", flush=True)
            else:
                controller.sendall(packet)


if __name__ == "__main__":
    main(sys.argv[1])
