import BluetoothTypes
import ByteCoding

/// Writes the entries of a list response straight into the packet, as long as they fit and their values have the length
/// of the first.
///
/// For Read By Type and Read By Group Type responses, whose entries have a handle or two and a value
/// (Vol 3, Part F, 3.4.4.2 and 3.4.4.10).
public struct ListResponseWriter: Sendable {
    private let mtu: Int
    private let start: Int
    private var entryLength = 0
    private var valueLength = 0

    /// Starts a response in `buffer`.
    ///
    /// - Parameter mtu: ATT_MTU, at least 23.
    public init(_ opcode: Opcode, mtu: Int, in buffer: inout PacketBuffer) {
        self.mtu = mtu
        start = buffer.count
        buffer.append(opcode.rawValue)
        buffer.append(UInt8(0))
    }

    /// Whether no entry has been written.
    public var isEmpty: Bool { entryLength == 0 }

    /// Appends an entry; false where it does not fit or its value has another length than the first.
    ///
    /// Values are cut to what fits the PDU and the entry's length field. It is the lengths before the cut that must be
    /// equal: two long values of different length are not listed together, though cut alike.
    ///
    /// - Parameter end: the group's last handle, in a Read By Group Type Response.
    public mutating func append(
        handle: AttributeHandle,
        end: AttributeHandle? = nil,
        value: RawSpan,
        to buffer: inout PacketBuffer
    ) -> Bool {
        let handlesLength = end == nil ? 2 : 4
        let length = handlesLength + min(value.byteCount, mtu - 2 - handlesLength, 255 - handlesLength)
        if entryLength == 0 {
            entryLength = length
            valueLength = value.byteCount
            buffer.overwrite(at: start + 1, with: UInt8(truncatingIfNeeded: length))
        } else if value.byteCount != valueLength || length != entryLength || buffer.count - start + length > mtu {
            return false
        }
        buffer.append(handle)
        if let end { buffer.append(end) }
        buffer.append(value.extracting(first: length - handlesLength))
        return true
    }

    /// Takes back what was written, so that an error can be answered instead.
    public func discard(from buffer: inout PacketBuffer) {
        buffer.truncate(to: start)
    }
}
