import BLEByteCoding
import BluetoothTypes

/// The monitor channel's information about an added adapter: 16 bytes.
public struct MonitorNewIndex: ~Escapable {
    /// The type of controller. 0 is a primary controller.
    public var type: UInt8
    /// The bus, in the kernel's numbers: 0 virtual, 1 USB, 3 UART.
    public var bus: UInt8
    /// The public address; zero if there is none or it is not known yet.
    public var address: UInt64
    /// The kernel's name of the adapter, such as "hci0", without the trailing zeros.
    public var name: RawSpan

    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        type = try reader.readUInt8()
        bus = try reader.readUInt8()
        address = try reader.readUInt48()
        let field = try reader.readBytes(count: 8)
        var length = 0
        while let octet = field[checked: length], octet != 0 { length += 1 }
        name = field.extracting(first: length)
        try reader.requireEnd()
    }
}
