import BLEByteCoding

/// A command to set the data of one or more periodic advertising subevents (Vol 4, Part E, 7.8.125).
public struct LESetPeriodicAdvertisingSubeventData: Command, Equatable {
    public static let opcode = HCIOpcode(group: 0x08, command: 0x0082)

    /// The data of one subevent, and the response slots in which it asks for responses.
    public struct Subevent: Sendable, Equatable {
        /// 0x00 to 0x7F.
        public var subevent: UInt8
        /// The first response slot that is used, 0x00 to 0xFF.
        public var responseSlotStart: UInt8
        /// The number of response slots from the first on, 0x00 to 0xFF.
        public var responseSlotCount: UInt8
        /// At most 249 bytes.
        public var data: PeriodicAdvertisingSubeventPayload

        /// Creates the data of a subevent.
        public init(
            subevent: UInt8,
            responseSlotStart: UInt8 = 0,
            responseSlotCount: UInt8,
            data: PeriodicAdvertisingSubeventPayload
        ) {
            self.subevent = subevent
            self.responseSlotStart = responseSlotStart
            self.responseSlotCount = responseSlotCount
            self.data = data
        }

        /// The number of bytes of the subevent in a command.
        public var byteCount: Int { 4 + data.bytes.count }
    }

    /// The maximum number of subevents in one command.
    public static let maximumCount = 15
    /// The maximum number of bytes of all subevents in one command, counted by ``Subevent/byteCount``.
    public static let maximumLength = 253

    /// 0x00 to 0xEF.
    public let advertisingHandle: UInt8
    /// The subevents, at most ``maximumCount``.
    public let subevents: [Subevent]

    /// Creates a command for the first subevents that fit it.
    ///
    /// - Parameters:
    ///   - advertisingHandle: 0x00 to 0xEF.
    ///   - subevents: those beyond ``maximumCount`` or ``maximumLength`` are dropped.
    public init(advertisingHandle: UInt8, subevents: [Subevent]) {
        self.advertisingHandle = advertisingHandle
        self.subevents = Array(subevents.prefix(Self.count(fitting: subevents)))
    }

    /// Returns how many of the subevents, from the first on, fit one command.
    public static func count(fitting subevents: some Sequence<Subevent>) -> Int {
        var (count, length) = (0, 0)
        for subevent in subevents {
            length += subevent.byteCount
            guard count < maximumCount, length <= maximumLength else { break }
            count += 1
        }
        return count
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        let count = try reader.readUInt8()
        guard count <= Self.maximumCount else { throw .invalidValue(UInt64(count), field: "Num_Subevents") }
        var subevents: [Subevent] = []
        for _ in 0..<count {
            let subevent = try reader.readUInt8()
            let start = try reader.readUInt8()
            let slots = try reader.readUInt8()
            let data = try PeriodicAdvertisingSubeventPayload(decoding: &reader)
            subevents.append(
                Subevent(subevent: subevent, responseSlotStart: start, responseSlotCount: slots, data: data)
            )
        }
        try reader.requireEnd()
        self.subevents = subevents
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(UInt8(truncatingIfNeeded: subevents.count))
        for subevent in subevents {
            buffer.append(subevent.subevent)
            buffer.append(subevent.responseSlotStart)
            buffer.append(subevent.responseSlotCount)
            subevent.data.encode(into: &buffer)
        }
    }

    /// The return parameters of LE Set Periodic Advertising Subevent Data that follow the status.
    public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable {
        /// 0x00 to 0xEF.
        public var advertisingHandle: UInt8

        /// Creates the return parameters of a command that succeeded.
        public init(advertisingHandle: UInt8) {
            self.advertisingHandle = advertisingHandle
        }

        /// Decodes the byte after the status, which was success.
        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            advertisingHandle = try reader.readUInt8()
        }

        /// Appends the byte after the status.
        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(advertisingHandle)
        }
    }
}
