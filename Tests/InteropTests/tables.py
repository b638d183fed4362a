"""A GATT database in the form of `ble explore --json`, from several sources, and the comparison of two of them."""

BASE = "-0000-1000-8000-00805F9B34FB"

PROPERTIES = {
    0x01: "broadcast",
    0x02: "read",
    0x04: "writeWithoutResponse",
    0x08: "write",
    0x10: "notify",
    0x20: "indicate",
    0x40: "authenticatedSignedWrites",
    0x80: "extendedProperties",
}

ERRORS = {
    0x01: "invalidHandle",
    0x02: "readNotPermitted",
    0x03: "writeNotPermitted",
    0x04: "invalidPDU",
    0x05: "insufficientAuthentication",
    0x06: "requestNotSupported",
    0x07: "invalidOffset",
    0x08: "insufficientAuthorization",
    0x09: "prepareQueueFull",
    0x0A: "attributeNotFound",
    0x0B: "attributeNotLong",
    0x0C: "encryptionKeySizeTooShort",
    0x0D: "invalidAttributeValueLength",
    0x0E: "unlikelyError",
    0x0F: "insufficientEncryption",
    0x10: "unsupportedGroupType",
    0x11: "insufficientResources",
    0x12: "databaseOutOfSync",
    0x13: "valueNotAllowed",
}


def error_name(code: int) -> str:
    """An ATT error as one word."""
    if 0x80 <= code <= 0x9F:
        return f"applicationError0x{code:02X}"
    return ERRORS.get(code, f"error0x{code:02X}")


def long_uuid(text: str) -> str:
    """Any notation of a UUID as 8-4-4-4-12, in capitals."""
    digits = text.upper().removeprefix("UUID-16:").removeprefix("UUID-32:")
    if len(digits) in (4, 8):
        return digits.rjust(8, "0") + BASE
    return digits


def property_names(bits: int) -> list[str]:
    """The properties of a characteristic, in the order of their bits."""
    return [name for bit, name in PROPERTIES.items() if bits & bit]


def normalized(services: list[dict]) -> list[dict]:
    """The services with one notation for UUIDs and values, in the order of their handles."""

    def reading(entry: dict) -> dict:
        if "error" in entry:
            return {"error": entry["error"]}
        return {"value": entry["value"].lower()} if "value" in entry else {}

    return sorted(
        (
            {
                "uuid": long_uuid(service["uuid"]),
                "primary": service.get("primary", True),
                "handle": service["handle"],
                "endHandle": service["endHandle"],
                "includes": list(service.get("includes", [])),
                "characteristics": [
                    {
                        "uuid": long_uuid(each["uuid"]),
                        "handle": each["handle"],
                        "valueHandle": each["valueHandle"],
                        "properties": [name for name in PROPERTIES.values() if name in each["properties"]],
                        "descriptors": [
                            {"uuid": long_uuid(descriptor["uuid"]), "handle": descriptor["handle"]}
                            | reading(descriptor)
                            for descriptor in each["descriptors"]
                        ],
                    }
                    | reading(each)
                    for each in service["characteristics"]
                ],
            }
            for service in services
        ),
        key=lambda service: service["handle"],
    )


def differences(found, expected, place: str = "services") -> list[str]:
    """The differences between the found and the expected value."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lines = [f"{place}.{key}: missing, expected {expected[key]!r}" for key in expected if key not in found]
        lines += [f"{place}.{key}: {found[key]!r} was not expected" for key in found if key not in expected]
        for key in expected:
            if key in found:
                lines += differences(found[key], expected[key], f"{place}.{key}")
        return lines
    if isinstance(expected, list) and isinstance(found, list):
        lines = []
        if len(found) != len(expected):
            lines.append(
                f"{place}: {len(found)} instead of {len(expected)}: {brief(found)} instead of {brief(expected)}"
            )
        for index, (left, right) in enumerate(zip(found, expected)):
            lines += differences(left, right, f"{place}[{index}]")
        return lines
    return [] if found == expected else [f"{place}: {found!r} instead of {expected!r}"]


def brief(entries: list) -> list:
    return [f"{entry['handle']}:{entry['uuid']}" if isinstance(entry, dict) else entry for entry in entries]


def expected_of_profile(profile: dict) -> list[dict]:
    """The services that a client must find for a profile of `ble serve` in which every handle is given.

    The Client Characteristic Configuration, which the server adds, comes directly after the value.
    """
    services = []
    handles = [service["handle"] for service in profile["services"]]
    for service in profile["services"]:
        end = service["handle"] + len(service.get("includes", []))
        characteristics = []
        for each in service.get("characteristics", []):
            permissions = each.get("permissions", [])
            value_handle = each["handle"] + 1
            descriptors = [
                {"uuid": descriptor["uuid"], "handle": descriptor["handle"]}
                | reading(descriptor["value"], descriptor.get("permissions", ["read"]))
                for descriptor in each.get("descriptors", [])
            ]
            if {"notify", "indicate"} & set(each["properties"]):
                descriptors.insert(0, {"uuid": "2902", "handle": value_handle + 1, "value": "0000"})
            end = max([value_handle] + [descriptor["handle"] for descriptor in descriptors])
            entry = {
                "uuid": each["uuid"],
                "handle": each["handle"],
                "valueHandle": value_handle,
                "properties": each["properties"],
                "descriptors": descriptors,
            }
            if "read" in each["properties"]:
                entry |= reading(each.get("value", ""), permissions)
            characteristics.append(entry)
        services.append(
            {
                "uuid": service["uuid"],
                "primary": service.get("primary", True),
                "handle": service["handle"],
                "endHandle": end,
                "includes": [handles[index] for index in service.get("includes", [])],
                "characteristics": characteristics,
            }
        )
    return normalized(services)


def reading(value, permissions: list[str]) -> dict:
    """The result for a client without encryption that reads a value."""
    # Without a key for the peer, a link that is not encrypted lacks authentication (Vol 3, Part C, 10.3.1.1).
    for permission, error in (
        ("readAuthorized", "insufficientAuthorization"),
        ("readAuthenticated", "insufficientAuthentication"),
        ("readEncrypted", "insufficientAuthentication"),
    ):
        if permission in permissions:
            return {"error": error}
    if "read" not in permissions:
        return {"error": "readNotPermitted"}
    return {"value": value["text"].encode().hex() if isinstance(value, dict) else value}
