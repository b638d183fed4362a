import BLEByteCoding
import BluetoothTypes

/// Writes the entries of a list response directly into the packet, as long as they fit and their values have the length
/// of the first.
///
/// Used for Read By Type and Read By Group Type responses. Their entries have one or two handles and a value (Vol 3,
/// Part F, 3.4.4.2 and 3.4.4.10).
public struct ListResponseWriter: Sendable {
    private let mtu: Int
    private let start: Int
    private var entryLength = 0
    private var valueLength = 0

    /// Starts a response in `buffer`. ATT_MTU is at least 23.
    public init(_ opcode: ATTOpcode, mtu: Int, in buffer: inout PacketBuffer) {
        self.mtu = mtu
        start = buffer.count
        buffer.append(opcode.rawValue)
        buffer.append(UInt8(0))
    }

    /// Whether no entry has been written.
    public var isEmpty: Bool { entryLength == 0 }

    /// Appends an entry.
    ///
    /// Values are truncated to the PDU and to the entry's length field. The lengths before truncation must be equal. So
    /// two long values of different lengths are not listed together, even if they have the same truncated length.
    ///
    /// - Parameters:
    ///   - handle: the attribute's handle, or the first of a group.
    ///   - end: the group's last handle, for a Read By Group Type Response.
    ///   - value: the attribute's value.
    ///   - buffer: the buffer in which the response was started.
    /// - Returns: false if the entry does not fit, or its value has another length than the first.
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

    /// Removes the response from the buffer, so that an error can be sent instead.
    public func discard(from buffer: inout PacketBuffer) {
        buffer.truncate(to: start)
    }
}
