"""The profile that `ble serve` serves in the tests. It is similar to the Bumble peripheral's, with every handle given.
"""

import bumble_peripheral as bumble

NAME = "Swift"
ADDRESS = "F1:23:45:67:89:AB"
BOUNDED, READ_ONLY, WRITE_ONLY = (bumble.vendor(n) for n in range(0x51, 0x54))

READ, WRITE = ["read"], ["write"]
BOTH = READ + WRITE


def profile(name: str = NAME, address: str = ADDRESS) -> dict:
    """A profile for `ble serve`."""
    characteristic = _characteristic
    return {
        "name": name,
        "appearance": 0x0180,
        "address": address,
        "advertise": {
            "services": ["180F", "FFF1"],
            "manufacturerData": {"FFFF": bumble.MANUFACTURER_DATA.hex()},
            "connectable": True,
            "interval": 20,
        },
        "services": [
            {
                "uuid": bumble.SECONDARY_SHORT,
                "primary": False,
                "handle": 0x0100,
                "characteristics": [characteristic("FFE2", 0x0101, READ, READ, b"short")],
            },
            {
                "uuid": bumble.SECONDARY_LONG,
                "primary": False,
                "handle": 0x0110,
                "characteristics": [characteristic(bumble.vendor(0x44), 0x0111, READ, READ, b"long")],
            },
            {
                "uuid": "180F",
                "handle": 0x0120,
                "characteristics": [characteristic(bumble.BATTERY_LEVEL, 0x0121, ["read", "notify"], READ, b"\x64")],
            },
            {
                "uuid": bumble.VALUES,
                "handle": 0x0200,
                "characteristics": [
                    characteristic(
                        bumble.LONG,
                        0x0201,
                        READ,
                        READ,
                        bumble.LONG_VALUE,
                        [
                            {"uuid": "2901", "handle": 0x0203, "value": {"text": "Straße über 512 Oktette"}},
                            {"uuid": "2904", "handle": 0x0204, "value": "19000027010000"},
                            {"uuid": bumble.vendor(0x18), "handle": 0x0206, "value": "00ff", "permissions": BOTH},
                        ],
                    ),
                    characteristic(bumble.EMPTY, 0x0208, BOTH, BOTH, b""),
                    characteristic(bumble.SHORT, 0x020A, READ, READ, bytes(range(22))),
                    characteristic(bumble.ODD, 0x0210, READ, READ, bytes(range(253))),
                    characteristic(bumble.STORE, 0x0220, BOTH, BOTH, b"stored"),
                    characteristic(
                        bumble.RELIABLE,
                        0x0230,
                        ["read", "write", "extendedProperties"],
                        BOTH,
                        b"unreliable",
                        [{"uuid": "2900", "handle": 0x0232, "value": "0100", "permissions": READ}],
                    ),
                    characteristic(bumble.SINK, 0x0240, ["writeWithoutResponse", "write"], WRITE, b""),
                    characteristic(BOUNDED, 0x0250, BOTH, BOTH, b"", maximum=20),
                    characteristic(READ_ONLY, 0x0260, READ, READ, b"look, do not touch"),
                    characteristic(WRITE_ONLY, 0x0264, WRITE, WRITE, b"unseen"),
                ],
            },
            {
                "uuid": bumble.GUARDED,
                "handle": 0x0300,
                "characteristics": [
                    characteristic(
                        bumble.ENCRYPTED,
                        0x0301,
                        BOTH,
                        ["read", "readEncrypted", "write", "writeEncrypted"],
                        b"secret",
                        [
                            {
                                "uuid": "2901",
                                "handle": 0x0303,
                                "value": {"text": "x"},
                                "permissions": ["read", "readEncrypted"],
                            }
                        ],
                    ),
                    characteristic(
                        bumble.AUTHENTICATED,
                        0x0310,
                        BOTH,
                        ["read", "readAuthenticated", "write", "writeAuthenticated"],
                        b"secret",
                    ),
                    characteristic(bumble.AUTHORIZED, 0x0320, READ, ["read", "readAuthorized"], b"secret"),
                ],
            },
            {
                "uuid": bumble.STREAM,
                "handle": 0x0400,
                "characteristics": [
                    characteristic(bumble.NOTIFY, 0x0401, ["notify"], [], b""),
                    characteristic(bumble.INDICATE, 0x0410, ["indicate"], [], b""),
                    characteristic(bumble.BOTH, 0x0420, ["read", "notify", "indicate"], READ, b"both"),
                ],
            },
            {"uuid": bumble.TWIN_SERVICE, "handle": 0x0500, "characteristics": _twins(0x0501, 1)},
            {"uuid": bumble.TWIN_SERVICE, "handle": 0x0510, "characteristics": _twins(0x0511, 2)},
            {
                "uuid": bumble.INCLUDING,
                "handle": 0x0600,
                "includes": [0, 2, 1],
                "characteristics": [characteristic(bumble.vendor(0x45), 0x0610, READ, READ, b"including")],
            },
            {"uuid": bumble.EMPTY_SERVICE, "handle": 0xFFF0},
        ],
    }


def _characteristic(uuid, handle, properties, permissions, value: bytes, descriptors=(), maximum=None) -> dict:
    made = {
        "uuid": uuid,
        "handle": handle,
        "properties": list(properties),
        "permissions": list(permissions),
        "value": value.hex(),
        "descriptors": list(descriptors),
    }
    if maximum is not None:
        made["maxLength"] = maximum
    return made


def _twins(handle: int, number: int) -> list[dict]:
    return [
        _characteristic(bumble.TWIN, handle, READ, READ, f"{number}a".encode()),
        _characteristic(bumble.TWIN, handle + 4, READ, READ, f"{number}b".encode()),
    ]


def value_handle(uuid: str) -> int:
    """The handle of the value of the first characteristic with the UUID."""
    return next(
        each["handle"] + 1
        for service in profile()["services"]
        for each in service.get("characteristics", [])
        if each["uuid"] == uuid
    )


def configuration_handle(uuid: str) -> int:
    """The handle of its Client Characteristic Configuration descriptor."""
    return value_handle(uuid) + 1
