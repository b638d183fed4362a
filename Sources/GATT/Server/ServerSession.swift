import ATT
import BluetoothTypes
import ByteCoding

/// One client of a server: its configuration, its prepared writes, the request that is being served.
///
/// A request that needs the app is kept and, with the app's answer, processed again from its start: so each request is
/// written down once, whether its values are the server's or the app's.
public final class ServerSession {
    /// How many parts, and how many octets of them, a client may prepare.
    public struct Limits: Sendable {
        public var preparedWrites = 64
        public var preparedOctets = 8192

        public init() {}
    }

    public let server: Server
    private let limits: Limits
    public var security = LinkSecurity()
    /// ATT_MTU of the client's bearer.
    public var mtu = Bearer.defaultMTU
    /// Called with what the client does.
    public var onEvent: ((ServerEvent) -> Void)?
    /// Verifies a signed write: handle, value and signature; without it signed writes are dropped.
    public var verifySignature: ((_ handle: AttributeHandle, _ value: RawSpan, _ signature: RawSpan) -> Bool)?

    private(set) var configurations: [AttributeHandle: ClientConfiguration] = [:]
    private(set) var clientFeatures: UInt8 = 0
    private var preparedWrites: [AttributeWrite] = []
    private var preparedOctets = 0

    private var pending: Pending?
    private var nextIdentifier: UInt64 = 0
    private var awareness: Awareness

    /// A request that waits for the app.
    private struct Pending {
        let request: [UInt8]
        let identifier: UInt64
        let access: AccessRequest.Kind
        var answers: [AccessRequest.Kind: Result<[UInt8], ATT.ErrorCode>]
    }

    /// Whether the client knows the database as it is (Vol 3, Part G, 2.5.2.1).
    private enum Awareness: Equatable {
        case aware(revision: UInt64)
        case unaware
        /// Database Out Of Sync has been answered, or the Database Hash read; the next request makes the client aware of
        /// this revision.
        case told(revision: UInt64)
    }

    /// Stops a request: an error for the client, or a question to the app.
    enum Interruption: Error {
        case error(ATT.ErrorCode, AttributeHandle)
        case access(AccessRequest.Kind)
    }

    public init(server: Server, limits: Limits = Limits()) {
        self.server = server
        self.limits = limits
        awareness = .aware(revision: server.revision)
    }

    // MARK: Requests and commands

    /// Takes a request or command from the client.
    public func receive(_ pdu: RawSpan, into buffer: inout PacketBuffer) -> ServerAction {
        guard let opcode = pdu[checked: 0].flatMap(Opcode.init(rawValue:)) else { return .nothing }
        switch opcode.kind {
        case .command: return receiveCommand(opcode, pdu)
        case .request:
            guard pending == nil else { return .nothing }
            if let action = checkAwareness(opcode, pdu, into: &buffer) { return action }
            return process(opcode, pdu, answers: [:], into: &buffer)
        default: return .nothing
        }
    }

    /// Takes the app's answer to an access: a value that was read, or nothing for one that was written.
    ///
    /// An answer to what nobody waits for any more is ignored.
    public func complete(
        _ identifier: UInt64,
        with result: Result<[UInt8], ATT.ErrorCode>,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        guard var pending, pending.identifier == identifier else { return .nothing }
        self.pending = nil
        pending.answers[pending.access] = result
        guard let opcode = pending.request.first.flatMap(Opcode.init(rawValue:)) else { return .nothing }
        return process(opcode, pending.request.rawSpan, answers: pending.answers, into: &buffer)
    }

    private func process(
        _ opcode: Opcode,
        _ pdu: RawSpan,
        answers: [AccessRequest.Kind: Result<[UInt8], ATT.ErrorCode>],
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        let start = buffer.count
        var context = RequestContext(session: self, answers: answers)
        do throws(Interruption) {
            try context.process(opcode, pdu, into: &buffer)
            return .respond
        } catch {
            buffer.truncate(to: start)
            switch error {
            case .error(let code, let handle):
                ErrorResponse(requestOpcode: opcode.rawValue, handle: handle, error: code).encode(into: &buffer)
                return .respond
            case .access(let kind):
                nextIdentifier += 1
                pending = Pending(
                    request: [UInt8](copying: pdu),
                    identifier: nextIdentifier,
                    access: kind,
                    answers: answers
                )
                return .access(AccessRequest(identifier: nextIdentifier, kind: kind))
            }
        }
    }

    private func receiveCommand(_ opcode: Opcode, _ pdu: RawSpan) -> ServerAction {
        // Until its next request, a client that was told is still unaware (Vol 3, Part G, 2.5.2.1).
        guard case .aware = currentAwareness() else { return .nothing }
        switch opcode {
        case .writeCommand:
            guard let command = try? WriteCommand(decoding: pdu) else { return .nothing }
            return write(command.value, to: command.handle)
        case .signedWriteCommand:
            guard let command = try? SignedWriteCommand(decoding: pdu), let verifySignature,
                verifySignature(command.handle, command.value, command.signature)
            else { return .nothing }
            return write(command.value, to: command.handle)
        default:
            return .nothing
        }
    }

    /// Carries a command out; what is not allowed is ignored (Vol 3, Part F, 3.4.5.3).
    private func write(_ value: RawSpan, to handle: AttributeHandle) -> ServerAction {
        guard let index = server.database.index(of: handle) else { return .nothing }
        let write = AttributeWrite(handle: handle, offset: 0, value: [UInt8](copying: value))
        do throws(Interruption) {
            try check(.write, server.database.attributes[index])
            if case .handled = server.database.attributes[index].content {
                nextIdentifier += 1
                return .access(AccessRequest(identifier: nextIdentifier, kind: .write(write, isCommand: true)))
            }
            try apply(write, at: index, isCommand: true)
        } catch {}
        return .nothing
    }

    // MARK: Values

    enum Direction {
        case read
        case write
    }

    /// Checks an access in the order that the specification gives: whether it is permitted at all, then the link's
    /// security, then the app's consent (Vol 3, Part F, 3.2.5 and 4.1; Part C, 10.3.1).
    func check(_ direction: Direction, _ attribute: Attribute) throws(Interruption) {
        let permissions = attribute.permissions
        let isRead = direction == .read
        let any: AttributePermissions =
            isRead
            ? [.read, .readEncrypted, .readAuthenticated, .readAuthorized]
            : [.write, .writeEncrypted, .writeAuthenticated, .writeAuthorized]
        guard !permissions.isDisjoint(with: any) else {
            throw .error(isRead ? .readNotPermitted : .writeNotPermitted, attribute.handle)
        }
        let needsAuthentication = permissions.contains(isRead ? .readAuthenticated : .writeAuthenticated)
        let needsEncryption = needsAuthentication || permissions.contains(isRead ? .readEncrypted : .writeEncrypted)
        if needsEncryption, !security.isEncrypted {
            throw .error(security.hasKey ? .insufficientEncryption : .insufficientAuthentication, attribute.handle)
        }
        if needsAuthentication, !security.isAuthenticated {
            throw .error(.insufficientAuthentication, attribute.handle)
        }
        if needsEncryption, security.keySize < server.minimumKeySize {
            throw .error(.encryptionKeySizeTooShort, attribute.handle)
        }
        if permissions.contains(isRead ? .readAuthorized : .writeAuthorized), !security.isAuthorized {
            throw .error(.insufficientAuthorization, attribute.handle)
        }
    }

    /// The value of an attribute that needs no app.
    func ownValue(of attribute: Attribute) -> [UInt8]? {
        switch attribute.content {
        case .stored(let value, _): value
        case .handled: nil
        case .clientConfiguration:
            {
                let value = configurations[attribute.handle, default: []].rawValue
                return [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
            }()
        case .clientSupportedFeatures: [clientFeatures]
        }
    }

    /// Checks whether a value that needs no app can be written, and gives the value that there would be.
    func validate(_ write: AttributeWrite, over current: [UInt8]?, _ attribute: Attribute) throws(Interruption)
        -> [UInt8]
    {
        let old = current ?? ownValue(of: attribute) ?? []
        guard write.offset <= old.count else { throw .error(.invalidOffset, write.handle) }
        let new = Array(old.prefix(write.offset)) + write.value
        switch attribute.content {
        case .stored(_, let maximumLength):
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
            // A client may not take back what it has said (Vol 3, Part G, 7.2).
            guard features & clientFeatures == clientFeatures else { throw .error(.valueNotAllowed, write.handle) }
        }
        return new
    }

    /// Writes a value that needs no app.
    func apply(_ write: AttributeWrite, at index: Int, isCommand: Bool) throws(Interruption) {
        let attribute = server.database.attributes[index]
        let value = try validate(write, over: nil, attribute)
        switch attribute.content {
        case .stored:
            server.setValue(value, at: index)
            onEvent?(.written(write, isCommand: isCommand))
        case .handled: break
        case .clientConfiguration(_, let valueHandle):
            let new = ClientConfiguration(rawValue: UInt16(value[0]) | UInt16(value[1]) << 8)
            let old = configurations.updateValue(new, forKey: attribute.handle) ?? []
            if new != old { onEvent?(.configured(valueHandle, from: old, to: new)) }
        case .clientSupportedFeatures:
            // Robust caching and multiple notifications; EATT is not offered.
            let wasRobust = usesRobustCaching
            clientFeatures = (value.first ?? 0) & 0x05
            // What has changed before the client cared it has not missed.
            if !wasRobust { awareness = .aware(revision: server.revision) }
        }
    }

    func emit(_ event: ServerEvent) {
        onEvent?(event)
    }

    // MARK: Prepared writes

    func prepare(_ write: AttributeWrite) throws(Interruption) {
        guard preparedWrites.count < limits.preparedWrites,
            preparedOctets + write.value.count <= limits.preparedOctets
        else { throw .error(.prepareQueueFull, write.handle) }
        preparedWrites.append(write)
        preparedOctets += write.value.count
    }

    /// The parts that are prepared, those that continue one another put together.
    func mergedPreparedWrites() -> [AttributeWrite] {
        var merged: [AttributeWrite] = []
        for write in preparedWrites {
            if let last = merged.lastIndex(where: { $0.handle == write.handle }),
                merged[last].offset + merged[last].value.count == write.offset
            {
                merged[last] = AttributeWrite(
                    handle: write.handle,
                    offset: merged[last].offset,
                    value: merged[last].value + write.value
                )
            } else {
                merged.append(write)
            }
        }
        return merged
    }

    func dropPreparedWrites() {
        preparedWrites = []
        preparedOctets = 0
    }

    // MARK: Awareness

    private var usesRobustCaching: Bool { clientFeatures & 0x01 != 0 }

    private func currentAwareness() -> Awareness {
        guard usesRobustCaching else { return .aware(revision: server.revision) }
        switch awareness {
        case .aware(let revision), .told(let revision): if revision != server.revision { awareness = .unaware }
        case .unaware: break
        }
        return awareness
    }

    /// Answers a client that has missed a change of the database and uses robust caching.
    private func checkAwareness(_ opcode: Opcode, _ pdu: RawSpan, into buffer: inout PacketBuffer) -> ServerAction? {
        switch currentAwareness() {
        case .aware: return nil
        case .told:
            awareness = .aware(revision: server.revision)
            return nil
        case .unaware:
            awareness = .told(revision: server.revision)
            // Reading the Database Hash by its type tells the client as well (Vol 3, Part G, 2.5.2.1).
            if opcode == .readByTypeRequest, let request = try? ReadByTypeRequest(decoding: pdu),
                request.type == .databaseHash
            {
                return nil
            }
            ErrorResponse(requestOpcode: opcode.rawValue, handle: .invalid, error: .databaseOutOfSync)
                .encode(into: &buffer)
            return .respond
        }
    }

    /// The client has confirmed Service Changed, and so knows the database.
    public func serviceChangedConfirmed() {
        awareness = .aware(revision: server.revision)
    }

    // MARK: Server-initiated

    /// What the client wants to be sent of the characteristic whose value has this handle.
    public func configuration(of valueHandle: AttributeHandle) -> ClientConfiguration {
        for (handle, configuration) in configurations where !configuration.isEmpty {
            if case .clientConfiguration(_, valueHandle)? = server.database.attribute(handle)?.content {
                return configuration
            }
        }
        return []
    }

    /// Writes a notification; the value is cut to what fits.
    public func notify(_ value: RawSpan, of handle: AttributeHandle, into buffer: inout PacketBuffer) {
        HandleValueNotification(handle: handle, value: value.extracting(first: min(value.byteCount, mtu - 3)))
            .encode(into: &buffer)
    }

    /// Writes an indication; the value is cut to what fits.
    public func indicate(_ value: RawSpan, of handle: AttributeHandle, into buffer: inout PacketBuffer) {
        HandleValueIndication(handle: handle, value: value.extracting(first: min(value.byteCount, mtu - 3)))
            .encode(into: &buffer)
    }

    // MARK: Bonds

    /// What outlives the connection of a bonded client.
    public struct PersistentState: Hashable, Sendable {
        public var configurations: [AttributeHandle: ClientConfiguration]
        public var clientFeatures: UInt8

        public init(configurations: [AttributeHandle: ClientConfiguration] = [:], clientFeatures: UInt8 = 0) {
            self.configurations = configurations
            self.clientFeatures = clientFeatures
        }
    }

    public var persistentState: PersistentState {
        get { PersistentState(configurations: configurations, clientFeatures: clientFeatures) }
        set {
            configurations = newValue.configurations
            clientFeatures = newValue.clientFeatures
        }
    }
}
