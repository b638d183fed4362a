import BluetoothTypes
import ByteCoding

/// Adds a device's identity and keys to the resolving list (Vol 4, Part E, 7.8.38).
public struct LEAddDeviceToResolvingList: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0027)

    public var peerIdentityAddress: DeviceAddress
    /// Zero when the peer uses no resolvable private addresses.
    public var peerIRK: UInt128
    /// Zero when the controller is to use no resolvable private addresses with this peer.
    public var localIRK: UInt128

    public init(peerIdentityAddress: DeviceAddress, peerIRK: UInt128, localIRK: UInt128) {
        self.peerIdentityAddress = peerIdentityAddress
        self.peerIRK = peerIRK
        self.localIRK = localIRK
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        peerIdentityAddress = try reader.readDeviceAddress("Peer_Identity_Address")
        peerIRK = try reader.readUInt128()
        localIRK = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(peerIdentityAddress)
        buffer.append(peerIRK)
        buffer.append(localIRK)
    }
}

/// Takes a device off the resolving list (Vol 4, Part E, 7.8.39).
public struct LERemoveDeviceFromResolvingList: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0028)

    public var peerIdentityAddress: DeviceAddress

    public init(peerIdentityAddress: DeviceAddress) {
        self.peerIdentityAddress = peerIdentityAddress
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        peerIdentityAddress = try reader.readDeviceAddress("Peer_Identity_Address")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(peerIdentityAddress)
    }
}

/// Empties the resolving list (Vol 4, Part E, 7.8.40).
public struct LEClearResolvingList: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0029)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// Reads how many devices the resolving list holds (Vol 4, Part E, 7.8.41).
public struct LEReadResolvingListSize: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x002A)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var resolvingListSize: UInt8

        public init(resolvingListSize: UInt8) {
            self.resolvingListSize = resolvingListSize
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            resolvingListSize = try reader.readUInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(resolvingListSize)
        }
    }
}

/// Reads the resolvable private address that a peer uses now (Vol 4, Part E, 7.8.42).
public struct LEReadPeerResolvableAddress: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x002B)

    public var peerIdentityAddress: DeviceAddress

    public init(peerIdentityAddress: DeviceAddress) {
        self.peerIdentityAddress = peerIdentityAddress
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        peerIdentityAddress = try reader.readDeviceAddress("Peer_Identity_Address")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(peerIdentityAddress)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var peerResolvableAddress: DeviceAddress

        public init(peerResolvableAddress: DeviceAddress) {
            self.peerResolvableAddress = peerResolvableAddress
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            peerResolvableAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.appendUInt48(peerResolvableAddress.value)
        }
    }
}

/// Reads the resolvable private address used now for a peer (Vol 4, Part E, 7.8.43).
public struct LEReadLocalResolvableAddress: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x002C)

    public var peerIdentityAddress: DeviceAddress

    public init(peerIdentityAddress: DeviceAddress) {
        self.peerIdentityAddress = peerIdentityAddress
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        peerIdentityAddress = try reader.readDeviceAddress("Peer_Identity_Address")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(peerIdentityAddress)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var localResolvableAddress: DeviceAddress

        public init(localResolvableAddress: DeviceAddress) {
            self.localResolvableAddress = localResolvableAddress
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            localResolvableAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.appendUInt48(localResolvableAddress.value)
        }
    }
}

/// Turns address resolution in the controller on or off (Vol 4, Part E, 7.8.44).
public struct LESetAddressResolutionEnable: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x002D)

    public var addressResolutionEnable: Bool

    public init(addressResolutionEnable: Bool) {
        self.addressResolutionEnable = addressResolutionEnable
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        addressResolutionEnable = try reader.readFlag("Address_Resolution_Enable")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(flag: addressResolutionEnable)
    }
}

/// Sets how long the controller keeps a resolvable private address (Vol 4, Part E, 7.8.45).
public struct LESetResolvablePrivateAddressTimeout: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x002E)

    /// In seconds, 1 to 0x0E10.
    public var rpaTimeout: UInt16

    public init(rpaTimeout: UInt16 = 0x0384) {
        self.rpaTimeout = rpaTimeout
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        rpaTimeout = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(rpaTimeout)
    }
}

/// Says whether a peer's identity address is accepted although it has a key (Vol 4, Part E, 7.8.77).
public struct LESetPrivacyMode: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x004E)

    public var peerIdentityAddress: DeviceAddress
    public var privacyMode: PrivacyMode

    public init(peerIdentityAddress: DeviceAddress, privacyMode: PrivacyMode = .network) {
        self.peerIdentityAddress = peerIdentityAddress
        self.privacyMode = privacyMode
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        peerIdentityAddress = try reader.readDeviceAddress("Peer_Identity_Address")
        privacyMode = try reader.readValue("Privacy_Mode")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(peerIdentityAddress)
        buffer.append(privacyMode.rawValue)
    }
}

/// Whether a peer on the resolving list may use its identity address (Vol 6, Part B, 4.7).
public enum PrivacyMode: UInt8, Sendable {
    /// Only resolvable private addresses are accepted.
    case network = 0x00
    /// The identity address is accepted too.
    case device = 0x01
}
