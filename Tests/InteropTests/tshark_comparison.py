"""Compares the output of tshark for a capture with that of `ble decode --json`: every field that both have must be
equal.

    tshark_comparison.py CAPTURE ...   # prints the differences and their reasons; BLE names the ble to use

`tshark_fields.py` assigns the fields. LIMITS lists the cases in which the output of tshark 4.0 is not followed, with
the reasons.
"""

import asyncio
import collections
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tshark_fields import Shown, every, layer, reason_not_to_compare, table

ROOT = Path(__file__).resolve().parents[2]
FIELDS = table()
VALUES = {0x09, 0x0B, 0x0D, 0x12, 0x13, 0x16, 0x17, 0x1B, 0x1D, 0x52}  # ATT PDUs with a value, or about one
QUALCOMM_LOG = 0x0EDC


class Case:
    """A field that differs."""

    def __init__(self, name: str, packet: dict, theirs: list, ours: list, packets: list[dict], isMixed: bool):
        self.name, self.packet, self.theirs, self.ours = name, packet, theirs, ours
        self.packets, self.isMixed = packets, isMixed

    @property
    def isOfAttribute(self) -> bool:
        return self.name.startswith("btatt.")

    @property
    def isOfValue(self) -> bool:
        return self.packet.get("att", {}).get("opcode") in VALUES

    @property
    def isMalformed(self) -> bool:
        return any(each["layer"] == "att" for each in self.packet.get("malformed", []))

    @property
    def namesRequestElsewhere(self) -> bool:
        """Whether tshark assumes a packet of another link or direction as the request, or has none."""
        if self.name != "btatt.request_in_frame_inferred":
            return False
        request = self.packets[self.theirs[0] - 1]
        return (
            request.get("link", {}).get("number") != self.packet.get("link", {}).get("number")
            or request.get("direction") == self.packet.get("direction")
            or request.get("att", {}).get("opcode") != self.packet.get("att", {}).get("opcode", 1) - 1
        )


# The cases in which the output of tshark 4.0 is not followed, and the reasons.
LIMITS = (
    (
        lambda case: case.namesRequestElsewhere,
        "takes a response for the answer to a request on another link, or of the other side",
    ),
    (
        lambda case: case.isOfAttribute and case.isMixed and (case.name.endswith("_inferred") or case.isOfValue),
        "keeps the attributes of several links, or of both sides of one, as if they were one server's",
    ),
    (
        lambda case: case.isOfAttribute and case.isOfValue and case.theirs[: len(case.ours)] == case.ours,
        "reads bytes of a value as a handle or a UUID, by the profile that it takes the value to be of",
    ),
    (
        lambda case: case.name == "btatt.value"
        and len(case.ours) == 1
        and all(each in case.ours[0] for each in case.theirs),
        "gives the part of a value that its profile's fields leave over",
    ),
    (
        lambda case: case.name in ("btatt.handle", "btatt.uuid128_inferred")
        and "2802" in every(layer(case.packet, "asking"), {"uuid", "attributeType"}),
        "looks for the UUID in the declaration of an included service, which those of 128 bits do not have",
    ),
    (
        lambda case: case.name == "btatt.uuid16_inferred"
        and "0000" in case.theirs
        and all(each in case.ours for each in case.theirs if each != "0000"),
        "names what was asked for by a UUID of 128 bits by the UUID 0x0000",
    ),
    (
        lambda case: case.name.startswith("btcommon.") and bool(every(layer(case.packet, "ad"), {"malformed"})),
        "reads an AD structure that is longer than the data as if it were whole",
    ),
    (
        lambda case: case.isOfAttribute and not case.ours and case.isMalformed,
        "reads fields of a PDU whose length is wrong",
    ),
    (
        lambda case: case.name == "btl2cap.payload"
        and "sduLength" in case.packet.get("l2cap", {})
        and [each[4:] for each in case.theirs] == case.ours,
        "does not know the channels that a Credit Based Connection Request opens, whose SDUs begin with their length",
    ),
    (
        lambda case: case.name.startswith("btl2cap.") and case.packet.get("acl", {}).get("handle") == QUALCOMM_LOG,
        "goes on behind what is too short or unknown, in the log of a Qualcomm controller, which is no L2CAP",
    ),
    (
        lambda case: case.name == "bthci_evt.command_in_frame" and case.packet["event"]["code"] not in (0x0E, 0x0F),
        "also names the command that has led to another event than Command Complete and Command Status",
    ),
    (
        lambda case: case.name == "bthci_evt.connection_handle"
        and [each & 0x0FFF for each in case.theirs] == case.ours,
        "gives a connection handle together with the reserved bits above it, which ours gives apart",
    ),
    (
        lambda case: case.packet.get("event", {}).get("code") == 0xFF,
        "knows some vendors' events, which are bytes to ours",
    ),
)


async def tshark(capture: Path) -> list[tuple[int, dict[str, list[Shown]]]]:
    """For each packet the time in microseconds and tshark's fields, in tshark's order."""
    process = await asyncio.create_subprocess_exec(
        "tshark", "-n", "-r", str(capture), "-T", "pdml", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )  # fmt: skip
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode(errors="replace")
    packets = []
    for packet in ElementTree.fromstring(output):
        time, fields = 0, {}
        for protocol in packet.iter("proto"):
            if protocol.get("name") == "frame":
                shown = {each.get("name"): each.get("show") for each in protocol.iter("field")}
                seconds, _, fraction = shown["frame.time_epoch"].partition(".")
                time = int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0") or 0)
            elif protocol.get("name") != "geninfo":
                for each in protocol.iterfind("field"):
                    add(each, fields)
        packets.append((time, fields))
    return packets


def add(element: ElementTree.Element, fields: dict[str, list[Shown]]):
    """Adds a field of tshark and the fields in it."""
    if name := element.get("name"):
        octets = element.get("unmaskedvalue") or element.get("value") or joined(element)
        if name.startswith("btatt.") and element.get("size") == "0":
            name += "_inferred"
        fields.setdefault(name, []).append(Shown(element.get("show", ""), octets))
    for inner in element.iterfind("field"):
        add(inner, fields)


def joined(element: ElementTree.Element) -> str:
    """The bytes of the bits that a field only groups."""
    bits = [each for each in element.iter("field") if each.get("unmaskedvalue")]
    octets = {int(each.get("pos")): each.get("unmaskedvalue") for each in bits}
    return "".join(octets[position] for position in sorted(octets))


class Comparison:
    """The fields of both programs for the packets of a capture."""

    def __init__(self, packets: list[dict], theirs: list[tuple[int, dict[str, list[Shown]]]]):
        self.compared = 0
        self.limits: collections.Counter = collections.Counter()
        self.problems: list[str] = []
        if len(packets) != len(theirs):
            self.problems.append(f"{len(packets)} packets instead of {len(theirs)}")
        self.packets = packets
        # Whether attributes of a second link have occurred, or a response that tshark assigned to another request.
        self.isMixed = False
        links = set()
        for packet, (time, fields) in zip(packets, theirs):
            if "att" in packet:
                links.add(packet["link"]["number"])
                self.isMixed = self.isMixed or len(links) > 1
                if "answers" in packet:
                    packet["request"] = packets[packet["answers"]["index"] - 1].get("att")
            if packet["microseconds"] != time:
                self.problems.append(f"packet {packet['index']}: time {packet['microseconds']} instead of {time}")
            for name, shown in sorted(fields.items(), key=lambda item: item[0] != "btatt.request_in_frame_inferred"):
                self.compare(name, packet, shown)

    def compare(self, name: str, packet: dict, shown: list[Shown]):
        if (field := FIELDS.get(name)) is None:
            if reason_not_to_compare(name) is None:
                self.problems.append(f"packet {packet['index']}: nothing is compared with {name}")
            return
        self.compared += 1
        ours = field.ours(packet)
        theirs = field.theirs(shown, ours)
        if field.agrees(ours, theirs):
            return
        case = Case(name, packet, theirs, ours, self.packets, self.isMixed)
        self.isMixed = self.isMixed or case.namesRequestElsewhere
        if reason := next((why for applies, why in LIMITS if applies(case)), None):
            self.limits[reason] += 1
        else:
            self.problems.append(f"packet {packet['index']}: {name} {ours} instead of {theirs}")


async def main(captures: list[str]) -> int:
    ble = os.environ.get("BLE", str(ROOT / ".build/release/ble"))
    differs = False
    for capture in map(Path, captures):
        outcome = subprocess.run([ble, "decode", capture, "--json"], capture_output=True, check=True)
        packets = [json.loads(line) for line in outcome.stdout.splitlines()]
        comparison = Comparison(packets, await tshark(capture))
        print(f"{capture.name}: {len(packets)} packets, {comparison.compared} fields")
        for reason, count in comparison.limits.most_common():
            print(f"    {count} times tshark {reason}")
        for problem in comparison.problems:
            print(f"    {problem}")
        differs = differs or bool(comparison.problems)
    return int(differs)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
