import BLEByteCoding

/// A request of the peripheral to the central for security (Vol 3, Part H, 3.6.7).
public struct SecurityRequest: SecurityManagerCommand {
    public static let code = CommandCode.securityRequest

    /// The requirements of the peripheral (AuthReq).
    public var authenticationRequirements: AuthenticationRequirements

    /// A Security Request with its parameter.
    public init(authenticationRequirements: AuthenticationRequirements) {
        self.authenticationRequirements = authenticationRequirements
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.securityRequest)
        authenticationRequirements = AuthenticationRequirements(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(authenticationRequirements.rawValue)
    }
}
