import BLEByteCoding
import BluetoothTypes

/// A command to return buffers of the host to the controller, by connection (Vol 4, Part E, 7.3.40).
///
/// The controller answers only if it fails, with Command Complete. The command uses no command credit.
public struct HostNumberOfCompletedPackets: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = HCIOpcode(group: 0x03, command: 0x0035)

    /// The number of packets of one connection that the host has processed.
    public struct Completion: Sendable, Equatable {
        /// The connection that the packets belong to.
        public var connectionHandle: ConnectionHandle
        /// The number of the packets since the last such command for the connection.
        public var hostNumCompletedPackets: UInt16

        /// Creates a completion.
        public init(connectionHandle: ConnectionHandle, hostNumCompletedPackets: UInt16) {
            self.connectionHandle = connectionHandle
            self.hostNumCompletedPackets = hostNumCompletedPackets
        }
    }

    /// The maximum number of connections in one command.
    public static let maximumCount = 63

    /// The completions: at most ``maximumCount``, one for each connection.
    public let completions: [Completion]

    /// - Parameter completions: cut after ``maximumCount``.
    public init(_ completions: [Completion]) {
        self.completions = Array(completions.prefix(Self.maximumCount))
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        var completions: [Completion] = []
        for _ in 0..<(try reader.readUInt8()) {
            let handle = try reader.readConnectionHandle()
            completions.append(
                Completion(connectionHandle: handle, hostNumCompletedPackets: try reader.readUInt16())
            )
        }
        try reader.requireEnd()
        self.completions = completions
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: completions.count))
        for completion in completions {
            buffer.append(completion.connectionHandle.rawValue)
            buffer.append(completion.hostNumCompletedPackets)
        }
    }
}
