import BluetoothTypes
import ByteCoding

/// Chooses which events the controller sends (Vol 4, Part E, 7.3.1).
public struct SetEventMask: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x03, command: 0x0001)

    public var eventMask: EventMask

    public init(eventMask: EventMask = .default) {
        self.eventMask = eventMask
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        eventMask = EventMask(rawValue: try reader.readUInt64())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(eventMask.rawValue)
    }
}

/// Puts the controller back as after power on (Vol 4, Part E, 7.3.2).
public struct Reset: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x03, command: 0x0003)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// Reads the power at which a connection's packets are sent (Vol 4, Part E, 7.3.35).
public struct ReadTransmitPowerLevel: Command, Equatable {
    public static let opcode = Opcode(group: 0x03, command: 0x002D)

    public var connectionHandle: ConnectionHandle
    public var type: TransmitPowerLevelType

    public init(connectionHandle: ConnectionHandle, type: TransmitPowerLevelType = .current) {
        self.connectionHandle = connectionHandle
        self.type = type
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        type = try reader.readValue("Type")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(type.rawValue)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle
        /// In dBm.
        public var transmitPowerLevel: Int8

        public init(connectionHandle: ConnectionHandle, transmitPowerLevel: Int8) {
            self.connectionHandle = connectionHandle
            self.transmitPowerLevel = transmitPowerLevel
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
            transmitPowerLevel = try reader.readInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
            buffer.append(transmitPowerLevel)
        }
    }
}

/// Makes the controller count the host's buffers before it sends data (Vol 4, Part E, 7.3.38).
public struct SetControllerToHostFlowControl: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x03, command: 0x0031)

    public var flowControlEnable: FlowControlEnable

    public init(flowControlEnable: FlowControlEnable) {
        self.flowControlEnable = flowControlEnable
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        flowControlEnable = try reader.readValue("Flow_Control_Enable")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(flowControlEnable.rawValue)
    }
}

/// Says how much data the host can take (Vol 4, Part E, 7.3.39).
public struct HostBufferSize: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x03, command: 0x0033)

    /// Octets in one ACL data packet, without its header.
    public var hostACLDataPacketLength: UInt16
    /// Octets in one synchronous data packet, without its header.
    public var hostSynchronousDataPacketLength: UInt8
    public var hostTotalNumACLDataPackets: UInt16
    public var hostTotalNumSynchronousDataPackets: UInt16

    public init(
        hostACLDataPacketLength: UInt16,
        hostSynchronousDataPacketLength: UInt8 = 0,
        hostTotalNumACLDataPackets: UInt16,
        hostTotalNumSynchronousDataPackets: UInt16 = 0
    ) {
        self.hostACLDataPacketLength = hostACLDataPacketLength
        self.hostSynchronousDataPacketLength = hostSynchronousDataPacketLength
        self.hostTotalNumACLDataPackets = hostTotalNumACLDataPackets
        self.hostTotalNumSynchronousDataPackets = hostTotalNumSynchronousDataPackets
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        hostACLDataPacketLength = try reader.readUInt16()
        hostSynchronousDataPacketLength = try reader.readUInt8()
        hostTotalNumACLDataPackets = try reader.readUInt16()
        hostTotalNumSynchronousDataPackets = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(hostACLDataPacketLength)
        buffer.append(hostSynchronousDataPacketLength)
        buffer.append(hostTotalNumACLDataPackets)
        buffer.append(hostTotalNumSynchronousDataPackets)
    }
}

/// Chooses which events of the second page the controller sends (Vol 4, Part E, 7.3.69).
public struct SetEventMaskPage2: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x03, command: 0x0063)

    public var eventMaskPage2: EventMaskPage2

    public init(eventMaskPage2: EventMaskPage2 = []) {
        self.eventMaskPage2 = eventMaskPage2
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        eventMaskPage2 = EventMaskPage2(rawValue: try reader.readUInt64())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(eventMaskPage2.rawValue)
    }
}

/// Tells a dual-mode controller that its host speaks LE (Vol 4, Part E, 7.3.79).
public struct WriteLEHostSupport: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x03, command: 0x006D)

    public var leSupportedHost: Bool
    /// Unused; to be zero.
    public var simultaneousLEHost: UInt8

    public init(leSupportedHost: Bool = true, simultaneousLEHost: UInt8 = 0) {
        self.leSupportedHost = leSupportedHost
        self.simultaneousLEHost = simultaneousLEHost
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        leSupportedHost = try reader.readFlag("Le_Supported_Host")
        simultaneousLEHost = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(flag: leSupportedHost)
        buffer.append(simultaneousLEHost)
    }
}

/// Which transmit power ``ReadTransmitPowerLevel`` returns.
public enum TransmitPowerLevelType: UInt8, Sendable {
    case current = 0x00
    case maximum = 0x01
}

/// Which data ``SetControllerToHostFlowControl`` puts under flow control.
public enum FlowControlEnable: UInt8, Sendable {
    case off = 0x00
    case acl = 0x01
    case synchronous = 0x02
    case aclAndSynchronous = 0x03
}
