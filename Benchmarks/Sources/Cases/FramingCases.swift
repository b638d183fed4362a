import BLEByteCoding
import BLEHCI
import BLEL2CAP
import BluetoothTypes
import CBaseline

extension BenchmarkCase {
    /// L2CAP and ACL headers, and the events that come with each packet or command.
    static var framing: [BenchmarkCase] {
        let frames = Samples { [9, 0, 4, 0, 0x1B, $0, 0, 1, 2, 3, 4, 5, 6] }
        let packets = Samples { [$0, 0x20, 9, 0, 5, 0, 4, 0, 0x1B, $0, 0, 1, 2] }
        let payloads = Samples { number in (0..<27).map { $0 &+ number } }
        let completes = Samples { [0x0E, 4, 1, $0, 0x20, 0] }
        let credits = Samples { [0x13, 9, 2, $0, 0, 1, 0, $0 &+ 16, 0, 2, 0] }
        return [
            codec("l2cap/frame/decode", frames, baseline: c_decode_l2cap_frame) { samples, count in
                samples.forEach(count) { bytes in
                    guard let frame = try? Frame(decoding: bytes) else { return 0 }
                    return UInt64(frame.channel.rawValue) &+ trace(frame.payload)
                }
            },
            codec("l2cap/frame/encode", payloads, baseline: c_encode_l2cap_frame) { samples, count in
                samples.encode(count) { bytes, buffer in
                    buffer.append(bytes)
                    Frame.prependHeader(channel: .attribute, to: &buffer)
                }
            },
            codec("hci/acl/decode", packets, baseline: c_decode_acl) { samples, count in
                samples.forEach(count) { bytes in
                    guard let packet = try? ACLPacket(decoding: bytes) else { return 0 }
                    return UInt64(packet.header.connectionHandle.rawValue) &+ trace(packet.payload)
                        &+ UInt64(packet.header.packetBoundaryFlag.rawValue)
                }
            },
            codec("hci/acl/encode", payloads, baseline: c_encode_acl) { samples, count in
                samples.encode(count) { bytes, buffer in
                    buffer.append(bytes)
                    ACLHeader(
                        connectionHandle: ConnectionHandle(UInt16(bytes[checked: 0] ?? 0)),
                        packetBoundaryFlag: .firstNonFlushable
                    ).prepend(to: &buffer)
                }
            },
            codec(
                "hci/command-complete/decode",
                completes,
                budget: .withoutAllocation,
                baseline: c_decode_command_complete
            ) { samples, count in
                samples.forEach(count) { bytes in
                    guard case .commandComplete(let event)? = try? Event(decoding: bytes) else { return 0 }
                    return UInt64(event.numHCICommandPackets) &+ UInt64(event.commandOpcode.rawValue)
                        &+ UInt64(event.status?.rawValue ?? 0)
                }
            },
            codec(
                "hci/completed-packets/decode",
                credits,
                budget: .withoutAllocation,
                baseline: c_decode_completed_packets
            ) { samples, count in
                samples.forEach(count) { bytes in
                    guard case .numberOfCompletedPackets(let event)? = try? Event(decoding: bytes) else { return 0 }
                    var sum: UInt64 = 0
                    var completions = event.completions
                    while let completion = completions.next() {
                        sum &+= UInt64(completion.connectionHandle.rawValue) &+ UInt64(completion.numCompletedPackets)
                    }
                    return sum
                }
            },
        ]
    }
}
