import BluetoothTypes
import ByteCoding
import HCI
import L2CAP

/// What a ``NullRadio`` has for one of its hosts: packets, and how many of the host's own were taken.
struct HostPort {
    /// The host; nil until it has opened its controller.
    var onPacket: (@Sendable (RawSpan) -> Void)?
    private var queued = PacketQueue()
    /// The memory of what was delivered last, to be used again.
    private var spare: PacketQueue?
    /// How many packets of each link, by its handle, were taken from the host since it was last told.
    private var takenCounts: [UInt16] = []
    /// The links that any were taken of.
    private var taken: [UInt16] = []

    /// A packet of a link was taken from the host.
    mutating func countTaken(on handle: ConnectionHandle) {
        let index = Int(handle.rawValue)
        if index >= takenCounts.count {
            takenCounts += repeatElement(0, count: index + 1 - takenCounts.count)
        }
        if takenCounts[index] == 0 { taken.append(handle.rawValue) }
        takenCounts[index] += 1
    }

    /// Queues the event that `encode` appends.
    mutating func queueEvent(_ encode: (inout PacketBuffer) -> Void) {
        queued.append { buffer in
            buffer.append(PacketType.event.rawValue)
            encode(&buffer)
        }
    }

    /// Queues the data of a packet as a controller sends it.
    mutating func queueACL(_ payload: RawSpan, of header: ACLHeader) {
        var header = header
        if header.packetBoundaryFlag == .firstNonFlushable { header.packetBoundaryFlag = .firstFlushable }
        queued.append { buffer in
            buffer.append(PacketType.acl.rawValue)
            header.encode(into: &buffer)
            buffer.append(payload)
        }
    }

    /// Queues an Attribute PDU in one ACL packet, whose headers are put in front of it.
    mutating func queueAttributePDU(_ pdu: inout PacketBuffer, on handle: ConnectionHandle) {
        Frame.prependHeader(channel: .attribute, to: &pdu)
        let length = UInt16(truncatingIfNeeded: pdu.count)
        let header = ACLHeader(
            connectionHandle: handle,
            packetBoundaryFlag: .firstFlushable,
            dataTotalLength: length
        )
        queueACL(pdu.bytes, of: header)
    }

    /// All there is for the host, with what it is told of the packets taken from it.
    mutating func takePackets() -> PacketQueue? {
        queueCompletions()
        guard !queued.isEmpty else { return nil }
        var packets = spare.take() ?? PacketQueue()
        swap(&packets, &queued)
        return packets
    }

    /// Takes back what has been delivered, for its memory.
    mutating func giveBack(_ packets: consuming PacketQueue) {
        packets.removeAll()
        spare = packets
    }

    private mutating func queueCompletions() {
        guard !taken.isEmpty else { return }
        // As many links as an event's 255 octets hold.
        for start in stride(from: 0, to: taken.count, by: 63) {
            let end = min(start + 63, taken.count)
            queued.append { buffer in
                let count = UInt8(end - start)
                buffer.append(PacketType.event.rawValue, NumberOfCompletedPackets.code, 1 + 4 * count, count)
                for index in start..<end {
                    let handle = taken[index]
                    buffer.append(handle, takenCounts[Int(handle)])
                    takenCounts[Int(handle)] = 0
                }
            }
        }
        taken.removeAll(keepingCapacity: true)
    }
}
