import BLEByteCoding

/// Whether the results of a subevent and its procedure are complete, and why they are not.
public struct ChannelSoundingProgress: Hashable, Sendable {
    /// Whether more results of the procedure follow.
    public var procedureDoneStatus: ChannelSoundingDoneStatus
    /// Whether more results of the subevent follow.
    public var subeventDoneStatus: ChannelSoundingDoneStatus
    /// Bits 0 to 3: why the procedure was aborted; bits 4 to 7: why the subevent was. 0 if it was not.
    public var abortReason: UInt8

    /// Creates a progress.
    public init(
        procedureDoneStatus: ChannelSoundingDoneStatus = .complete,
        subeventDoneStatus: ChannelSoundingDoneStatus = .complete,
        abortReason: UInt8 = 0
    ) {
        self.procedureDoneStatus = procedureDoneStatus
        self.subeventDoneStatus = subeventDoneStatus
        self.abortReason = abortReason
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        // The upper half of each status is reserved.
        procedureDoneStatus = ChannelSoundingDoneStatus(rawValue: try reader.readUInt8() & 0x0F)
        subeventDoneStatus = ChannelSoundingDoneStatus(rawValue: try reader.readUInt8() & 0x0F)
        abortReason = try reader.readUInt8()
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(procedureDoneStatus.rawValue)
        buffer.append(subeventDoneStatus.rawValue)
        buffer.append(abortReason)
    }
}

/// An event with the first results of a subevent (Vol 4, Part E, 7.7.65.44).
public struct LECSSubeventResult: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x31

    /// The connection, 0x0000 to 0x0EFF; 0x0FFF in a test.
    public var connectionHandle: UInt16
    /// 0 to 3. Ignored in a test.
    public var configID: UInt8
    /// The connection event at which the procedure began.
    public var startACLConnEventCounter: UInt16
    /// The number of procedures before this one.
    public var procedureCounter: UInt16
    /// The compensation of the frequency in units of 0.01 ppm, 15 bits with a sign; 0xC000 if there is none. Only the
    /// initiator reports it.
    public var frequencyCompensation: UInt16
    /// In dBm, -127 to 20; 127 if it does not apply.
    public var referencePowerLevel: Int8
    /// Whether more results follow.
    public var progress: ChannelSoundingProgress
    /// 1 to 4; 0 if no phases are measured.
    public var numAntennaPaths: UInt8
    /// The number of steps in the event.
    public let numStepsReported: UInt8
    /// The steps as they are in the event.
    public let stepBytes: RawSpan

    /// Creates an event that borrows `stepBytes`.
    @_lifetime(copy stepBytes)
    public init(
        connectionHandle: UInt16,
        configID: UInt8,
        startACLConnEventCounter: UInt16 = 0,
        procedureCounter: UInt16 = 0,
        frequencyCompensation: UInt16 = 0xC000,
        referencePowerLevel: Int8 = 127,
        progress: ChannelSoundingProgress = .init(),
        numAntennaPaths: UInt8 = 1,
        numStepsReported: UInt8,
        stepBytes: RawSpan
    ) {
        self.connectionHandle = connectionHandle
        self.configID = configID
        self.startACLConnEventCounter = startACLConnEventCounter
        self.procedureCounter = procedureCounter
        self.frequencyCompensation = frequencyCompensation
        self.referencePowerLevel = referencePowerLevel
        self.progress = progress
        self.numAntennaPaths = numAntennaPaths
        self.numStepsReported = numStepsReported
        self.stepBytes = stepBytes
    }

    /// Decodes the event. The steps are decoded as they are iterated.
    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readUInt16() & 0x0FFF
        configID = try reader.readUInt8()
        startACLConnEventCounter = try reader.readUInt16()
        procedureCounter = try reader.readUInt16()
        frequencyCompensation = try reader.readUInt16()
        referencePowerLevel = try reader.readInt8()
        progress = try ChannelSoundingProgress(decoding: &reader)
        numAntennaPaths = try reader.readUInt8()
        numStepsReported = try reader.readUInt8()
        stepBytes = reader.readRemaining()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle)
        buffer.append(configID)
        buffer.append(startACLConnEventCounter)
        buffer.append(procedureCounter)
        buffer.append(frequencyCompensation)
        buffer.append(referencePowerLevel)
        progress.encode(into: &buffer)
        buffer.append(numAntennaPaths)
        buffer.append(numStepsReported)
        buffer.append(stepBytes)
    }

    /// An iterator over the steps, from the first.
    public var steps: ChannelSoundingSteps {
        @_lifetime(copy self)
        get { ChannelSoundingSteps(stepBytes, count: numStepsReported) }
    }
}

/// An event with further results of a subevent (Vol 4, Part E, 7.7.65.45).
public struct LECSSubeventResultContinue: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x32

    /// The connection, 0x0000 to 0x0EFF; 0x0FFF in a test.
    public var connectionHandle: UInt16
    /// 0 to 3. Ignored in a test.
    public var configID: UInt8
    /// Whether more results follow.
    public var progress: ChannelSoundingProgress
    /// 1 to 4; 0 if no phases are measured.
    public var numAntennaPaths: UInt8
    /// The number of steps in the event.
    public let numStepsReported: UInt8
    /// The steps as they are in the event.
    public let stepBytes: RawSpan

    /// Creates an event that borrows `stepBytes`.
    @_lifetime(copy stepBytes)
    public init(
        connectionHandle: UInt16,
        configID: UInt8,
        progress: ChannelSoundingProgress = .init(),
        numAntennaPaths: UInt8 = 1,
        numStepsReported: UInt8,
        stepBytes: RawSpan
    ) {
        self.connectionHandle = connectionHandle
        self.configID = configID
        self.progress = progress
        self.numAntennaPaths = numAntennaPaths
        self.numStepsReported = numStepsReported
        self.stepBytes = stepBytes
    }

    /// Decodes the event. The steps are decoded as they are iterated.
    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readUInt16() & 0x0FFF
        configID = try reader.readUInt8()
        progress = try ChannelSoundingProgress(decoding: &reader)
        numAntennaPaths = try reader.readUInt8()
        numStepsReported = try reader.readUInt8()
        stepBytes = reader.readRemaining()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle)
        buffer.append(configID)
        progress.encode(into: &buffer)
        buffer.append(numAntennaPaths)
        buffer.append(numStepsReported)
        buffer.append(stepBytes)
    }

    /// An iterator over the steps, from the first.
    public var steps: ChannelSoundingSteps {
        @_lifetime(copy self)
        get { ChannelSoundingSteps(stepBytes, count: numStepsReported) }
    }
}
