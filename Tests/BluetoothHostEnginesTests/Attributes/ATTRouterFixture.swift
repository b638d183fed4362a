import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BLEL2CAP
import BLESMP
import BluetoothTypes

@testable import BluetoothHost

/// A router with a host that records the PDUs that it would send, and the names of the calls that end.
///
/// The server has two characteristics: ``value`` is provided by an app and can be subscribed to, ``stored`` is stored
/// by the server.
final class ATTRouterFixture {
    static let value = AttributeHandle(3)
    static let configuration = AttributeHandle(4)
    static let stored = AttributeHandle(6)

    private static let link = LinkIdentifier(handle: ConnectionHandle(0x40), serial: 1)

    var router: ATTRouter
    /// The number of frames of apps for which the outbound queue has room.
    var room = 1000
    var isGateOpen = true {
        didSet { router.client.isHeld = !isGateOpen }
    }
    var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var sent: [[UInt8]] = []
    private(set) var ended: [String] = []
    /// The recorded effects of the client and the session.
    private(set) var effects: [String] = []
    /// The accesses that wait for the app's answer.
    private(set) var accesses: [UInt64] = []
    private(set) var verifications = 0
    /// Called with the name of each call that ends.
    var whenEnded: (String) -> Void = { _ in }
    private var runs: [(run: ProcedureRun, name: String, isFailed: () -> Bool)] = []

    /// - Parameter features: the value that the peer writes to Client Supported Features; nil for none.
    init(isSubscribed: Bool = true, features: UInt8? = nil) throws {
        let server = BLEGATT.Server()
        let definitions = [
            ServiceDefinition(
                uuid: "FFF0",
                characteristics: [
                    CharacteristicDefinition(
                        uuid: "FFF1",
                        properties: [.read, .notify, .indicate],
                        permissions: .read,
                        value: .handled
                    ),
                    CharacteristicDefinition(
                        uuid: "FFF2",
                        properties: .read,
                        permissions: .read,
                        value: .stored([0x2A])
                    ),
                ]
            )
        ]
        _ = try server.publish(definitions + (features == nil ? [] : [.genericAttribute]))
        router = ATTRouter(offeredMTU: 100, session: ServerSession(server: server))
        guard isSubscribed else { return }
        receive([0x12, 4, 0, 3, 0])
        // Client Supported Features of the GATT service.
        if let features { receive([0x12, 12, 0, features]) }
        _ = takeSent()
        effects = []
    }

    var conditions: ATTRouter.Conditions {
        ATTRouter.Conditions(hasRoom: room > 0, isGateOpen: isGateOpen)
    }

    func takeSent() -> [[UInt8]] {
        defer { sent = [] }
        return sent
    }

    func takeEnded() -> [String] {
        defer { ended = [] }
        return ended
    }

    // MARK: Calls

    @discardableResult
    func read(_ handle: UInt8) -> ProcedureRun {
        submit(ReadValue(handle: AttributeHandle(UInt16(handle))), "read \(handle)")
    }

    @discardableResult
    func submit<P: ClientProcedure>(_ procedure: P, _ name: String) -> ProcedureRun {
        let run = TypedProcedureRun(procedure)
        runs.append((run, name, { if case .success? = run.outcomeOfProcedure { false } else { true } }))
        let call = ProcedureCall(run: run, link: ATTRouterFixture.link, caller: .callback { _ in })
        if router.canStartAtOnce(call, isGateOpen: isGateOpen) {
            _ = router.start(call)
            if router.client.isClosed { takeClientEffects() } else { pumpClient() }
        } else {
            router.append(.procedure(call))
            pump()
        }
        return run
    }

    func write(_ number: UInt8, isSigned: Bool = false, caller: Caller = .unawaited) {
        var call = WriteCall(value: [number], handle: 9, link: ATTRouterFixture.link, caller: caller)
        if isSigned {
            call.signature = WriteCall.Signature(key: SigningKey(value: 1, isAuthenticated: false), counter: 7)
        }
        if router.canSendAtOnce(call, conditions) {
            var buffer = PacketBuffer()
            do throws(HostError) {
                let signature = try router.write(call, into: &buffer)
                end(call, signature, buffer)
            } catch {
                end("failed write \(number)")
            }
        } else {
            router.append(.write(call))
            pump()
        }
    }

    /// Requests channels; the call is named by the first.
    func openChannels(_ number: UInt8, count: UInt8 = 1) {
        var channels = ChannelIdentifierList()
        for offset in 0..<count { channels.append(ChannelIdentifier(rawValue: UInt16(number + offset))) }
        router.append(.channelRequest(channels))
        pump()
    }

    /// Removes the request for a channel whose opening is cancelled.
    func removeRequest(for number: UInt8) -> Bool {
        defer { pump() }
        return router.removeRequest(for: ChannelIdentifier(rawValue: UInt16(number)))
    }

    func notify(_ number: UInt8, caller: Caller = .unawaited) {
        if router.canNotifyAtOnce(hasRoom: room > 0) {
            var buffer = PacketBuffer()
            if router.notify([number], of: ATTRouterFixture.value, into: &buffer) { sendValue(buffer) }
            end("notification \(number)")
        } else {
            router.append(.notification(ValueCall(value: [number], handle: ATTRouterFixture.value, caller: caller)))
            pump()
        }
    }

    func indicate(_ number: UInt8, caller: Caller = .unawaited) {
        router.append(.indication(ValueCall(value: [number], handle: ATTRouterFixture.value, caller: caller)))
        pump()
    }

    /// Answers the oldest access that waits for the app.
    func answer(_ number: UInt8) {
        let answer = AnswerCall.access(accesses.removeFirst(), .success([number]))
        if router.lanes.server.isEmpty {
            var buffer = PacketBuffer()
            let action = router.answer(answer, into: &buffer)
            perform(action, buffer)
        } else {
            router.append(.answer(answer))
            pump()
        }
    }

    func cancel(_ run: ProcedureRun) {
        if let call = router.cancel(run) {
            end(call, isCancelled: true)
        } else {
            takeClientEffects()
            pumpClient()
        }
        pump()
    }

    func verificationEnded(isVerified: Bool) {
        for item in router.verificationEnded(isVerified: isVerified) { end("failed \(name(of: item.work))") }
        pump()
    }

    func endLink() {
        router.closeClient()
        takeClientEffects()
        let calls = router.removeCalls()
        for item in calls.unsent { end("failed \(name(of: item.work))") }
        if let indication = calls.unconfirmed { end("failed indication \(indication.value[0])") }
        for _ in calls.drains { end("drain") }
    }

    // MARK: The peer

    func receive(_ pdu: [UInt8]) {
        var buffer = PacketBuffer()
        let inbound = router.receive(pdu.rawSpan, isReplyUnsent: false, isConfirmationUnsent: false, into: &buffer)
        switch inbound {
        case .client(let opcode), .lateMTUResponse(let opcode), .unverifiedResponse(let opcode):
            advance(opcode, buffer)
            pump()
        case .server(let action):
            takeServerEffects()
            perform(action, buffer)
        case .reply, .mtuChanged, .oversized: sent.append([UInt8](copying: buffer.bytes))
        case .confirmed(let call):
            end("indication \(call.value[0])")
            pump()
        case .indication(let handle, _):
            router.confirm(handle, into: &buffer)
            takeClientEffects()
            sent.append([UInt8](copying: buffer.bytes))
        case .notification, .notifications, .malformed, .dropped, .commandDropped, .done: break
        }
    }

    // MARK: The shell

    func pump() {
        guard router.beginPumping() else { return }
        while pumpOnce() {}
        if router.needsVerification(isGateOpen: isGateOpen) { verifications += 1 }
    }

    private func pumpOnce() -> Bool {
        var buffer = PacketBuffer()
        switch router.pump(conditions, into: &buffer) {
        case .idle: return false
        case .started, .startedOnEnhancedBearer: break
        case .client(let opcode): advance(opcode, buffer)
        case .write(let call, let signature): end(call, signature, buffer)
        case .refusedWrite(let call, _): end("failed write \(call.value[0])")
        case .channelRequest(let channels):
            sent.append([0x14] + channels.map { UInt8($0.rawValue) })
            end(name(of: .channelRequest(channels)))
        case .notification(let call, let isWritten):
            if isWritten { sendValue(buffer) }
            end("notification \(call.value[0])")
        case .notifications(let calls):
            sendValue(buffer)
            for call in calls { end("notification \(call.value[0])") }
        case .indication(let call):
            switch router.indicate(call, at: now, into: &buffer) {
            case .written: sendValue(buffer)
            case .unsubscribed: end("indication \(call.value[0])")
            case .refused: end("failed indication \(call.value[0])")
            }
        case .server(let action):
            takeServerEffects()
            perform(action, buffer)
        }
        return true
    }

    func pumpClient() {
        guard router.canStartRequest(isGateOpen: isGateOpen) else { return }
        var buffer = PacketBuffer()
        let opcode = router.nextRequest(isGateOpen: true, into: &buffer)
        advance(opcode, buffer)
    }

    func advance(_ opcode: ATTOpcode?, _ buffer: PacketBuffer) {
        var (opcode, buffer) = (opcode, buffer)
        while takeClientEffects(), opcode == nil {
            opcode = router.nextRequest(isGateOpen: isGateOpen, into: &buffer)
        }
        guard let opcode else { return }
        if router.requestWillBeSent(opcode, at: now) { sendValue(buffer) } else { takeClientEffects() }
    }

    @discardableResult
    func takeClientEffects() -> Bool {
        guard var effect = router.takeClientEffect(continuing: false) else { return false }
        while true {
            perform(effect)
            guard let next = router.takeClientEffect(continuing: true) else { return true }
            effect = next
        }
    }

    private func takeServerEffects() {
        while let effect = router.takeServerEffect() { perform(effect) }
    }

    private func perform(_ effect: ATTEffect) {
        switch effect {
        case .ended(let call): end(call)
        case .requireSecurity(let error): effects.append("require security for \(error.rawValue)")
        case .cacheChanged: effects.append("cache changed")
        case .report: effects.append("report")
        case .keepServerState: effects.append("keep server state")
        }
    }

    private func perform(_ action: ServerAction, _ buffer: PacketBuffer) {
        switch action {
        case .respond: sent.append([UInt8](copying: buffer.bytes))
        case .access(let request): accesses.append(request.identifier)
        case .nothing, .authorize, .verify: break
        }
    }

    private func sendValue(_ buffer: PacketBuffer) {
        room -= 1
        sent.append([UInt8](copying: buffer.bytes))
    }

    private func end(_ call: WriteCall, _ signature: WriteCall.Signature?, _ buffer: PacketBuffer) {
        var buffer = buffer
        if signature != nil { buffer.append([0xD2, 9, 0, call.value[0]]) }
        sendValue(buffer)
        end("write \(call.value[0])")
    }

    private func end(_ call: ProcedureCall, isCancelled: Bool = false) {
        let name = name(of: .procedure(call))
        let isFailed = isCancelled || runs.first { $0.run === call.run }?.isFailed() ?? true
        end(isFailed ? "failed \(name)" : name)
    }

    private func name(of work: OutboundLanes.Work) -> String {
        switch work {
        case .procedure(let call): runs.first { $0.run === call.run }?.name ?? "unknown procedure"
        case .write(let call): "write \(call.value[0])"
        case .channelRequest(let channels): "request \(channels[0].rawValue)"
        case .notification(let call): "notification \(call.value[0])"
        case .indication(let call): "indication \(call.value[0])"
        case .answer: "answer"
        }
    }

    private func end(_ name: String) {
        ended.append(name)
        whenEnded(name)
    }
}

extension TypedProcedureRun {
    fileprivate var outcomeOfProcedure: Result<P.Output, ClientError>? {
        do throws(ClientError) {
            return .success(try output())
        } catch {
            return .failure(error)
        }
    }
}
