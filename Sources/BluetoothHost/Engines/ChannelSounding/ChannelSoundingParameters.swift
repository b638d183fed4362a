import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// How the procedures of Channel Sounding are performed on a link.
public struct ChannelSoundingParameters: Hashable, Sendable {
    /// The role of this device. As the reflector, the host waits for the peer to configure and start the procedures,
    /// and ``configuration`` and the properties after it are not used.
    public var role: ChannelSoundingRole
    /// The steps of the procedures. ``role`` replaces the role in it.
    public var configuration: ChannelSoundingConfiguration
    /// The number of procedures; 0 to repeat them until the session is stopped.
    public var procedureCount: UInt16
    /// The interval between the starts of procedures, in connection events: 1 to 65,535.
    public var procedureInterval: ClosedRange<UInt16>
    /// The longest time of a procedure: 0.625 ms to 40.96 s, in steps of 0.625 ms.
    public var maximumProcedureLength: Duration
    /// The antenna paths, 0 to 7, as listed in Vol 6, Part A, 5.3. 0 is one antenna at each device.
    public var antennaConfiguration: UInt8
    /// The maximum transmit power in dBm: -127 to 20.
    public var maximumTransmitPower: Int8

    /// Creates parameters. By default, one procedure of phase-based ranging is performed on one antenna of each device.
    public init(
        role: ChannelSoundingRole = .initiator,
        configuration: ChannelSoundingConfiguration = ChannelSoundingConfiguration(),
        procedureCount: UInt16 = 1,
        procedureInterval: ClosedRange<UInt16> = 1...100,
        maximumProcedureLength: Duration = .milliseconds(625),
        antennaConfiguration: UInt8 = 0,
        maximumTransmitPower: Int8 = 20
    ) {
        self.role = role
        self.configuration = configuration
        self.procedureCount = procedureCount
        self.procedureInterval = procedureInterval
        self.maximumProcedureLength = maximumProcedureLength
        self.antennaConfiguration = antennaConfiguration
        self.maximumTransmitPower = maximumTransmitPower
    }

    /// Checks what the caller has chosen.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if a value is out of its range.
    func check() throws(HostError) {
        guard role == .initiator || role == .reflector else {
            throw .invalidArgument(
                "a role in channel sounding is the initiator (0) or the reflector (1), not \(role.rawValue)"
            )
        }
        guard procedureInterval.lowerBound >= 1 else {
            throw .invalidArgument("procedures are at least 1 connection event apart, not 0")
        }
        guard lengthInUnits != nil else {
            throw .invalidArgument("a procedure takes 0.625 ms to 40.96 s, not \(maximumProcedureLength)")
        }
        guard antennaConfiguration <= 7 else {
            throw .invalidArgument("an antenna configuration is 0 to 7, not \(antennaConfiguration)")
        }
        guard (-127...20).contains(maximumTransmitPower) else {
            throw .invalidArgument("a maximum transmit power is -127 to 20 dBm, not \(maximumTransmitPower)")
        }
    }

    /// ``maximumProcedureLength`` in units of 0.625 ms; nil if it is out of its range.
    var lengthInUnits: UInt16? {
        let units = maximumProcedureLength / .microseconds(625)
        return units >= 1 && units <= 65535 ? UInt16(units) : nil
    }
}

/// The procedures of Channel Sounding that the controllers of a link perform, as they have agreed.
public struct ChannelSoundingProcedures: Hashable, Sendable {
    /// The steps of the procedures, with the role of this device.
    public let configuration: ChannelSoundingConfiguration
    /// What the peer's controller can do; nil if this host did not read it.
    public let peerCapabilities: ChannelSoundingCapabilities?
    /// The power of this device in dBm; nil if it is not known.
    public let transmitPower: Int?
    /// The interval between the starts of procedures, in connection events.
    public let procedureInterval: UInt16
    /// The number of procedures; 0 if they are repeated until one side stops them.
    public let procedureCount: UInt16
    /// The length of a subevent in microseconds.
    public let subeventLength: UInt32
}

/// What this device's controller has measured in one subevent of a procedure.
///
/// These are the raw results of the steps. A distance needs those of both devices; the host computes none.
public struct ChannelSoundingSubevent: Hashable, Sendable {
    /// The number of procedures before this one.
    public let procedureCounter: UInt16
    /// The connection event at which the procedure began.
    public let startConnectionEvent: UInt16
    /// The compensation of the frequency in units of 0.01 ppm; nil if there is none.
    public let frequencyCompensation: Int16?
    /// The reference power in dBm; nil if it does not apply.
    public let referencePower: Int?
    /// The number of antenna paths: 1 to 4; 0 if no phases are measured.
    public internal(set) var antennaPaths: UInt8
    /// Whether the subevent and its procedure are complete.
    public internal(set) var progress: ChannelSoundingProgress
    /// The number of steps.
    public internal(set) var stepCount = 0
    /// Whether steps are missing, because the controller reported more than a subevent may have, or they could not be
    /// decoded.
    public internal(set) var isTruncated = false
    /// The steps as the controller reported them; ``forEachStep(_:)`` decodes them.
    public internal(set) var stepBytes: [UInt8] = []

    /// Maximum number of steps of a subevent (Vol 6, Part H, 4.4.3.4).
    static let maximumStepCount = 160
    /// Maximum number of bytes of the steps: 160 of mode 3 with four antenna paths have 6,560.
    static let maximumByteCount = 8192

    init(_ event: borrowing LECSSubeventResult) {
        procedureCounter = event.procedureCounter
        startConnectionEvent = event.startACLConnEventCounter
        frequencyCompensation =
            event.frequencyCompensation == 0xC000 ? nil : Int16(bitPattern: event.frequencyCompensation << 1) >> 1
        referencePower = event.referencePowerLevel == 127 ? nil : Int(event.referencePowerLevel)
        antennaPaths = event.numAntennaPaths
        progress = event.progress
    }

    /// Calls `body` with each step, in order.
    ///
    /// - Throws: the error of `body`, or an error if the controller's data cannot be decoded; the steps before it were
    ///   passed to `body`.
    public func forEachStep(_ body: (borrowing ChannelSoundingStep) throws -> Void) throws {
        var steps = ChannelSoundingSteps(stepBytes.rawSpan, count: UInt8(clamping: stepCount))
        while let step = try steps.next() { try body(step) }
    }

    /// Appends the steps of an event.
    ///
    /// - Returns: the reason why they cannot be decoded, and are not appended; nil if they can.
    mutating func append(_ bytes: RawSpan, count: UInt8) -> PacketDecodingError? {
        var steps = ChannelSoundingSteps(bytes, count: count)
        do throws(PacketDecodingError) {
            while let step = try steps.next() { _ = step.mode }
        } catch {
            isTruncated = true
            return error
        }
        guard stepCount + Int(count) <= Self.maximumStepCount,
            stepBytes.count + bytes.byteCount <= Self.maximumByteCount
        else {
            isTruncated = true
            return nil
        }
        stepCount += Int(count)
        stepBytes.append(copying: bytes)
        return nil
    }
}
