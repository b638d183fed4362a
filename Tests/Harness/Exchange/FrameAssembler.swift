/// Reassembles the L2CAP frames that a host sends in several packets (Vol 3, Part A, 7.2.1).
struct FrameAssembler {
    private var octets: [UInt8] = []

    /// Takes the data of a packet, and returns the frame that it completes.
    mutating func receive(
        _ data: ArraySlice<UInt8>,
        isStart: Bool
    ) throws(Complaint) -> (channel: UInt16, payload: [UInt8])? {
        if isStart {
            guard octets.isEmpty else { throw Complaint("a frame begins before the last one is complete") }
        } else {
            guard !octets.isEmpty else { throw Complaint("a packet continues a frame that was not begun") }
        }
        octets += data
        guard octets.count >= 4 else { return nil }
        let length = Int(octets.number(at: 0)) + 4
        guard octets.count <= length else { throw Complaint("a frame has more bytes than its length field says") }
        guard octets.count == length else { return nil }
        defer { octets = [] }
        return (octets.number(at: 2), Array(octets.dropFirst(4)))
    }
}
