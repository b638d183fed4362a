import BLEATT
import BLEByteCoding
import BluetoothTypes

// Access checks, and the effects of writes.
extension ServerSession {
    enum Direction {
        case read
        case write
    }

    /// Checks an access in the order of the specification: the attribute's permissions, then the link's security, then
    /// the app's consent (Vol 3, Part F, 3.2.5 and 4.1; Part C, 10.3.1).
    ///
    /// A client that claims a bonded device's address must encrypt the link first, whatever the attribute permits. The
    /// exception is what any client needs in order to find services. A valid signature identifies the client as well.
    ///
    /// - Parameter signature: the strength of the write's signature; nil if it has no valid one.
    func check(
        _ direction: Direction,
        _ attribute: Attribute.Metadata,
        signature: SignatureStrength? = nil
    ) throws(Interruption) {
        let (handle, permissions) = (attribute.handle, attribute.permissions)
        let isRead = direction == .read
        guard !permissions.isDisjoint(with: isRead ? .anyRead : .anyWrite) else {
            throw .error(isRead ? .readNotPermitted : .writeNotPermitted, handle)
        }
        let requirement = isRead ? permissions.readRequirement : permissions.writeRequirement
        if security.isIdentityUnverified, signature == nil, !isServedBeforeVerification(attribute, direction) {
            throw .error(requirement.errorForWantOfEncryption(security), handle)
        }
        if requirement != .none,
            let error = requirement.error(security, signature, minimumKeySize: server.minimumKeySize)
        {
            throw .error(error, handle)
        }
        if permissions.contains(isRead ? .readAuthorized : .writeAuthorized), !security.isAuthorized {
            throw authorization(of: handle, isWrite: !isRead)
        }
    }

    /// Whether a client may access an attribute before its identity is verified.
    ///
    /// Such a client may read declarations and the values of the GAP and GATT services apart from client
    /// configurations. It may also read and write Client Supported Features.
    private func isServedBeforeVerification(_ attribute: Attribute.Metadata, _ direction: Direction) -> Bool {
        switch attribute.source {
        case .handled, .clientConfiguration: return false
        case .clientSupportedFeatures: return true
        case .stored:
            guard direction == .read else { return false }
            switch attribute.type {
            case .primaryService, .secondaryService, .include, .characteristic: return true
            default: return server.isInCoreService(attribute.handle)
            }
        }
    }

    /// The value of an attribute that needs no answer of the app; nil for any other.
    func ownValue(of attribute: Attribute) -> [UInt8]? {
        switch attribute.metadata.source {
        case .stored: attribute.value
        case .handled: nil
        case .clientConfiguration:
            {
                let value = (configurations.value(at: attribute.handle) ?? []).rawValue
                return [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
            }()
        case .clientSupportedFeatures: [clientFeatures]
        }
    }

    /// Checks whether a value can be written, and returns the value after the write.
    func validate(
        _ write: AttributeWrite,
        over current: [UInt8]?,
        _ attribute: Attribute.Metadata
    ) throws(Interruption) -> [UInt8] {
        var new = write.value
        // A write at offset 0 replaces the value, and needs no copy.
        if write.offset > 0 {
            let old = current ?? server.database.attribute(attribute.handle).flatMap(ownValue) ?? []
            guard write.offset <= old.count else { throw .error(.invalidOffset, write.handle) }
            new = old.prefix(write.offset) + write.value
        }
        switch attribute.source {
        case .stored(let maximumLength):
            guard new.count <= maximumLength else { throw .error(.invalidAttributeValueLength, write.handle) }
        case .handled:
            guard new.count <= maximumAttributeValueLength else {
                throw .error(.invalidAttributeValueLength, write.handle)
            }
        case .clientConfiguration(let allowed, _):
            guard new.count == 2 else { throw .error(.invalidAttributeValueLength, write.handle) }
            let value = ClientConfiguration(rawValue: UInt16(new[0]) | UInt16(new[1]) << 8)
            guard value.isSubset(of: allowed) else { throw .error(.valueNotAllowed, write.handle) }
        case .clientSupportedFeatures:
            guard let features = new.first else { throw .error(.invalidAttributeValueLength, write.handle) }
            // A client must not clear a bit that it has set (Vol 3, Part G, 7.2), also not by an earlier write of a
            // queue.
            let kept = clientFeatures | (current?.first ?? 0)
            guard features & kept == kept else { throw .error(.valueNotAllowed, write.handle) }
        }
        return new
    }

    /// Replaces a stored value in its memory, if nothing but the server needs the new value: there are no events.
    ///
    /// - Returns: false if nothing was written.
    func overwrite(_ attribute: (index: Int, metadata: Attribute.Metadata), with value: RawSpan) -> Bool {
        guard !reportsEvents, case .stored(let maximumLength) = attribute.metadata.source,
            value.byteCount <= maximumLength
        else { return false }
        server.setValue(copying: value, at: attribute.index)
        return true
    }

    /// Writes a value that needs no answer of the app.
    func apply(
        _ write: AttributeWrite,
        to attribute: (index: Int, metadata: Attribute.Metadata),
        isCommand: Bool
    ) throws(Interruption) {
        let value = try validate(write, over: nil, attribute.metadata)
        switch attribute.metadata.source {
        case .stored:
            server.setValue(value, at: attribute.index)
            emit(.written(write, isCommand: isCommand))
        case .handled: break
        case .clientConfiguration(_, let valueHandle):
            let new = ClientConfiguration(rawValue: UInt16(value[0]) | UInt16(value[1]) << 8)
            configure(write.handle, of: valueHandle, new)
        case .clientSupportedFeatures:
            let new = ClientSupportedFeatures(rawValue: value.first ?? 0).intersection(server.clientFeatures).rawValue
            guard new != clientFeatures else { return }
            clientFeatures = new
            persistentStateChanged()
        }
    }

    private func configure(
        _ handle: AttributeHandle,
        of valueHandle: AttributeHandle,
        _ new: ClientConfiguration
    ) {
        let isFirst = configurations.value(at: handle) == nil
        let old = configurations.set(new, at: handle)
        // The client is not informed of changes before its subscription.
        if valueHandle == server.serviceChanged, old.isEmpty { announcedRevision = server.revision }
        if new != old { emit(.configured(valueHandle, from: old, to: new)) }
        if new != old || isFirst { persistentStateChanged() }
    }
}
