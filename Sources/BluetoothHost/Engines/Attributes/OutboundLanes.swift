import BLEATT
import BLEGATT
import BLEL2CAP
import BLESMP
import BluetoothTypes
import DequeModule

/// The calls of apps on one link that wait to be sent.
///
/// ## Order
///
/// There are two lanes, and each is a queue in the order of the calls. The *client* lane holds procedures, writes
/// without response and requests for L2CAP channels. The *server* lane holds notifications, indications and answers of
/// apps. With one lane only, a slow server at the peer would stop the values for the peer's client.
///
/// If the heads of both lanes can be sent, the older call is sent first. So the first packets of all calls leave in the
/// order of the calls, except behind a blocked head:
///
/// - A procedure leaves the lane when the GATT client accepts it. A write behind it waits until the procedure's first
///   request is sent, or until Execute Write is sent for a long write.
/// - A request for channels waits like a write, but does not wait for the outbound queue. Other commands of the
///   signaling channel have no lane.
/// - A write or a notification waits until the link's outbound queue accepts another frame.
/// - While the peer is bonded but not verified, the client lane is closed. It is also closed while the link's security
///   is raised for a procedure, because the server would drop the writes that follow.
/// - An indication waits for the confirmation of the previous indication, and the values behind it wait with it. The
///   answer to a request passes them. Otherwise a missing confirmation would make the peer's request time out (Vol 3,
///   Part F, 3.3.3).
struct OutboundLanes {
    /// One call in a lane.
    struct Item {
        /// The position of the call among all calls on the link's host.
        let sequence: UInt64
        let work: Work
    }

    enum Work {
        case procedure(ProcedureCall)
        case write(WriteCall)
        /// A request for the channels with these local identifiers, which the link's channels hold.
        case channelRequest(ChannelIdentifierList)
        case notification(ValueCall)
        case indication(ValueCall)
        case answer(AnswerCall)
    }

    /// A client for which so many values wait misses the next values to several clients.
    static let broadcastLimit = 256

    private(set) var client = Deque<Item>()
    private(set) var server = Deque<Item>()
    /// Items of the server lane that are answers.
    private var answerCount = 0
    /// Items of the server lane that are notifications.
    private(set) var notificationCount = 0

    var isEmpty: Bool { client.isEmpty && server.isEmpty }

    var count: Int { client.count + server.count }

    /// Items of the server lane that are notifications or indications.
    var valueCount: Int { server.count - answerCount }

    /// Whether the value of a call to several clients waits in the server lane.
    func hasValue(of broadcast: Broadcast) -> Bool {
        server.contains { item in
            if case .broadcast(let waiting) = item.caller { waiting === broadcast } else { false }
        }
    }

    mutating func append(_ work: Work, sequence: UInt64) {
        let item = Item(sequence: sequence, work: work)
        switch work {
        case .procedure, .write, .channelRequest: client.append(item)
        case .notification, .indication, .answer:
            server.append(item)
            count(item, by: 1)
        }
    }

    mutating func popClient() -> Item? { client.popFirst() }

    mutating func popServer() -> Item? {
        guard let item = server.popFirst() else { return nil }
        count(item, by: -1)
        return item
    }

    /// Removes the oldest answer, which may pass the values before it.
    mutating func popAnswer() -> AnswerCall? {
        guard answerCount > 0 else { return nil }
        for index in server.indices {
            guard case .answer(let answer) = server[index].work else { continue }
            count(server.remove(at: index), by: -1)
            return answer
        }
        return nil
    }

    /// Removes the items of a call that is cancelled.
    ///
    /// - Returns: whether there was one.
    mutating func remove(_ call: CallToken) -> Bool {
        let before = count
        client.removeAll { $0.caller?.call == call }
        for item in server where item.caller?.call == call { count(item, by: -1) }
        server.removeAll { $0.caller?.call == call }
        return count < before
    }

    /// Removes a procedure that its caller cancels.
    mutating func remove(_ run: ProcedureRun) -> ProcedureCall? {
        let index = client.firstIndex { item in
            if case .procedure(let call) = item.work { call.run === run } else { false }
        }
        guard let index, case .procedure(let call) = client.remove(at: index).work else { return nil }
        return call
    }

    /// Removes the request for a channel, with all channels that it is for.
    ///
    /// - Returns: whether it was here.
    mutating func removeRequest(for channel: ChannelIdentifier) -> Bool {
        let index = client.firstIndex { item in
            if case .channelRequest(let channels) = item.work { channels.contains(channel) } else { false }
        }
        guard let index else { return false }
        client.remove(at: index)
        return true
    }

    /// Removes the notifications and indications of values in a range of handles.
    ///
    /// - Returns: their calls, the oldest first.
    mutating func removeValues(in range: ClosedRange<AttributeHandle>) -> [ValueCall] {
        let removed = server.filter { item in item.value.map { range.contains($0.handle) } ?? false }
        guard !removed.isEmpty else { return [] }
        for item in removed { count(item, by: -1) }
        server.removeAll { item in item.value.map { range.contains($0.handle) } ?? false }
        return removed.compactMap(\.value)
    }

    /// Removes the procedures and writes that end because the server has changed attributes in a range.
    ///
    /// - Returns: their items, the oldest first.
    mutating func removeCalls(endingOnChangeIn range: HandleRange) -> Deque<Item> {
        let removed: Deque<Item> = client.filter { $0.ends(onChangeIn: range) }
        if !removed.isEmpty { client.removeAll { $0.ends(onChangeIn: range) } }
        return removed
    }

    /// Removes and returns all items, the oldest first.
    mutating func removeAll() -> [Item] {
        let all = (client + server).sorted { $0.sequence < $1.sequence }
        client.removeAll()
        server.removeAll()
        answerCount = 0
        notificationCount = 0
        return all
    }

    mutating func removeAllOfClient() -> Deque<Item> {
        defer { client.removeAll() }
        return client
    }

    /// Whether the lanes still hold a write without response or a notification that was called before `sequence`.
    ///
    /// - Parameter includingIndications: whether an indication counts as well.
    func hasUnsentValue(before sequence: UInt64, includingIndications: Bool) -> Bool {
        client.contains { $0.sequence < sequence && $0.isValue(includingIndications: false) }
            || server.contains { $0.sequence < sequence && $0.isValue(includingIndications: includingIndications) }
    }

    private mutating func count(_ item: Item, by difference: Int) {
        switch item.work {
        case .answer: answerCount += difference
        case .notification: notificationCount += difference
        case .procedure, .write, .channelRequest, .indication: break
        }
    }
}

extension OutboundLanes.Item {
    /// Whether it is a write without response or a notification, or an indication if these count.
    fileprivate func isValue(includingIndications: Bool) -> Bool {
        switch work {
        case .write, .notification: true
        case .indication: includingIndications
        case .procedure, .channelRequest, .answer: false
        }
    }

    /// Whether the call ends when the server changes attributes in a range.
    fileprivate func ends(onChangeIn range: HandleRange) -> Bool {
        switch work {
        case .procedure(let call): call.ends(onChangeIn: range)
        case .write(let call): call.endsOnChange && HandleRange(only: call.handle).overlaps(range)
        case .channelRequest, .notification, .indication, .answer: false
        }
    }

    /// The call of a notification or an indication.
    fileprivate var value: ValueCall? {
        switch work {
        case .notification(let call), .indication(let call): call
        case .procedure, .write, .channelRequest, .answer: nil
        }
    }

    fileprivate var caller: Caller? {
        switch work {
        case .write(let call): call.caller
        case .notification(let call), .indication(let call): call.caller
        case .procedure, .channelRequest, .answer: nil
        }
    }
}

/// A client procedure that an app asked for.
struct ProcedureCall: @unchecked Sendable {
    // @unchecked: the caller does not use the run until the call has ended.

    enum Caller {
        /// To a suspended task. The call is kept on the loop only and is cancelled by its run, so it needs no token.
        case task(CallContinuation)
        /// To a closure of an app.
        case callback((CallOutcome) -> Void)
        /// To the host itself, at once.
        case host((CallOutcome) -> Void)
    }

    /// The caller leaves the run to the loop until the call has ended.
    let run: ProcedureRun
    let link: LinkIdentifier
    let caller: Caller
    /// The value handle of the characteristic whose calls keep their order; nil if the procedure is for none or for
    /// several. Such a procedure stays on the fixed channel.
    var characteristic: AttributeHandle?
    /// The value handles of several characteristics whose calls keep their order.
    var characteristics: [AttributeHandle] = []
    /// The handles that the procedure uses, if it ends when the server changes an attribute of these. Otherwise nil.
    var handles: HandleRange?

    /// Whether the call ends when the server changes attributes in a range.
    func ends(onChangeIn range: HandleRange) -> Bool { handles?.overlaps(range) ?? false }
}

/// A write without response that an app asked for.
struct WriteCall: Sendable {
    /// The signature of a Signed Write Command.
    struct Signature: Sendable {
        let key: SigningKey
        let counter: UInt32
    }

    let value: [UInt8]
    let handle: AttributeHandle
    let link: LinkIdentifier
    /// Used if the link is not encrypted when the write is sent; nil for a Write Command.
    var signature: Signature?
    /// Whether the writes that follow can be submitted without waiting for the loop.
    var opensFastPath = false
    /// Whether the write is not sent if the server changes the attribute first.
    var endsOnChange = false
    var caller = Caller.unawaited
}

/// A value that an app sends to one client.
struct ValueCall: Sendable {
    let value: [UInt8]
    let handle: AttributeHandle
    var caller: Caller
}

/// An app's answer to a client.
enum AnswerCall: Sendable {
    case access(UInt64, Result<[UInt8], ATTErrorCode>)
    case authorization(UInt64, isAuthorized: Bool)
}
