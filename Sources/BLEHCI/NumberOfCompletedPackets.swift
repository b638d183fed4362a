import BLEByteCoding
import BluetoothTypes

/// An event that reports how many data packets left the controller's buffers, by connection (Vol 4, Part E, 7.7.19).
public struct NumberOfCompletedPackets: EventParameters, ~Escapable {
    public static let code: UInt8 = 0x13

    /// The number of packets of one connection that were sent or flushed.
    public struct Completion: Sendable, Equatable {
        /// The length of a completion in bytes.
        static let length = 4

        /// The connection that the packets belong to.
        public var connectionHandle: ConnectionHandle
        /// The number of the packets since the last such event for the connection.
        public var numCompletedPackets: UInt16

        /// Creates a completion.
        @inlinable
        public init(connectionHandle: ConnectionHandle, numCompletedPackets: UInt16) {
            self.connectionHandle = connectionHandle
            self.numCompletedPackets = numCompletedPackets
        }
    }

    /// An iterator over the connections of one event.
    public struct Completions: ~Escapable {
        @usableFromInline
        var reader: ByteReader

        @_lifetime(copy reader)
        init(reader: ByteReader) {
            self.reader = reader
        }

        /// The next connection's completion; nil at the end.
        @inlinable
        public mutating func next() -> Completion? {
            guard
                let handle = try? reader.readUInt16(),
                let numCompletedPackets = try? reader.readUInt16()
            else { return nil }
            return Completion(connectionHandle: ConnectionHandle(handle), numCompletedPackets: numCompletedPackets)
        }
    }

    let pairs: RawSpan

    /// - Throws: an error if the length does not match the number of connections in the first byte.
    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        let numHandles = Int(try reader.readUInt8())
        pairs = try reader.readBytes(count: numHandles * Completion.length)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: pairs.byteCount / Completion.length))
        buffer.append(pairs)
    }

    /// The number of connections in the event.
    public var numHandles: Int { pairs.byteCount / Completion.length }

    /// An iterator over the connections, from the first.
    public var completions: Completions {
        @_lifetime(copy self)
        get { Completions(reader: ByteReader(pairs)) }
    }

    /// Appends the whole event packet for one connection.
    public static func encodePacket(_ completion: Completion, into buffer: inout PacketBuffer) {
        let start = buffer.beginEvent(code: code)
        buffer.append(UInt8(1))
        buffer.append(completion.connectionHandle.rawValue)
        buffer.append(completion.numCompletedPackets)
        buffer.endEvent(startingAt: start)
    }
}
