import BluetoothTypes

/// The identifier of one link, unique during the host's life. Connection handles are reused.
public struct LinkIdentifier: Hashable, Sendable {
    /// A serial number above the twelve bits of the connection handle: later links have greater values.
    let value: UInt64

    init(handle: ConnectionHandle, serial: UInt64) {
        value = serial << 12 | UInt64(handle.rawValue)
    }

    var handle: ConnectionHandle { ConnectionHandle(UInt16(truncatingIfNeeded: value)) }
}
