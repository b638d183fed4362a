import BluetoothTypes

/// The secret of 16 bytes that a device and its owner share. Its description does not reveal it.
public struct BindKey: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    let bytes: [UInt8]

    /// Wraps 16 bytes. Returns nil for another number; the keys of 12 bytes of MiBeacon v2 and v3 are not supported.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    /// Parses 32 hexadecimal digits in either case. Returns nil otherwise.
    public init?(hexadecimal text: some StringProtocol) {
        guard let bytes = [UInt8](hexadecimal: text) else { return nil }
        self.init(bytes)
    }

    public var description: String { "BindKey(redacted)" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
