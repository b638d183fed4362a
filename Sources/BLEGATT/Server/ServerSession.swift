import BLEATT
import BLEByteCoding
import BluetoothTypes

/// One client of a server: its configuration, its prepared writes, the request that is being served.
///
/// If a request needs an answer of the app, the session keeps the request. With the answer, it processes the request
/// again from its start. So the code of each request is the same for values of the server and of the app. The request
/// does not reach attributes that were published since it arrived. The same applies to prepared writes.
///
/// ## Outputs
///
/// The session does not call its owner. Each method that takes an input returns what to send or to ask. It queues the
/// rest as ``ServerOutput``s: actions of the client, and changes of ``persistentState``. After each input, and before
/// it sends a response, the owner takes them with ``takeOutput()`` until that returns nil. The inputs are
/// ``receive(_:into:)``, ``complete(_:with:into:)``, ``complete(_:isAuthorized:into:)``, ``receiveVerified(_:_:)``,
/// ``restore(_:)``, ``forgetClient()``, ``serviceChangedConfirmed(revision:)``, ``servicesPublished()`` and
/// ``servicesRemoved(in:)``. The session is in a consistent state then, so the owner may pass it further inputs before
/// it takes the next output.
public final class ServerSession {
    /// Maximum number of prepared parts, and of bytes in them, per client.
    public struct Limits: Sendable {
        /// Maximum number of prepared parts: further ones are refused with Prepare Queue Full.
        public var preparedWrites = 64
        /// Maximum number of bytes in all prepared parts together: further ones are refused with Prepare Queue Full.
        public var preparedBytes = 8192

        /// Creates the default limits: 64 parts, 8192 bytes.
        public init() {}
    }

    /// The server whose database the client uses.
    public let server: Server
    let limits: Limits
    /// Whether the app can be asked to authorize this client. If not, accesses that need authorization are refused
    /// until ``/BluetoothTypes/LinkSecurity/isAuthorized`` is set.
    public var asksForAuthorization = false
    // State that each request needs is private: the compiler then proves that accesses to it do not overlap.
    private var linkSecurity = LinkSecurity()
    private var bearerMTU = Bearer.defaultMTU
    private var putsOutEvents = false
    private let outputs = OutputQueue<ServerOutput>()

    var configurations = ClientConfigurations() {
        didSet { server.noteConfigurationChange() }
    }
    var unpublished = UnpublishedConfigurations()
    var clientFeatures: UInt8 = 0
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var awareness: ChangeAwareness
    /// The revision that the client knows of by Service Changed; nil if it has missed one.
    var announcedRevision: UInt64?
    private(set) var preparedWrites: [PreparedWrite] = []
    private var preparedBytes = 0

    private var pending: Pending?
    private var nextIdentifier: UInt64 = 0
    private var isAuthorizationRefused = false
    /// The number of the client's bearers (Vol 3, Part G, 2.5.2.1). The owner counts the enhanced bearers.
    public var bearerCount = 1
    /// The revision for which this bearer was sent Database Out Of Sync.
    var refusedRevision: UInt64?

    /// Creates the session of a client that has just connected. Restore a bonded client's state with ``restore(_:)``.
    public init(server: Server, limits: Limits = Limits()) {
        self.server = server
        self.limits = limits
        awareness = ChangeAwareness(revision: server.revision)
        announcedRevision = server.revision
    }

    /// The security state of the client's link.
    public var security: LinkSecurity {
        get { linkSecurity }
        set { linkSecurity = newValue }
    }

    /// ATT_MTU of the client's bearer.
    public var mtu: Int {
        get { bearerMTU }
        set { bearerMTU = newValue }
    }

    /// Whether the session puts out ``ServerOutput/event(_:)``. An owner that sets it must take the outputs after each
    /// input.
    public var reportsEvents: Bool {
        get { putsOutEvents }
        set { putsOutEvents = newValue }
    }

    // MARK: Requests and commands

    /// Takes a request or command from the client.
    public func receive(_ pdu: RawSpan, into buffer: inout PacketBuffer) -> ServerAction {
        guard let opcode = pdu[checked: 0].flatMap(ATTOpcode.init(rawValue:)) else { return .nothing }
        switch opcode.kind {
        case .command: return receiveCommand(opcode, pdu)
        case .request:
            guard pending == nil else { return .nothing }
            isAuthorizationRefused = false
            if let error = checkAwareness(opcode, pdu) {
                error.encode(into: &buffer)
                return .respond
            }
            return process(opcode, pdu, answers: [:], revision: server.revision, into: &buffer)
        default: return .nothing
        }
    }

    /// Takes the app's answer to an access: a value that was read, or nothing for a write.
    ///
    /// An answer that no request waits for is ignored.
    public func complete(
        _ identifier: UInt64,
        with result: Result<[UInt8], ATTErrorCode>,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        guard let pending, pending.identifier == identifier, case .access(let access) = pending.question else {
            return .nothing
        }
        var answers = pending.answers
        answers[access] = result
        return resume(pending, answers, into: &buffer)
    }

    /// Returns the identifier of the fixed channel's request, if the app has not answered it and it needs an attribute
    /// in `range`; otherwise nil. An Execute Write Request needs the attributes of all prepared writes.
    public func awaitedAnswer(in range: HandleRange) -> UInt64? {
        pending?.awaitedAnswer(in: range, queue: preparedWrites)
    }

    /// The identifier of the fixed channel's request, if it waits for the app's decision whether the client is
    /// authorized; otherwise nil.
    public var awaitedAuthorization: UInt64? { pending?.awaitedAuthorization }

    /// Takes the app's answer to a request for authorization. An authorized client stays so on this connection.
    ///
    /// An answer that no request waits for is ignored. So is consent to a request that arrived before
    /// ``forgetClient()``.
    public func complete(
        _ identifier: UInt64,
        isAuthorized: Bool,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        guard let pending, pending.identifier == identifier, case .authorization = pending.question else {
            return .nothing
        }
        if isAuthorized, !pending.isOfForgottenClient { security.isAuthorized = true }
        isAuthorizationRefused = !isAuthorized
        return resume(pending, pending.answers, into: &buffer)
    }

    private func resume(
        _ request: Pending,
        _ answers: [AccessRequest.Kind: Result<[UInt8], ATTErrorCode>],
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        pending = nil
        guard let opcode = request.request.first.flatMap(ATTOpcode.init(rawValue:)) else { return .nothing }
        if request.isOfForgottenClient {
            ErrorResponse(requestOpcode: opcode.rawValue, handle: .invalid, error: .unlikelyError).encode(into: &buffer)
            return .respond
        }
        return process(opcode, request.request.rawSpan, answers: answers, revision: request.revision, into: &buffer)
    }

    private func process(
        _ opcode: ATTOpcode,
        _ pdu: RawSpan,
        answers: [AccessRequest.Kind: Result<[UInt8], ATTErrorCode>],
        revision: UInt64,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        let start = buffer.count
        var context = RequestContext(session: self, answers: answers, revision: revision)
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
                let identifier = makeIdentifier()
                pending = Pending(
                    request: [UInt8](copying: pdu),
                    identifier: identifier,
                    question: .access(kind),
                    answers: answers,
                    revision: revision
                )
                return .access(AccessRequest(identifier: identifier, kind: kind))
            case .authorization(let handle, let isWrite):
                let identifier = makeIdentifier()
                pending = Pending(
                    request: [UInt8](copying: pdu),
                    identifier: identifier,
                    question: .authorization,
                    answers: answers,
                    revision: revision
                )
                return .authorize(AuthorizationRequest(identifier: identifier, handle: handle, isWrite: isWrite))
            }
        }
    }

    private func makeIdentifier() -> UInt64 {
        nextIdentifier += 1
        return nextIdentifier
    }

    /// Executes a command. Commands of a client that has missed a change are ignored until it knows of it
    /// (Vol 3, Part G, 2.5.2.1).
    private func receiveCommand(_ opcode: ATTOpcode, _ pdu: RawSpan) -> ServerAction {
        guard !isOutOfSync else { return .nothing }
        switch opcode {
        case .writeCommand:
            guard let command = try? WriteCommand(decoding: pdu) else { return .nothing }
            return write(command.value, to: command.handle, signature: nil)
        case .signedWriteCommand:
            guard let command = try? SignedWriteCommand(decoding: pdu) else { return .nothing }
            // Verification writes to the disk, so the server verifies only writes that it would execute.
            guard acceptsSignedWrite(to: command.handle) else { return .nothing }
            let message = pdu.extracting(first: pdu.byteCount - SignedWriteCommand.signatureLength)
            return .verify(
                SignedWrite(
                    message: [UInt8](copying: message),
                    signature: [UInt8](copying: command.signature),
                    revision: server.revision
                )
            )
        default:
            return .nothing
        }
    }

    /// Whether a write with the strongest signature would be executed. Only values of characteristics with the property
    /// Authenticated Signed Writes accept signed writes (Vol 3, Part G, 3.3.1.1 and 4.9.2).
    private func acceptsSignedWrite(to handle: AttributeHandle) -> Bool {
        guard let attribute = server.database.lookUp(handle),
            server.database.permitsSignedWrites(at: attribute.index)
        else { return false }
        return (try? check(.write, attribute.metadata, signature: .authenticated)) != nil
    }

    /// Executes a signed write whose signature is valid, unless its attribute was removed since it arrived.
    public func receiveVerified(_ write: SignedWrite, _ strength: SignatureStrength) -> ServerAction {
        var reader = ByteReader(write.message.rawSpan)
        guard !isOutOfSync, (try? reader.readUInt8()) == ATTOpcode.signedWriteCommand.rawValue,
            let handle = try? AttributeHandle(reader.readUInt16()),
            let attribute = server.database.lookUp(handle), attribute.metadata.publishedAt <= write.revision
        else { return .nothing }
        return self.write(reader.readRemaining(), to: handle, signature: strength)
    }

    /// Executes a write command; a write that is not allowed is ignored (Vol 3, Part F, 3.4.5.3).
    private func write(
        _ value: RawSpan,
        to handle: AttributeHandle,
        signature: SignatureStrength?
    ) -> ServerAction {
        guard let attribute = server.database.lookUp(handle), value.byteCount <= maximumAttributeValueLength else {
            return .nothing
        }
        do throws(Interruption) {
            try check(.write, attribute.metadata, signature: signature)
            if overwrite(attribute, with: value) { return .nothing }
            let write = AttributeWrite(handle: handle, offset: 0, value: [UInt8](copying: value))
            if case .handled = attribute.metadata.source {
                return .access(AccessRequest(identifier: makeIdentifier(), kind: .write(write, isCommand: true)))
            }
            try apply(write, to: attribute, isCommand: true)
        } catch {}
        return .nothing
    }

    /// Asks the app to authorize the client. Refuses if the app cannot be asked or has already refused.
    func authorization(of handle: AttributeHandle, isWrite: Bool) -> Interruption {
        asksForAuthorization && !isAuthorizationRefused
            ? .authorization(handle, isWrite: isWrite) : .error(.insufficientAuthorization, handle)
    }

    // MARK: Bearers

    /// Exchanges the state of the fixed channel's bearer with that of an enhanced bearer.
    ///
    /// Each property is loaded and stored only, so that the compiler still proves that accesses to it do not overlap.
    func exchange(_ bearer: inout BearerState) {
        let fixed = BearerState(
            mtu: bearerMTU,
            preparedWrites: preparedWrites,
            preparedBytes: preparedBytes,
            pending: pending,
            isAuthorizationRefused: isAuthorizationRefused,
            refusedRevision: refusedRevision
        )
        bearerMTU = bearer.mtu
        preparedWrites = bearer.preparedWrites
        preparedBytes = bearer.preparedBytes
        pending = bearer.pending
        isAuthorizationRefused = bearer.isAuthorizationRefused
        refusedRevision = bearer.refusedRevision
        bearer = fixed
    }

    // MARK: Outputs

    /// Removes and returns the oldest output; nil if there is none.
    public func takeOutput() -> ServerOutput? { outputs.take() }

    func emit(_ event: @autoclosure () -> ServerEvent) {
        if reportsEvents { outputs.append(.event(event())) }
    }

    /// Queues the output that ``persistentState`` has changed. Consecutive changes are merged into one output, so the
    /// queue of an owner that never takes outputs and does not set ``reportsEvents`` holds one element.
    func persistentStateChanged() {
        if outputs.last != .persistentStateChanged { outputs.append(.persistentStateChanged) }
    }

    // MARK: Prepared writes

    func prepare(_ write: AttributeWrite, at revision: UInt64) throws(Interruption) {
        guard preparedWrites.count < limits.preparedWrites,
            preparedBytes + write.value.count <= limits.preparedBytes
        else { throw .error(.prepareQueueFull, write.handle) }
        preparedWrites.append(PreparedWrite(write: write, revision: revision))
        preparedBytes += write.value.count
    }

    /// The prepared parts, with consecutive parts merged. A merged part keeps the revision of its first part, which is
    /// the lowest: if the attribute is newer than that, the queue fails anyway.
    func mergedPreparedWrites() -> [PreparedWrite] {
        var merged: [PreparedWrite] = []
        for prepared in preparedWrites {
            let write = prepared.write
            if let index = merged.lastIndex(where: { $0.write.handle == write.handle }),
                merged[index].write.offset + merged[index].write.value.count == write.offset
            {
                let first = merged[index]
                let value = first.write.value + write.value
                merged[index] = PreparedWrite(
                    write: AttributeWrite(handle: write.handle, offset: first.write.offset, value: value),
                    revision: first.revision
                )
            } else {
                merged.append(prepared)
            }
        }
        return merged
    }

    func dropPreparedWrites() {
        preparedWrites = []
        preparedBytes = 0
    }

    /// Drops the prepared writes of the fixed channel. Its request that waits for the app is answered with an error.
    func forgetRequests() {
        dropPreparedWrites()
        var request = pending
        request?.isOfForgottenClient = true
        pending = request
    }
}
