import BluetoothTypes
import ByteCoding

/// What the monitor channel tells of an adapter that has come: 16 octets.
public struct MonitorNewIndex: ~Escapable {
    /// What kind of controller it is: 0 a primary one.
    public var type: UInt8
    /// The bus it is on, as the kernel numbers them: 0 virtual, 1 USB, 3 UART.
    public var bus: UInt8
    /// Its public address; zero where it has none or it is not known yet.
    public var address: UInt64
    /// The kernel's name for it, "hci0" say, without the zeros that fill it up.
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
