"""Compares BluetoothSensors with decoders from PyPI on generated advertisements. See `run`.

Each advertisement is decoded by a new decoder on both sides. A difference of values, units, protection, firmware or
model fails, except for these, which are deliberate:
- percentages above 100 are not available here; the decoders of PyPI report or clamp them;
- voltages that xiaomi-ble derives from the battery level are not reported here, because they are not measured;
- acceleration_total and the air quality index of ruuvitag-ble are not reported: they are derived values;
- a Ruuvi movement counter of 255 is invalid here, as its documentation says;
- the whole acceleration of Ruuvi is None in ruuvitag-ble if one axis is invalid; here the other axes are reported;
- xiaomi-ble rounds the humidity of LYWSD03MMC and MHO-C401 down to whole percents;
- atc-ble reports an encrypted battery level above 100 % as 100 %; here it is not available;
- bthome-ble names 1 mbar what is 1 hPa here;
- bthome-ble names its own version as firmware if the device sends none.
"""

import logging
import random
import subprocess
import sys

import orjson
from atc_ble import ATCBluetoothDeviceData
from bthome_ble import BTHomeBluetoothDeviceData
from bthome_ble.const import MEAS_TYPES
from Cryptodome.Cipher import AES
from home_assistant_bluetooth import BluetoothServiceInfo
from ruuvitag_ble import RuuvitagBluetoothDeviceData
from xiaomi_ble import XiaomiBluetoothDeviceData
from xiaomi_ble.devices import DEVICE_TYPES

class ServiceInfo(BluetoothServiceInfo):
    time = 0.0


def seal(key, nonce, data, additional=b""):
    cipher = AES.new(key, AES.MODE_CCM, nonce=nonce, mac_len=4)
    if additional:
        cipher.update(additional)
    return cipher.encrypt_and_digest(data)


def bthome(r, mac):
    body, seen = b"", []
    for _ in range(r.randint(1, 4)):
        kind = r.choice([k for k in MEAS_TYPES if k not in (0x3A, 0x3B, 0x3C, 0x50, 0x53, 0x54)])
        # bthome-ble keeps only one of two values that have the same class and different units; both are kept here.
        form = MEAS_TYPES[kind].meas_format
        others = [MEAS_TYPES[k].meas_format for k in seen]
        if all(o == form or getattr(o, "device_class", 0) != getattr(form, "device_class", 1) for o in others):
            seen.append(kind)
    for kind in sorted(seen):
        body += bytes([kind]) + r.randbytes(MEAS_TYPES[kind].data_length)
    key, want = None, "none"
    data = b"\x40" + body
    if r.random() < 0.5:
        key, counter = r.randbytes(16), r.randbytes(4)
        text, tag = seal(key, mac + b"\xd2\xfc\x41" + counter, body)
        data, want = b"\x41" + text + counter + tag, "authenticated"
        if r.random() < 0.1:
            data, want = data[:-1] + bytes([data[-1] ^ 1]), "wrongKey"
    return data, key, want, {"0000fcd2-0000-1000-8000-00805f9b34fb": data}, {}, b"\xd2\xfc", BTHomeBluetoothDeviceData


def ruuvi(r, mac):
    kind, length = r.choice([(3, 14), (5, 24), (6, 20), (0xE1, 40)])
    data = bytes([kind]) + bytes(r.choice([0, 0x7F, 0x80, 0xFF, r.randrange(256)]) for _ in range(length - 1))
    return data, None, "none", {}, {0x0499: data}, b"\x99\x04", RuuvitagBluetoothDeviceData


def atc(r, mac):
    key, want, counter = None, "none", r.randbytes(1)
    kind = r.randrange(4)
    if kind == 0:
        data = mac + r.randbytes(7)
    elif kind == 1:
        data = mac[::-1] + r.randbytes(9)
    else:
        key, want = r.randbytes(16), "authenticated"
        body = r.randbytes(3 if kind == 2 else 6)
        nonce = mac[::-1] + bytes([len(body) + 8, 0x16, 0x1A, 0x18]) + counter
        text, tag = seal(key, nonce, body, b"\x11")
        data = counter + text + tag
    return data, key, want, {"0000181a-0000-1000-8000-00805f9b34fb": data}, {}, b"\x1a\x18", ATCBluetoothDeviceData


PRODUCTS = [0x01AA, 0x0347, 0x045B, 0x0576, 0x066F, 0x0098]
OBJECTS = {0x1004: 2, 0x1006: 2, 0x1008: 1, 0x1009: 2, 0x100A: 1, 0x100D: 4, 0x1010: 2, 0x1012: 1, 0x1013: 1,
           0x1014: 1, 0x1015: 1, 0x1017: 4, 0x1018: 1, 0x4803: 1, 0x4C02: 1, 0x4C03: 1, 0x4818: 2, 0x4A01: 1}


def mibeacon(r, mac):
    product = r.choice(PRODUCTS)
    kind = r.choice(list(OBJECTS))
    body = kind.to_bytes(2, "little") + bytes([OBJECTS[kind]]) + r.randbytes(OBJECTS[kind])
    version, key, want = r.choice([2, 3, 4, 5]), None, "none"
    control, counter = version << 12 | 0x50, r.randbytes(1)
    encrypted = version >= 4 and r.random() < 0.6
    if encrypted:
        control |= 8
    head = control.to_bytes(2, "little") + product.to_bytes(2, "little") + counter
    data = head + mac[::-1] + body
    if encrypted:
        key, extended, want = r.randbytes(16), r.randbytes(3), "authenticated"
        text, tag = seal(key, mac[::-1] + head[2:] + extended, body, b"\x11")
        data = head + mac[::-1] + text + extended + tag
    return data, key, want, {"0000fe95-0000-1000-8000-00805f9b34fb": data}, {}, b"\x95\xfe", XiaomiBluetoothDeviceData


def oracle(make, key, service, manufacturer, address):
    decoder = make(bindkey=key) if make is not RuuvitagBluetoothDeviceData else make()
    update = decoder.update(ServiceInfo(name="x", address=address, rssi=-50, manufacturer_data=manufacturer,
                                                 service_data=service, service_uuids=[], source="local"))
    values = {}
    for entity, value in update.entity_values.items():
        description = update.entity_descriptions.get(entity)
        unit = getattr(description, "native_unit_of_measurement", None)
        unit = str(getattr(unit, "value", unit)) if unit else None
        values[entity.key] = (value.native_value, "hPa" if unit == "mbar" else unit)
    for entity, value in update.binary_entity_values.items():
        values["binary " + entity.key] = (bool(value.native_value), None)
    device = update.devices.get(None)
    return values, device.sw_version if device else None, device.model if device else None


def percent(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 100


def compare(ours, theirs):
    """Returns the differences of two lists of (value, unit), which are compared without names, in any order."""
    left, missing = list(ours), []
    for value, unit in theirs:
        if value is None or unit == "%" and percent(value):
            continue
        # Both must agree to half of the last digit to which the decoders of PyPI round.
        tolerance = 0 if isinstance(value, bool) else max(0.0051, abs(value) * 1e-9)
        if unit == "°C" and round(value, 1) == value:
            tolerance = 0.0501  # bthome-ble rounds object 0x58, in steps of 0.35 °C, to tenths.
        match = next((o for o in left if o[1] == unit and isinstance(o[0], bool) == isinstance(value, bool)
                      and abs(o[0] - value) <= tolerance), None)
        if match is None:
            missing.append((value, unit))
        else:
            left.remove(match)
    return missing, left


def main():
    logging.disable(logging.CRITICAL)
    tool, count = sys.argv[1], int(sys.argv[2])
    failed = False
    for name, generate in (("bthome", bthome), ("ruuvi", ruuvi), ("atc", atc), ("mibeacon", mibeacon)):
        r = random.Random(f"sensors {name}")
        cases, lines = [], []
        for _ in range(count):
            mac = r.randbytes(6)
            data, key, want, service, manufacturer, uuid, make = generate(r, mac)
            structure = bytes([len(data) + 3, 0xFF if manufacturer else 0x16]) + uuid + data
            lines.append(f"{mac.hex()} {key.hex() if key else '-'} {structure.hex()}")
            cases.append((key, want, service, manufacturer, mac.hex(":").upper(), make))
        output = subprocess.run([tool], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        answers = output.stdout.splitlines()
        assert len(answers) == count, "the tool ended early"
        differences = 0
        for line, (key, want, service, manufacturer, address, make), answer in zip(lines, cases, answers):
            values, firmware, model = oracle(make, key, service, manufacturer, address)
            report = next(iter(orjson.loads(answer)), {})
            ours = [(x["value"], x.get("unit")) for x in report.get("readings", []) if "value" in x]
            theirs = []
            for entity, (value, unit) in values.items():
                if entity in ("signal_strength", "acceleration_total", "iaqs"):
                    continue
                if name == "mibeacon" and entity == "voltage":
                    continue
                if name == "ruuvi" and entity == "voltage" and value is not None:
                    value, unit = value / 1000, "V"
                if name == "ruuvi" and entity == "movement_counter" and value == 255:
                    continue
                theirs.append((value, unit))
            missing, left = compare(ours, theirs)
            if name == "ruuvi":
                # tx_power, and axes beside an invalid one, are reported only here.
                left = [x for x in left if x[1] not in ("dBm", "m/s²")]
            if name == "atc" and (100, "%") in missing:
                missing.remove((100, "%"))
            wrong = bool(missing or left)
            wrong |= bool(report) and report["protection"] != want
            # An encrypted advertisement is reported although it does not match the key.
            wrong |= want == "wrongKey" and not report
            if name in ("atc", "mibeacon") and report:
                wrong |= report.get("firmware") != firmware
            if name == "mibeacon" and report:
                wrong |= report.get("model") != model
            if wrong:
                differences += 1
                if differences <= 5:
                    print(f"{name}: {line}\n  only theirs {missing}, only ours {left}, {report}, want {want}")
        print(f"{name}: {count} advertisements, {differences} differences")
        failed |= differences > 0
    sys.exit(failed)


main()
