import BLEByteCoding

/// One step of a subevent of Channel Sounding, as one of the two devices has measured it (Vol 4, Part E, 7.7.65.44).
///
/// ``data`` is decoded only if it is asked for. What is in it depends on ``mode``, on the role of the device, and on
/// the number of antenna paths, which the event has.
public struct ChannelSoundingStep: ~Escapable {
    /// What the step measures.
    public var mode: ChannelSoundingMode
    /// The channel, 0 to 78. Channel n is at 2402 + n MHz.
    public var channel: UInt8
    /// The results; at most 255 bytes.
    public var data: RawSpan

    /// Creates a step that borrows `data`.
    @_lifetime(copy data)
    public init(mode: ChannelSoundingMode, channel: UInt8, data: RawSpan) {
        self.mode = mode
        self.channel = channel
        self.data = data
    }

    @_lifetime(copy reader)
    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        mode = ChannelSoundingMode(rawValue: try reader.readUInt8())
        channel = try reader.readUInt8()
        data = try reader.readBytes(count: Int(try reader.readUInt8()))
    }

    /// Appends the step, as it is in an event.
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(mode.rawValue)
        buffer.append(channel)
        buffer.append(lengthPrefixed: data)
    }

    /// The measurements of the packet of the step; nil if its mode has no packet, and if the controller reports no
    /// data.
    ///
    /// - Parameter antennaPaths: Num_Antenna_Paths of the event.
    /// - Throws: an error if the data does not have the length that its mode needs.
    public func packet(antennaPaths: UInt8) throws(PacketDecodingError) -> ChannelSoundingPacket? {
        guard !data.isEmpty else { return nil }
        var reader = ByteReader(data)
        switch mode {
        case .mode0: return try ChannelSoundingPacket(decodingMode0: &reader)
        case .mode1:
            let packet = try ChannelSoundingPacket(decodingMode1: &reader, hasPhases: data.byteCount > 6)
            try reader.requireEnd()
            return packet
        case .mode3:
            return try ChannelSoundingPacket(decodingMode1: &reader, hasPhases: try hasPhases(antennaPaths))
        default: return nil
        }
    }

    /// The tones of the step; none if its mode has no tones, and if the controller reports no data.
    ///
    /// - Parameter antennaPaths: Num_Antenna_Paths of the event.
    /// - Throws: an error if the data does not have the length that its mode needs.
    @_lifetime(copy self)
    public func tones(antennaPaths: UInt8) throws(PacketDecodingError) -> ChannelSoundingTones {
        var reader = ByteReader(data)
        switch mode {
        case _ where data.isEmpty: return ChannelSoundingTones(antennaPermutation: 0, bytes: data)
        case .mode2: break
        case .mode3: try reader.skip(try hasPhases(antennaPaths) ? 14 : 6)
        default: return ChannelSoundingTones(antennaPermutation: 0, bytes: data.extracting(0..<0))
        }
        let permutation = try reader.readUInt8()
        let bytes = reader.readRemaining()
        let length = ChannelSoundingTones.toneLength
        // An event without antenna paths does not say how many tones there are.
        let count = antennaPaths == 0 ? bytes.byteCount / length : Int(antennaPaths) + 1
        guard bytes.byteCount == length * count else {
            throw .invalidLength(data.byteCount, field: "Step_Data_Length")
        }
        return ChannelSoundingTones(antennaPermutation: permutation, bytes: bytes)
    }

    /// Whether a step of mode 3 has the phases of its packet. Its length shows it: there is one tone for each antenna
    /// path, and one in the extension slot.
    private func hasPhases(_ antennaPaths: UInt8) throws(PacketDecodingError) -> Bool {
        switch data.byteCount - ChannelSoundingTones.toneLength * (Int(antennaPaths) + 1) {
        case 7: return false
        case 15: return true
        default: throw .invalidLength(data.byteCount, field: "Step_Data_Length")
        }
    }
}

/// What a device has measured with the packet of a step.
public struct ChannelSoundingPacket: Hashable, Sendable {
    /// Bits 0 to 3: 0 if the access address was received without errors, 1 with errors, 2 if it was not found. Bits 4
    /// to 7: the number of bit errors of the sequence, at most 14; 15 if there is none or more.
    public var quality: UInt8
    /// The likelihood of an attack: 0x00, extremely unlikely, to 0x06, extremely likely; 0xFF if it is not known. Nil
    /// in mode 0.
    public var nadm: UInt8?
    /// The signal strength in dBm; nil if it is not known.
    public var rssi: Int8?
    /// The antenna, 1 to 4.
    public var antenna: UInt8
    /// The offset of the peer's frequency in units of 0.01 ppm, signed; nil if it is not known. Only the initiator
    /// measures it, in mode 0.
    public var frequencyOffset: Int16?
    /// The time between the arrival and the departure of packets less the nominal time, in units of 0.5 ns; nil if it
    /// is not known, and in mode 0. For the initiator it is the time of flight twice plus what the reflector's value
    /// contains.
    public var timeDifference: Int16?
    /// The phases of a sounding sequence, in the form of ``ChannelSoundingTone``; nil if they were not measured, or if
    /// one of them is not available.
    public var phases: (first: ChannelSoundingTone, second: ChannelSoundingTone)? {
        firstPhase.flatMap { first in secondPhase.map { (first, $0) } }
    }
    private var firstPhase: ChannelSoundingTone?
    private var secondPhase: ChannelSoundingTone?

    fileprivate init(decodingMode0 reader: inout ByteReader) throws(PacketDecodingError) {
        quality = try reader.readUInt8()
        rssi = Self.known(try reader.readInt8())
        antenna = try reader.readUInt8()
        guard !reader.isAtEnd else { return }
        let offset = try reader.readUInt16()
        // 15 bits with a sign.
        frequencyOffset = offset == 0xC000 ? nil : Int16(bitPattern: offset << 1) >> 1
        try reader.requireEnd()
    }

    fileprivate init(decodingMode1 reader: inout ByteReader, hasPhases: Bool) throws(PacketDecodingError) {
        quality = try reader.readUInt8()
        nadm = try reader.readUInt8()
        rssi = Self.known(try reader.readInt8())
        let time = Int16(bitPattern: try reader.readUInt16())
        timeDifference = time == .min ? nil : time
        antenna = try reader.readUInt8()
        guard hasPhases else { return }
        firstPhase = Self.known(try reader.readUInt32())
        secondPhase = Self.known(try reader.readUInt32())
    }

    private static func known(_ rssi: Int8) -> Int8? { rssi == 0x7F ? nil : rssi }

    private static func known(_ phase: UInt32) -> ChannelSoundingTone? {
        phase == 0xFFFF_FFFF ? nil : ChannelSoundingTone(phase: phase)
    }
}

/// The phase and amplitude of a received tone: its phase correction term (PCT).
public struct ChannelSoundingTone: Hashable, Sendable {
    /// The in-phase part: -2048 to 2047.
    public var inPhase: Int16
    /// The quadrature part: -2048 to 2047.
    public var quadrature: Int16
    /// Bits 0 to 3: the quality of the tone: 0 high, 1 medium, 2 low, 3 unavailable. Bits 4 to 7: 0 if it is not in the
    /// extension slot, 1 if no tone is expected in it, 2 if one is expected.
    public var quality: UInt8

    /// - Parameter phase: 12 bits for each part.
    fileprivate init(phase: UInt32, quality: UInt8 = 0) {
        inPhase = Int16(truncatingIfNeeded: phase << 4) >> 4
        quadrature = Int16(truncatingIfNeeded: phase >> 8) >> 4
        self.quality = quality
    }
}

/// The tones of a step, one for each antenna path and one in the extension slot.
public struct ChannelSoundingTones: ~Escapable {
    /// The number of bytes of a tone.
    static let toneLength = 4

    /// The order of the antenna paths, 0 to 23, as listed in Vol 6, Part H, 4.7.5.
    public let antennaPermutation: UInt8
    private let bytes: RawSpan

    @_lifetime(copy bytes)
    fileprivate init(antennaPermutation: UInt8, bytes: RawSpan) {
        self.antennaPermutation = antennaPermutation
        self.bytes = bytes
    }

    /// The number of tones.
    public var count: Int { bytes.byteCount / Self.toneLength }

    /// The tone at `index`; nil at the end.
    public subscript(index: Int) -> ChannelSoundingTone? {
        guard index >= 0, index < count else { return nil }
        let start = index * Self.toneLength
        let parts = (0..<3).reduce(UInt32(0)) { $0 | UInt32(bytes[checked: start + $1] ?? 0) << (8 * UInt32($1)) }
        return ChannelSoundingTone(phase: parts, quality: bytes[checked: start + 3] ?? 0)
    }
}

/// The steps of an event, decoded one by one without allocation.
public struct ChannelSoundingSteps: ~Escapable {
    private var reader: ByteReader
    private var left: UInt8

    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan, count: UInt8) {
        reader = ByteReader(bytes)
        left = count
    }

    /// The next step; nil at the end.
    ///
    /// - Throws: an error if the step is truncated or bytes follow the last one. No more steps follow then.
    @_lifetime(copy self)
    public mutating func next() throws(PacketDecodingError) -> ChannelSoundingStep? {
        guard left > 0 else {
            defer { _ = reader.readRemaining() }
            try reader.requireEnd()
            return nil
        }
        left -= 1
        do throws(PacketDecodingError) {
            return try ChannelSoundingStep(decoding: &reader)
        } catch {
            left = 0
            _ = reader.readRemaining()
            throw error
        }
    }
}
