#!/usr/bin/env python3
"""A GATT application for BlueZ, registered and advertised on an adapter: gatt_application.py hci1

Prints events as lines of JSON. Reads lines on standard input: `notify UUID HEX`, `quit`.
"""

import json
import select
import sys

from dbus import CALL, Bus

SERVICE, LONG, VALUE, NOTIFIED, INDICATED, COMMAND, SECRET, GUARDED = (
    f"7e57000{n}-5eed-4000-8000-c0ffee000000" for n in range(8)
)
DESCRIPTION = "00002901-0000-1000-8000-00805f9b34fb"
NAME = "BlueZ peer"
BLUEZ, ROOT = "org.bluez", "/test"
SERVICES = {
    "0000180f-0000-1000-8000-00805f9b34fb": {"00002a19-0000-1000-8000-00805f9b34fb": (["read", "notify"], b"\x55")},
    SERVICE: {
        LONG: (["read"], bytes(range(256)) * 2),
        VALUE: (["read", "write"], b"first"),
        NOTIFIED: (["notify"], b""),
        INDICATED: (["indicate"], b""),
        COMMAND: (["write-without-response"], b""),
        SECRET: (["encrypt-read"], b"secret"),
        GUARDED: (["encrypt-authenticated-read"], b"guarded"),
    },
}


def tell(**event):
    print(json.dumps(event), flush=True)


class Application:
    def __init__(self, adapter: str):
        self.bus = Bus()
        self.adapter = f"/org/bluez/{adapter}"
        self.objects, self.paths, self.values = {}, {}, {}
        for index, (service, characteristics) in enumerate(SERVICES.items()):
            path = f"{ROOT}/service{index}"
            self.objects[path] = {"org.bluez.GattService1": {"UUID": ("s", service), "Primary": ("b", True)}}
            for number, (uuid, (flags, value)) in enumerate(characteristics.items()):
                place = f"{path}/characteristic{number}"
                self.objects[place] = {
                    "org.bluez.GattCharacteristic1": {
                        "UUID": ("s", uuid),
                        "Service": ("o", path),
                        "Flags": ("as", flags),
                    }
                }
                self.paths[uuid], self.values[place] = place, value
        described = f"{self.paths[VALUE]}/descriptor0"
        self.objects[described] = {
            "org.bluez.GattDescriptor1": {
                "UUID": ("s", DESCRIPTION),
                "Characteristic": ("o", self.paths[VALUE]),
                "Flags": ("as", ["read"]),
            }
        }
        self.values[described] = b"A place to write to"
        self.advertisement = {
            "Type": ("s", "peripheral"),
            "ServiceUUIDs": ("as", ["0000180f-0000-1000-8000-00805f9b34fb"]),
            "LocalName": ("s", NAME),
        }

    def register(self):
        for manager, path in (("GattManager1", ROOT), ("LEAdvertisingManager1", f"{ROOT}/advertisement")):
            member = "RegisterApplication" if manager == "GattManager1" else "RegisterAdvertisement"
            self.bus.call(BLUEZ, self.adapter, f"org.bluez.{manager}", member, "oa{sv}", [path, {}], self.serve)

    def uuid(self, path: str) -> str:
        (properties,) = self.objects[path].values()
        return properties["UUID"][1]

    def serve(self, call):
        """Answers a call of BlueZ."""
        path, member = call.fields["path"], call.fields["member"]
        if member == "GetManagedObjects":
            self.bus.answer(call, "a{oa{sa{sv}}}", [self.objects])
        elif member == "GetAll":
            properties = (
                self.advertisement if path.endswith("/advertisement") else self.objects[path].get(call.arguments[0], {})
            )
            self.bus.answer(call, "a{sv}", [properties])
        elif member == "ReadValue":
            offset = call.arguments[0].get("offset", 0)
            tell(event="read", uuid=self.uuid(path), offset=offset)
            self.bus.answer(call, "ay", [self.values[path][offset:]])
        elif member == "WriteValue":
            value, options = call.arguments
            offset = options.get("offset", 0)
            self.values[path] = self.values[path][:offset] + value
            self.bus.answer(call)
            tell(event="write", uuid=self.uuid(path), offset=offset, value=value.hex(), kind=options.get("type"))
        elif member in ("StartNotify", "StopNotify", "Release", "Confirm"):
            tell(
                event={"StartNotify": "subscribed", "StopNotify": "unsubscribed"}.get(member, member),
                uuid=self.uuid(path),
            )
            self.bus.answer(call)
        else:
            self.bus.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod")

    def notify(self, uuid: str, value: bytes):
        """Makes BlueZ send a changed value to the subscribers."""
        self.bus.send(
            4,
            {"path": self.paths[uuid], "interface": "org.freedesktop.DBus.Properties", "member": "PropertiesChanged"},
            "sa{sv}as",
            ["org.bluez.GattCharacteristic1", {"Value": ("ay", value)}, []],
        )

    def run(self):
        self.register()
        tell(event="ready")
        commands = open(0, "rb", buffering=0)
        rest = b""
        while True:
            for source in select.select([self.bus, commands], [], [])[0]:
                if source is self.bus:
                    for message in self.bus.receive():
                        if message.kind == CALL:
                            self.serve(message)
                    continue
                data = commands.read(65536)
                *lines, rest = (rest + data).split(b"\n")
                for words in filter(None, (line.decode().split() for line in lines)):
                    if words[0] == "quit":
                        return
                    self.notify(words[1], bytes.fromhex(words[2]))
                if not data:
                    return


if __name__ == "__main__":
    Application(sys.argv[1]).run()
