import BLEGATT
import BluetoothHost
import BluetoothTypes

/// The procedure that writes a value.
public enum WriteKind: Sendable {
    /// The peer confirms. A value that is too long for one request is written in parts.
    case withResponse
    /// The peer does not confirm. The call waits until there is room for the packet. On other threads than the
    /// adapter's own (``Adapter/taskExecutor``), up to 128 values are accepted before there is room. They are sent in
    /// their order, before any later operation, which waits until they are sent. They are dropped without an error if
    /// the link ends before, or the identity of a bonded peer cannot be verified.
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

    /// Reads all values of a type (Vol 3, Part G, 4.8.2).
    ///
    /// Values may be cut: a response has room for ATT_MTU - 4 bytes of a value, at most 253. `read(_:)` with the handle
    /// reads the whole value.
    ///
    /// - Parameter uuid: the UUID of the characteristics or descriptors.
    /// - Returns: one value or more, in the order of their handles.
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses, with Attribute Not Found if it has no attribute
    ///   of this type.
    public func read(uuid: BluetoothUUID) async throws(BLEError) -> [TypedValue] {
        try await perform(ReadUsingUUID(uuid: uuid))
    }

    /// Reads the whole values of several characteristics with one request, by their value handles. There may be as many
    /// as one request has room for: (ATT_MTU - 1) / 2.
    ///
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses one of the reads or does not support the
    ///   request, and ``BLEError/invalidArgument(_:)`` if there are too many characteristics for one request.
    public func readMultiple(_ characteristics: [RemoteCharacteristic]) async throws(BLEError) -> [[UInt8]] {
        try await readMultiple(characteristics.map(\.valueHandle))
    }

    /// Reads several whole values with one request (Vol 3, Part G, 4.8.5). If the response has no room for all of them,
    /// this call reads the others one by one.
    ///
    /// - Parameter handles: the handles, two bytes of the request each. So there are at most (ATT_MTU - 1) / 2.
    /// - Returns: the values, in the order of the handles.
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses one of the reads or does not support the
    ///   request, ``BLEError/invalidArgument(_:)`` if there are too many handles for one request.
    public func readMultiple(_ handles: [AttributeHandle]) async throws(BLEError) -> [[UInt8]] {
        // A request has two handles or more (Vol 3, Part F, 3.4.4.11).
        guard let first = handles.first else { return [] }
        guard handles.count > 1 else { return [try await read(first)] }
        var values: [[UInt8]]
        do throws(BLEError) {
            values = try await perform(ReadMultipleVariableValues(handles: handles), ofSeveral: handles)
        } catch {
            guard case .invalidArgument = error else { throw error }
            let limit = (await mtu - 1) / 2
            throw .invalidArgument("one request reads at most \(limit) values on this link, not \(handles.count)")
        }
        for handle in handles.dropFirst(values.count) { values.append(try await read(handle)) }
        return values
    }

    // MARK: Writing

    /// Writes the value of a characteristic.
    ///
    /// - Parameters:
    ///   - value: at most 512 bytes; without response, also at most ATT_MTU - 3; signed, also at most ATT_MTU - 15.
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
        if try writeAtOnce(value, to: characteristic.valueHandle, kind: kind) { return }
        try await finishWriting(value, to: characteristic.valueHandle, kind: kind)
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
    ///   - value: at most 512 bytes; without response, also at most ATT_MTU - 3; signed, also at most ATT_MTU - 15.
    ///   - handle: the handle of a characteristic's value or of a descriptor.
    ///   - kind: the procedure.
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses, ``BLEError/invalidArgument(_:)`` if the value
    ///   is too long.
    public nonisolated(nonsending) func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        kind: WriteKind = .withResponse
    ) async throws(BLEError) {
        if try writeAtOnce(value, to: handle, kind: kind) { return }
        try await finishWriting(value, to: handle, kind: kind)
    }

    /// Writes without response, if the call need not wait.
    ///
    /// - Returns: whether the value was written; false for other kinds.
    private func writeAtOnce(
        _ value: [UInt8],
        to handle: AttributeHandle,
        kind: WriteKind
    ) throws(BLEError) -> Bool {
        guard kind == .withoutResponse else { return false }
        let link = try usableLink
        do throws(HostError) {
            return try host.writeAtOnce(value, to: handle, on: link)
        } catch {
            throw BLEError(error)
        }
    }

    /// Writes a value that ``writeAtOnce(_:to:kind:)`` has not written.
    private nonisolated(nonsending) func finishWriting(
        _ value: [UInt8],
        to handle: AttributeHandle,
        kind: WriteKind
    ) async throws(BLEError) {
        switch kind {
        case .withResponse, .reliable:
            try RemotePeripheral.checkLength(of: value)
            if kind == .reliable {
                try await perform(PreparedWrites([.init(handle: handle, value: value)]), of: handle)
            } else {
                try await perform(WriteWholeValue(handle: handle, value: value), of: handle)
            }
        case .withoutResponse:
            let link = try usableLink
            try await translating { () throws(HostError) in
                try await host.waitToWrite(value, to: handle, on: link)
            }
        case .signed:
            let link = try usableLink
            try await translating { () throws(HostError) in try await host.writeSigned(value, to: handle, on: link) }
        }
    }

    /// Writes several values: either all of them, or none.
    ///
    /// - Parameter writes: one value or more, of at most 512 bytes each.
    /// - Throws: ``BLEError/attribute(_:handle:)`` if the peer refuses a write, ``BLEError/invalidArgument(_:)`` if
    ///   there is no value or one is too long.
    public func writeReliably(_ writes: [ReliableWrite]) async throws(BLEError) {
        guard !writes.isEmpty else { throw .invalidArgument("there is no value to write") }
        for write in writes { try RemotePeripheral.checkLength(of: write.value) }
        let procedure = PreparedWrites(writes.map { .init(handle: $0.handle, value: $0.value) })
        try await perform(procedure, ofSeveral: writes.map(\.handle))
    }

    private static func checkLength(of value: [UInt8]) throws(BLEError) {
        guard value.count <= maximumAttributeValueLength else {
            throw .invalidArgument("a value has at most \(maximumAttributeValueLength) bytes, not \(value.count)")
        }
    }
}
