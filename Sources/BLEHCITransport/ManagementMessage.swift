import BLEByteCoding
import BluetoothTypes

/// A command of the kernel's Bluetooth management interface, as BlueZ's mgmt-api.txt describes it.
///
/// A message begins with its code, the adapter's number and the length of its parameters, 16 bits each.
enum ManagementCommand: Equatable {
    /// Reads what the kernel knows about an adapter. It also answers for one that is down.
    case readInformation(index: UInt16)

    var opcode: UInt16 {
        switch self {
        case .readInformation: 0x0004
        }
    }

    var index: UInt16 {
        switch self {
        case .readInformation(let index): index
        }
    }

    var bytes: [UInt8] {
        [
            UInt8(truncatingIfNeeded: opcode), UInt8(truncatingIfNeeded: opcode >> 8),
            UInt8(truncatingIfNeeded: index), UInt8(truncatingIfNeeded: index >> 8), 0, 0,
        ]
    }
}

/// A message of the kernel's management interface.
enum ManagementEvent: Equatable {
    /// The result of a command: a status, 0 for success, and what the command returns.
    case completed(opcode: UInt16, index: UInt16, status: UInt8, parameters: [UInt8])
    /// An adapter was added or removed, or its state has changed. A program that opens or closes the user channel of an
    /// adapter causes this too.
    case adapterChanged(index: UInt16)
    /// A message that does not matter here.
    case other(code: UInt16)

    /// - Throws: an error if the message is truncated, or longer than its header says.
    init(decoding message: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(message)
        let code = try reader.readUInt16()
        let index = try reader.readUInt16()
        let length = Int(try reader.readUInt16())
        let parameters = try reader.readBytes(count: length)
        try reader.requireEnd()
        var content = ByteReader(parameters)
        switch code {
        case 0x0001, 0x0002:  // Command Complete, Command Status
            let opcode = try content.readUInt16()
            let status = try content.readUInt8()
            let rest = [UInt8](copying: content.readRemaining())
            self = .completed(opcode: opcode, index: index, status: status, parameters: rest)
        // Index Added and Removed, New Settings, then the same of unconfigured and of all adapters.
        case 0x0004, 0x0005, 0x0006, 0x001D, 0x001E, 0x001F, 0x0020, 0x0021: self = .adapterChanged(index: index)
        default: self = .other(code: code)
        }
    }
}

/// What the kernel knows about an adapter: the result of Read Controller Information.
struct ManagementInformation: Equatable {
    /// The public address; nil if the kernel has not read it.
    var address: DeviceAddress?
    /// The kernel's bits of the current settings; bit 0 is set if the adapter is powered.
    var settings: UInt32

    /// - Throws: an error if the parameters are truncated. Later kernels may append fields.
    init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        let address = try reader.readUInt48()
        self.address = address == 0 ? nil : DeviceAddress(address, isRandom: false)
        try reader.skip(1 + 2 + 4)  // version, manufacturer, supported settings
        settings = try reader.readUInt32()
        try reader.skip(3 + 249 + 11)  // class, name, short name
    }
}
