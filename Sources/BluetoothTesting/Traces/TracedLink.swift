import BLEByteCoding
import BLECapture
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BluetoothTypes

/// The frames of the fixed channels that two devices exchanged on one link of a recording.
package struct TracedLink: Sendable {
    /// An L2CAP frame.
    package struct Frame: Sendable {
        /// The position of its last fragment in the recording.
        package let index: Int
        package let channel: ChannelIdentifier
        package let payload: [UInt8]
        /// Whether the recorded host sent it.
        package let isSent: Bool
    }

    /// The number of the link in the recording, from 1.
    package private(set) var number: Int
    package let handle: ConnectionHandle
    /// Nil if the link was created before the recording.
    package let isCentral: Bool?
    /// The device at the other end; nil if the link was created before the recording.
    package let peer: DeviceAddress?
    package private(set) var frames: [Frame] = []

    private init(number: Int, handle: ConnectionHandle, isCentral: Bool?, peer: DeviceAddress?) {
        self.number = number
        self.handle = handle
        self.isCentral = isCentral
        self.peer = peer
    }

    /// The links of a recording, in the order of their creation.
    package static func all(in recording: PacketRecording) -> [TracedLink] {
        var collector = Collector()
        for (index, packet) in recording.packets.enumerated() { collector.take(packet, at: index) }
        // Connections of BR/EDR created before the recording have none of these channels.
        let fixed: [ChannelIdentifier] = [.attribute, .signaling, .securityManager]
        var links = collector.links.filter { link in
            link.isCentral != nil || link.frames.contains { fixed.contains($0.channel) }
        }
        for index in links.indices { links[index].number = index + 1 }
        return links
    }

    private struct Collector {
        var links: [TracedLink] = []
        /// The position in `links` of each open link, and the fragments of each direction.
        private var open: [ConnectionHandle: Int] = [:]
        private var reassemblers: [Int: (sent: Reassembler, received: Reassembler)] = [:]

        mutating func take(_ packet: PacketRecording.Packet, at index: Int) {
            let bytes = packet.bytes.rawSpan.extracting(droppingFirst: 1)
            switch packet.bytes.first.flatMap(PacketType.init(rawValue:)) {
            case .event: try? takeEvent(bytes)
            case .acl: takeACL(bytes, isSent: packet.direction == .hostToController, at: index)
            default: break
            }
        }

        private mutating func takeEvent(_ bytes: RawSpan) throws(PacketDecodingError) {
            switch try Event(decoding: bytes) {
            case .leConnectionComplete(let event) where event.status == .success:
                begin(event.connectionHandle, event.role, event.peerAddress)
            case .leEnhancedConnectionComplete(let event) where event.status == .success:
                begin(event.connectionHandle, event.role, event.peerAddress)
            case .leEnhancedConnectionCompleteV2(let event) where event.status == .success:
                begin(event.connectionHandle, event.role, event.peerAddress)
            case .disconnectionComplete(let event): open[event.connectionHandle] = nil
            default: break
            }
        }

        private mutating func begin(_ handle: ConnectionHandle, _ role: BLEHCI.Role, _ peer: PeerAddress) {
            let address = peer.deviceAddress ?? DeviceAddress(peer.value, isRandom: true)
            add(handle, isCentral: role == .central, peer: address)
        }

        @discardableResult
        private mutating func add(_ handle: ConnectionHandle, isCentral: Bool?, peer: DeviceAddress?) -> Int {
            open[handle] = links.count
            links.append(TracedLink(number: links.count + 1, handle: handle, isCentral: isCentral, peer: peer))
            reassemblers[links.count - 1] = (Reassembler(), Reassembler())
            return links.count - 1
        }

        private mutating func takeACL(_ bytes: RawSpan, isSent: Bool, at index: Int) {
            guard let packet = try? ACLPacket(decoding: bytes) else { return }
            let handle = packet.header.connectionHandle
            let place = open[handle] ?? add(handle, isCentral: nil, peer: nil)
            let isStart = packet.header.packetBoundaryFlag != .continuing
            var found: [Frame] = []
            func deliver(_ frame: borrowing BLEL2CAP.Frame) {
                found.append(
                    Frame(
                        index: index,
                        channel: frame.channel,
                        payload: [UInt8](copying: frame.payload),
                        isSent: isSent
                    )
                )
            }
            if isSent {
                _ = reassemblers[place]?.sent.receive(packet.payload, isStart: isStart, deliver: deliver)
            } else {
                _ = reassemblers[place]?.received.receive(packet.payload, isStart: isStart, deliver: deliver)
            }
            links[place].frames += found
        }
    }
}
