import BLEATT
import BLEByteCoding
import BluetoothTypes

// Robust caching and server-initiated PDUs.
extension ServerSession {
    private var usesRobustCaching: Bool {
        ClientSupportedFeatures(rawValue: clientFeatures).contains(.robustCaching)
    }

    /// Whether the client has missed a change of the database and asked for robust caching.
    var isOutOfSync: Bool { usesRobustCaching && !awareness.isAware(of: server.revision) }

    /// Whether the client supports Multiple Handle Value Notifications.
    public var takesMultipleNotifications: Bool {
        ClientSupportedFeatures(rawValue: clientFeatures).contains(.multipleHandleValueNotifications)
    }

    /// Records a request, and returns the error for a client that must first learn of a change
    /// (Vol 3, Part G, 2.5.2.1).
    ///
    /// A client with several bearers is sent the error once on each. Then only the Database Hash makes it aware: a
    /// further request may have been sent before the error arrived. If the client ends its other bearers, the error on
    /// the remaining one counts again.
    func checkAwareness(_ opcode: ATTOpcode, _ pdu: RawSpan) -> ErrorResponse? {
        let revision = server.revision
        let wasAware = awareness.isAware(of: revision)
        if bearerCount == 1, refusedRevision == revision { awareness.tell(of: revision) }
        awareness.requestArrived(at: revision)
        if !wasAware, awareness.isAware(of: revision) { persistentStateChanged() }
        let isRefused = isOutOfSync && refusedRevision != revision && presumesKnowledge(opcode, pdu)
        if isRefused {
            dropPreparedWrites()
            if bearerCount > 1 { refusedRevision = revision }
        }
        // A refused read of the Database Hash has told the client nothing.
        if isRefused ? bearerCount == 1 : readsDatabaseHash(opcode, pdu) { awareness.tell(of: revision) }
        return isRefused
            ? ErrorResponse(requestOpcode: opcode.rawValue, handle: .invalid, error: .databaseOutOfSync) : nil
    }

    /// Whether a request relies on known handles. Discovery does not.
    private func presumesKnowledge(_ opcode: ATTOpcode, _ pdu: RawSpan) -> Bool {
        switch opcode {
        case .readRequest, .readBlobRequest, .readMultipleRequest, .readMultipleVariableRequest, .writeRequest,
            .prepareWriteRequest:
            true
        case .executeWriteRequest: !preparedWrites.isEmpty
        case .readByTypeRequest:
            (try? ReadByTypeRequest(decoding: pdu)).map {
                $0.type != .include && $0.type != .characteristic && $0.range != .all
            } ?? false
        default: false
        }
    }

    private func readsDatabaseHash(_ opcode: ATTOpcode, _ pdu: RawSpan) -> Bool {
        switch opcode {
        case .readByTypeRequest: (try? ReadByTypeRequest(decoding: pdu))?.type == .databaseHash
        case .readRequest:
            server.databaseHashHandle.map { handle in (try? ReadRequest(decoding: pdu))?.handle == handle } ?? false
        default: false
        }
    }

    /// The revision of the database, which ``serviceChangedConfirmed(revision:)`` takes later.
    public var databaseRevision: UInt64 { server.revision }

    /// Records that the client has confirmed an indication of Service Changed, and so knows the revision of which it
    /// was queued. This does not make a client with several bearers change-aware (Vol 3, Part G, 2.5.2.1).
    public func serviceChangedConfirmed(revision: UInt64) {
        if bearerCount == 1 { awareness.confirm(revision) }
        announcedRevision = announcedRevision.map { max($0, revision) } ?? revision
        persistentStateChanged()
    }

    /// Whether the client has subscribed to Service Changed and has not confirmed the last change.
    public var isServiceChangedOwed: Bool {
        guard let handle = server.serviceChanged, configuration(of: handle).contains(.indication) else { return false }
        return announcedRevision != server.revision
    }

    /// Removes the client's configurations of services that were removed.
    public func servicesRemoved(in range: HandleRange) {
        guard range.isValid else { return }
        configurations.remove(in: range.start...range.end)
        persistentStateChanged()
    }

    // MARK: Server-initiated

    /// The client's configuration of the characteristic whose value has this handle.
    public func configuration(of valueHandle: AttributeHandle) -> ClientConfiguration {
        server.database.configurable(valueHandle).flatMap { configurations.value(at: $0.configuration.handle) } ?? []
    }

    /// The part of the client's configuration that the server may send now for the characteristic value with this
    /// handle.
    ///
    /// It is empty if the link does not meet the requirements for reading the value and subscribing to it, or if the
    /// client does not know the current database.
    public func sendable(of valueHandle: AttributeHandle) -> ClientConfiguration {
        guard let attributes = server.database.configurable(valueHandle),
            let configuration = configurations.value(at: attributes.configuration.handle), !configuration.isEmpty
        else { return [] }
        let permissions = attributes.configuration.permissions
        let valuePermissions = attributes.value.permissions
        guard !security.isIdentityUnverified else { return [] }
        // An unaware client is still sent Service Changed (Vol 3, Part G, 2.5.2.1).
        guard !isOutOfSync || valueHandle == server.serviceChanged else { return [] }
        let size = server.minimumKeySize
        guard valuePermissions.readRequirement.error(security, minimumKeySize: size) == nil,
            permissions.writeRequirement.error(security, minimumKeySize: size) == nil
        else { return [] }
        let needsAuthorization =
            valuePermissions.contains(.readAuthorized) || permissions.contains(.writeAuthorized)
        return needsAuthorization && !security.isAuthorized ? [] : configuration
    }

    /// Maximum length of a value that the server sends by itself, in bytes (Vol 3, Part F, 3.2.9 and 3.4.7).
    private var longestSentValue: Int { min(mtu - 3, maximumAttributeValueLength) }

    /// Writes a notification; the value is cut to the length that fits, and to 512 bytes.
    public func notify(_ value: RawSpan, of handle: AttributeHandle, into buffer: inout PacketBuffer) {
        HandleValueNotification(handle: handle, value: value.extracting(first: min(value.byteCount, longestSentValue)))
            .encode(into: &buffer)
    }

    /// Writes an indication; the value is cut to the length that fits, and to 512 bytes.
    public func indicate(_ value: RawSpan, of handle: AttributeHandle, into buffer: inout PacketBuffer) {
        HandleValueIndication(handle: handle, value: value.extracting(first: min(value.byteCount, longestSentValue)))
            .encode(into: &buffer)
    }
}
