import BLEGATT
import BluetoothHost
import BluetoothTypes

/// The procedure that writes a value.
public enum WriteKind: Sendable {
    /// The peer confirms. A value that is too long for one request is written in parts.
    case withResponse
    /// The peer does not confirm. The call waits until there is room for the packet. On other threads than the
    /// adapter's own (``Adapter/taskExecutor``), up to 128 values are accepted before there is room. They are sent in
    /// their order, before any later operation, or are lost with the link. A later operation waits until they are sent.
    case withoutResponse
    /// The peer echoes the value before anything is written, so that this side can verify it.
    case reliable
    /// The peer does not confirm, but a signature identifies the writer (Vol 3, Part G, 4.9.2). This is for bonded
    /// peers whose link is not encrypted. Over an encrypted link the value is written without a response.
    case signed
}

/// One of the values that ``RemotePeripheral/writeReliably(_:)`` writes.
public struct ReliableWrite: Hashable, Sendable {
    /// The handle of a characteristic's value or of a descriptor.
    public let handle: AttributeHandle
    /// The new value: at most 512 bytes.
    public let value: [UInt8]

    /// Creates a write to the attribute with a handle.
    public init(_ value: [UInt8], to handle: AttributeHandle) {
        self.handle = handle
        self.value = value
    }

    /// Creates a write to the value of a characteristic.
    public init(_ value: [UInt8], to characteristic: RemoteCharacteristic) {
        self.init(value, to: characteristic.valueHandle)
    }

    /// Creates a write to the value of a descriptor.
    public init(_ value: [UInt8], to descriptor: RemoteDescriptor) {
        self.init(value, to: descriptor.handle)
    }
}

// Values, by what discovery returns or by handle.
extension RemotePeripheral {
    // MARK: Reading

    /// Reads the whole value of a characteristic, up to 512 bytes.
    ///
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses, also if its services have changed since the
    ///   characteristic was discovered.
    public nonisolated(nonsending) func read(
        _ characteristic: RemoteCharacteristic
    ) async throws(BLEError) -> [UInt8] {
        try await perform(
            ReadLongValue(handle: characteristic.valueHandle),
            of: characteristic.valueHandle
        )
    }

    /// Reads the whole value of a descriptor, up to 512 bytes.
    ///
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses.
    public nonisolated(nonsending) func read(_ descriptor: RemoteDescriptor) async throws(BLEError) -> [UInt8] {
        try await perform(ReadLongValue(handle: descriptor.handle), of: descriptor.handle)
    }

    /// Reads the whole value of an attribute, up to 512 bytes.
    ///
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses.
    public nonisolated(nonsending) func read(_ handle: AttributeHandle) async throws(BLEError) -> [UInt8] {
        try await perform(ReadLongValue(handle: handle), of: handle)
    }

    /// Reads all values of a type.
    public func read(uuid: BluetoothUUID) async throws(BLEError) -> [TypedValue] {
        try await perform(ReadUsingUUID(uuid: uuid))
    }

    /// Reads the values of several characteristics, of variable length, with one request.
    public func readMultiple(_ characteristics: [RemoteCharacteristic]) async throws(BLEError) -> [[UInt8]] {
        try await readMultiple(characteristics.map(\.valueHandle))
    }

    /// Reads several values of variable length with one request.
    public func readMultiple(_ handles: [AttributeHandle]) async throws(BLEError) -> [[UInt8]] {
        try await perform(ReadMultipleVariableValues(handles: handles), ofSeveral: handles)
    }

    // MARK: Writing

    /// Writes the value of a characteristic.
    ///
    /// - Parameters:
    ///   - value: at most 512 bytes; without response, at most ATT_MTU - 3 bytes; signed, at most ATT_MTU - 15 bytes.
    ///   - characteristic: a characteristic of this peer.
    ///   - kind: the procedure. The peer decides whether it accepts it; a peer ignores a write without response that it
    ///     does not accept.
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses, ``BLEError/invalidArgument(_:)`` if the value
    ///   is too long.
    public nonisolated(nonsending) func write(
        _ value: [UInt8],
        to characteristic: RemoteCharacteristic,
        kind: WriteKind = .withResponse
    ) async throws(BLEError) {
        try await write(value, to: characteristic.valueHandle, kind: kind)
    }

    /// Writes the value of a descriptor, with a response. To turn notifications on and off, use
    /// ``subscribe(to:preferring:bufferedValueLimit:)``.
    ///
    /// - Parameters:
    ///   - value: at most 512 bytes.
    ///   - descriptor: a descriptor of this peer.
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses, ``BLEError/invalidArgument(_:)`` if the value
    ///   is too long.
    public nonisolated(nonsending) func write(
        _ value: [UInt8],
        to descriptor: RemoteDescriptor
    ) async throws(BLEError) {
        try await write(value, to: descriptor.handle)
    }

    /// Writes the value of an attribute.
    ///
    /// - Parameters:
    ///   - value: at most 512 bytes; without response, at most ATT_MTU - 3 bytes; signed, at most ATT_MTU - 15 bytes.
    ///   - handle: the handle of a characteristic's value or of a descriptor.
    ///   - kind: the procedure.
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses, ``BLEError/invalidArgument(_:)`` if the value
    ///   is too long.
    public nonisolated(nonsending) func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        kind: WriteKind = .withResponse
    ) async throws(BLEError) {
        switch kind {
        case .withResponse, .reliable:
            guard value.count <= maximumAttributeValueLength else {
                throw .invalidArgument("a value has at most 512 bytes, not \(value.count)")
            }
            if kind == .reliable {
                try await perform(PreparedWrites([.init(handle: handle, value: value)]), of: handle)
            } else {
                try await perform(WriteWholeValue(handle: handle, value: value), of: handle)
            }
        case .withoutResponse:
            let link = try usableLink
            try await translating { () throws(HostError) in
                try await host.writeWithoutResponse(value, to: handle, on: link)
            }
        case .signed:
            let link = try usableLink
            try await translating { () throws(HostError) in try await host.writeSigned(value, to: handle, on: link) }
        }
    }

    /// Writes several values: either all of them, or none.
    public func writeReliably(_ writes: [ReliableWrite]) async throws(BLEError) {
        let procedure = PreparedWrites(writes.map { .init(handle: $0.handle, value: $0.value) })
        try await perform(procedure, ofSeveral: writes.map(\.handle))
    }
}
