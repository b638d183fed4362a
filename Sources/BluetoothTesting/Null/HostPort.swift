import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BluetoothTypes

/// The state of a ``NullRadio`` for one of its hosts: packets to deliver, and the number of packets accepted from the
/// host.
struct HostPort {
    /// The packets for the host, and its receiver.
    struct Delivery {
        let packets: PacketQueue
        let receiver: PacketReceiver?
    }

    /// The host's receiver; nil until it has opened its controller.
    var receiver: PacketReceiver?
    var isAdvertising = false
    /// The peer that the host wants to connect to.
    var targetPeer: PeerAddress?
    private var queued = PacketQueue()
    /// The queue of the last delivery, which is empty again once that has ended.
    private var spare = PacketQueue()
    /// The number of packets accepted from the host since its last completion event, by link handle.
    private var takenCounts: [UInt16] = []
    /// The links with accepted packets.
    private var taken: [UInt16] = []

    /// Counts an accepted packet of a link.
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

    /// Queues the data of a packet, as a controller sends it.
    mutating func queueACL(_ payload: RawSpan, of header: ACLHeader) {
        var header = header
        if header.packetBoundaryFlag == .firstNonFlushable { header.packetBoundaryFlag = .firstFlushable }
        queued.append { buffer in
            buffer.append(PacketType.acl.rawValue)
            header.encode(into: &buffer)
            buffer.append(payload)
        }
    }

    /// Queues an Attribute PDU in one ACL packet, and prepends the packet's headers to it.
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

    /// Removes and returns all packets for the host, including the events that report its completed packets. The caller
    /// empties the queue of the delivery before the next.
    mutating func takeDelivery() -> Delivery? {
        queueCompletions()
        guard !queued.isEmpty else { return nil }
        swap(&spare, &queued)
        return Delivery(packets: spare, receiver: receiver)
    }

    private mutating func queueCompletions() {
        while !taken.isEmpty {
            // An event of 255 bytes has at most 63 links.
            let count = UInt8(min(taken.count, 63))
            queued.append { buffer in
                buffer.append(PacketType.event.rawValue, NumberOfCompletedPackets.code, 1 + 4 * count, count)
                for _ in 0..<count {
                    let handle = taken.removeLast()
                    buffer.append(handle, takenCounts[Int(handle)])
                    takenCounts[Int(handle)] = 0
                }
            }
        }
    }
}
