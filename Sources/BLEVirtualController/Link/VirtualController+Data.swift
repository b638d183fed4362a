import BLEByteCoding
import BLEHCI
import BluetoothTypes

extension VirtualController {
    /// The first free place.
    var freePlace: Int? { links.firstIndex { $0 == nil } }

    func end(_ handle: ConnectionHandle) -> LinkEnd? {
        let place = Int(handle.rawValue) - Int(Self.firstHandle)
        return links.indices.contains(place) ? links[place]?.end : nil
    }

    /// Whether there is a link to a peer with this address, as reported to the host.
    func isConnected(to peer: PeerAddress) -> Bool {
        links.contains { $0?.end.party.peer == peer }
    }

    /// Handles an ACL packet from the host (Vol 4, Part E, 5.4.2).
    func receiveData(_ packet: RawSpan) {
        guard let packet = try? ACLPacket(decoding: packet),
            let end = end(packet.header.connectionHandle),
            packet.header.broadcastFlag == .pointToPoint,
            packet.header.packetBoundaryFlag != .complete,
            packet.payload.byteCount > 0,
            packet.payload.byteCount <= Int(configuration.aclDataLength)
        else {
            host.statistics.malformedPackets += 1
            return
        }
        host.statistics.aclPacketsFromHost += 1
        guard packetsHeld < Int(configuration.aclPacketCount) else {
            host.statistics.packetsBeyondCredit += 1
            return tell(DataBufferOverflow(linkType: .acl))
        }
        packetsHeld += 1
        end.send([UInt8](copying: packet.payload), isStart: packet.header.packetBoundaryFlag != .continuing)
    }

    /// Sends the host the data of one packet of the link.
    func deliver(_ bytes: [UInt8], isStart: Bool, on handle: ConnectionHandle) {
        host.statistics.aclPacketsToHost += 1
        send(
            PacketBuffer.bytes { buffer in
                buffer.append(PacketType.acl.rawValue)
                ACLHeader(
                    connectionHandle: handle,
                    packetBoundaryFlag: isStart ? .firstFlushable : .continuing,
                    dataTotalLength: UInt16(truncatingIfNeeded: bytes.count)
                ).encode(into: &buffer)
                buffer.append(bytes)
            },
            .data
        )
    }
}
