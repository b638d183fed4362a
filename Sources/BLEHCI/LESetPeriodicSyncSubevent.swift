import BLEByteCoding

/// A command to choose the subevents of a periodic advertising train that the controller receives (Vol 4, Part E,
/// 7.8.127).
public struct LESetPeriodicSyncSubevent: Command, Equatable {
    public static let opcode = HCIOpcode(group: 0x08, command: 0x0084)

    /// The maximum number of subevents.
    public static let maximumCount = 128

    /// 0x0000 to 0x0EFF.
    public let syncHandle: UInt16
    /// The fields of each response besides its data.
    public let periodicAdvertisingProperties: PeriodicAdvertisingProperties
    /// The subevents, 0x00 to 0x7F each, at most ``maximumCount``.
    public let subevents: [UInt8]

    /// Creates a command.
    ///
    /// - Parameters:
    ///   - syncHandle: 0x0000 to 0x0EFF.
    ///   - periodicAdvertisingProperties: the fields of each response besides its data.
    ///   - subevents: those beyond ``maximumCount`` are dropped.
    public init(
        syncHandle: UInt16,
        periodicAdvertisingProperties: PeriodicAdvertisingProperties = [],
        subevents: [UInt8]
    ) {
        self.syncHandle = syncHandle
        self.periodicAdvertisingProperties = periodicAdvertisingProperties
        self.subevents = Array(subevents.prefix(Self.maximumCount))
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        syncHandle = try reader.readUInt16()
        periodicAdvertisingProperties = PeriodicAdvertisingProperties(rawValue: try reader.readUInt16())
        let count = Int(try reader.readUInt8())
        guard count <= Self.maximumCount else { throw .invalidValue(UInt64(count), field: "Num_Subevents") }
        subevents = [UInt8](copying: try reader.readBytes(count: count))
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(syncHandle)
        buffer.append(periodicAdvertisingProperties.rawValue)
        buffer.append(UInt8(truncatingIfNeeded: subevents.count))
        buffer.append(subevents)
    }

    /// The return parameters of LE Set Periodic Sync Subevent that follow the status.
    public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable {
        /// 0x0000 to 0x0EFF.
        public var syncHandle: UInt16

        /// Creates the return parameters of a command that succeeded.
        public init(syncHandle: UInt16) {
            self.syncHandle = syncHandle
        }

        /// Decodes the 2 bytes after the status, which was success.
        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            syncHandle = try reader.readUInt16()
        }

        /// Appends the 2 bytes after the status.
        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(syncHandle)
        }
    }
}
