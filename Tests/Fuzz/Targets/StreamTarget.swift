import BLEByteCoding
import BLEHCI
import BLEHCITransport

/// Fuzzes the splitting of a stream into packets. The first byte selects the sender and the length of the pieces.
/// Without a search for lost framing, the packets must be the same for pieces of any length.
func fuzzStream(_ input: [UInt8]) {
    guard let choice = input.first else { return }
    let sender: H4StreamDecoder.Sender = choice & 1 == 0 ? .controller : .host
    let pieceLength = 1 + Int(choice >> 1)
    _ = packets(of: input.dropFirst(), from: sender, .search, inPiecesOf: pieceLength)
    let pieces = packets(of: input.dropFirst(), from: sender, .fail, inPiecesOf: pieceLength)
    let whole = packets(of: input.dropFirst(), from: sender, .fail, inPiecesOf: input.count)
    require(pieces == whole, "\(pieces.count) packets of a stream in pieces, \(whole.count) of the same at once")
}

private func packets(
    of stream: ArraySlice<UInt8>,
    from sender: H4StreamDecoder.Sender,
    _ recovery: H4StreamDecoder.Recovery,
    inPiecesOf length: Int
) -> [[UInt8]] {
    var decoder = H4StreamDecoder(recovery: recovery, sender: sender)
    var packets: [[UInt8]] = []
    var rest = stream
    while !rest.isEmpty {
        decoder.append(Array(rest.prefix(length)))
        rest = rest.dropFirst(length)
        do throws(H4StreamDecoder.BrokenStream) {
            try decoder.forEachPacket { packet in
                packets.append([UInt8](copying: packet))
                return true
            }
        } catch {
            break
        }
    }
    for packet in packets {
        let length = try? PacketType.packetLength(atStartOf: packet.rawSpan)
        require(length == packet.count, "a packet of \(packet.count) bytes that says it has \(length ?? 0)")
    }
    return packets
}
