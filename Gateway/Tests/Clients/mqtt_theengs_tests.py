"""Readings in the format of Theengs Gateway, compared with what TheengsDecoder makes of the same advertisements."""

import json

from bumble.core import AdvertisingData
from bumble.device import AdvertisingType
from bumble.hci import OwnAddressType
from harness import World, expect, free_ports, test, until
from mqtt_fault_tests import Publisher
from mqtt_tests import Broker, Subscriber
from TheengsDecoder import decodeBLE

NAME = AdvertisingData.COMPLETE_LOCAL_NAME
DATA_16 = AdvertisingData.SERVICE_DATA_16_BIT_UUID
MANUFACTURER = AdvertisingData.MANUFACTURER_SPECIFIC_DATA
# Acceleration in m/s². TheengsDecoder 2.5.0 gives a tenth of it.
ACCELERATION = {"accx", "accy", "accz"}
# Keys that describe the advertisement or the kind of the sensor, which the gateway does not publish.
OTHERS = {
    "manufacturerdata", "servicedata", "servicedatauuid", "type", "track", "mfid", "rssi", "acts", "cont", "button",
}  # fmt: skip
# Name, address, service (None for manufacturer data) and data.
SAMPLES = [
    ("", "CB:B8:33:4C:88:4F", None, "99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f"),
    ("ATC_000001", "A4:C1:38:00:00:01", "181a", "a4c13800000100f1364e0bb82a"),
    ("ATC_000002", "A4:C1:38:00:00:02", "181a", "02000038c1a4ca09bf13b80b4e0904"),
    ("SBHT-003C", "C4:C1:38:00:00:03", "fcd2", "44000901612e3345fbff"),
    ("", "C4:C1:38:00:00:04", None, "4c000215fda50693a4e24fb1afcfc6eb0764782500010002c5"),
]


@test("mqtt theengs: readings have the keys and values of TheengsDecoder")
async def compared(world: World):
    (port,) = free_ports(1)
    async with Broker(world.directory, port) as broker, Subscriber(broker) as subscriber:
        async with Publisher(world, port, BLE_GATEWAY_MQTT_FORMAT="theengs"):
            for name, address, service, data in SAMPLES:
                async with world.peripheral(name="Sample", address=address) as sensor:
                    content = bytes.fromhex(data)
                    structures = [(MANUFACTURER, content)]
                    if service:
                        structures = [(DATA_16, bytes.fromhex(service)[::-1] + content)]
                    if name:
                        structures.append((NAME, name.encode()))
                    await sensor.device.start_advertising(
                        advertising_type=AdvertisingType.UNDIRECTED, own_address_type=OwnAddressType.RANDOM,
                        advertising_data=bytes(AdvertisingData(structures)), advertising_interval_min=20,
                        advertising_interval_max=20,
                    )  # fmt: skip
                    topic = f"home/TheengsGateway/BTtoMQTT/{address.replace(':', '')}"
                    await until(lambda topic=topic: topic in [each for each, _ in subscriber.messages], topic)
                found = json.loads(next(payload for each, payload in subscriber.messages if each == topic))
                source = {"id": address, "rssi": -60}
                source |= {"servicedatauuid": service, "servicedata": data} if service else {"manufacturerdata": data}
                if name:
                    source["name"] = name
                decoded = decodeBLE(json.dumps(source))
                assert decoded, f"TheengsDecoder does not know the sample of {address}"
                expected = {key: value for key, value in json.loads(decoded).items() if key not in OTHERS}
                for key, value in expected.items():
                    if key in ACCELERATION:
                        value *= 10
                    if isinstance(value, float) and isinstance(found.get(key), (int, float)):
                        # TheengsDecoder multiplies by its own factors.
                        assert abs(found[key] - value) < 1e-4 + abs(value) * 1e-4, f"{key}: {found} {expected}"
                    else:
                        expect(found.get(key), value, f"{key} of {address}")
                assert found["rssi"] < 0 and set(found) - set(expected) <= {"rssi", "mac"}, (found, expected)
        assert not [topic for topic, _ in subscriber.messages if topic.startswith("homeassistant/")], "announcements"
