import BLEByteCoding
import BLEHCI
import BluetoothTypes
import DequeModule

/// Gives the controller the data of subevents when it requests them.
///
/// # Requests
/// The controller of a train with subevents requests the data of each subevent some time before it (Vol 4, Part E,
/// 7.7.65.36). The data is sent once. The plan answers a request with the oldest data that is queued for the subevent.
/// If there is none, the app is informed, and the request stays open: data that the app sends is given to the
/// controller at once.
///
/// # Queue
/// At most ``limit`` packets wait for one subevent. A call of the app ends when the controller has accepted all its
/// packets.
///
/// # Refused commands
/// One command has the data of several subevents. If the controller refuses it, each packet is sent alone, so that only
/// the calls of refused packets fail. A packet that was too late for its subevent, or whose request has passed, waits
/// for the next request.
struct SubeventDataPlan {
    /// Maximum number of packets that wait for one subevent.
    static let limit = 16

    private struct Packet {
        let data: PeriodicSubeventData
        let call: CallToken
        /// Whether the packet has a command of its own, because a command of several was refused.
        var isAlone = false
    }

    private struct Train {
        let identifier: AdvertisementIdentifier
        let handle: UInt8
        let configuration: PeriodicSubeventConfiguration
        /// The packets that wait, by subevent.
        var queues: [UInt8: Deque<Packet>] = [:]
        /// The subevents whose requests are open, in the order of the requests.
        var requests: [UInt8] = []
        var responses = ResponseAssembler()
    }

    private struct Purpose {
        let advertisement: AdvertisementIdentifier
        let packets: [Packet]
    }

    private var trains: [Train] = []
    /// How many packets of a call the controller has not accepted.
    private var openCalls: [CallToken: Int] = [:]
    private(set) var run = PlanRun()
    private var pending = PendingCommand<Purpose>(of: .subevents)

    private func index(of identifier: AdvertisementIdentifier) -> Int? {
        trains.firstIndex { $0.identifier == identifier }
    }

    /// The advertisements with subevents.
    var advertisements: [AdvertisementIdentifier] { trains.map(\.identifier) }

    // MARK: Trains

    mutating func add(
        _ identifier: AdvertisementIdentifier,
        handle: UInt8,
        _ configuration: PeriodicSubeventConfiguration
    ) {
        trains.append(Train(identifier: identifier, handle: handle, configuration: configuration))
    }

    /// Removes the trains of advertisements that have ended.
    mutating func remove(_ ended: [AdvertisementIdentifier], _ error: HostError) -> [SubeventEffect] {
        var effects: [SubeventEffect] = []
        for train in trains where ended.contains(train.identifier) {
            let waiting = train.queues.keys.sorted().flatMap { train.queues[$0] ?? [] }
            let sent = pending.purpose.flatMap { $0.advertisement == train.identifier ? $0.packets : nil } ?? []
            for packet in sent + waiting where openCalls.removeValue(forKey: packet.call) != nil {
                effects.append(.finish(packet.call, error))
            }
            effects.append(.event(train.identifier, .ended))
        }
        trains.removeAll { ended.contains($0.identifier) }
        return effects
    }

    /// The requests of a train that are open.
    ///
    /// - Throws: ``HostError/closed`` if the advertisement has ended.
    func openRequests(of identifier: AdvertisementIdentifier) throws(HostError) -> [UInt8] {
        guard let index = index(of: identifier) else { throw .closed }
        return trains[index].requests
    }

    // MARK: Data

    /// Queues packets, which leave in this order.
    ///
    /// - Parameter call: ends when the controller has accepted all packets.
    mutating func send(
        _ data: [PeriodicSubeventData],
        of identifier: AdvertisementIdentifier,
        for call: CallToken
    ) throws(HostError) {
        guard let index = index(of: identifier) else { throw .closed }
        guard !data.isEmpty else { throw .invalidArgument("there is no data to send") }
        var counts: [UInt8: Int] = [:]
        for packet in data {
            try packet.check(in: trains[index].configuration)
            let count = counts[packet.subevent, default: 0] + 1
            counts[packet.subevent] = count
            guard count <= Self.limit else {
                throw .invalidArgument("a call sends at most \(Self.limit) packets in subevent \(packet.subevent)")
            }
            guard count + (trains[index].queues[packet.subevent]?.count ?? 0) <= Self.limit else {
                throw .limitReached(
                    "at most \(Self.limit) packets wait for subevent \(packet.subevent); await an earlier call"
                )
            }
        }
        openCalls[call] = data.count
        for packet in data {
            trains[index].queues[packet.subevent, default: []].append(Packet(data: packet, call: call))
        }
    }

    /// Removes the packets of a call that has ended.
    mutating func remove(_ call: CallToken, of identifier: AdvertisementIdentifier) {
        guard openCalls.removeValue(forKey: call) != nil, let index = index(of: identifier) else { return }
        for subevent in trains[index].queues.keys { trains[index].queues[subevent]?.removeAll { $0.call == call } }
    }

    // MARK: Commands

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must schedule it.
    mutating func requestRun() -> Bool { run.request() }

    /// Returns the command to send now; nil if no request can be answered, or if the plan waits for an input.
    mutating func nextCommand() -> PlannedCommand? {
        guard !pending.isPending else { return nil }
        for index in trains.indices {
            let packets = takePackets(of: index)
            guard !packets.isEmpty else { continue }
            // The other trains are next.
            let train = trains.remove(at: index)
            trains.append(train)
            run.sent()
            let command = LESetPeriodicAdvertisingSubeventData(
                advertisingHandle: train.handle,
                subevents: packets.map(\.data.parameters)
            )
            let purpose = Purpose(advertisement: train.identifier, packets: packets)
            return PlannedCommand(command: GAPCommand(command), step: pending.begin(purpose))
        }
        run.end()
        return nil
    }

    /// Takes the packets for the oldest requests that fit one command.
    private mutating func takePackets(of index: Int) -> [Packet] {
        var packets: [Packet] = []
        for subevent in trains[index].requests {
            guard let packet = trains[index].queues[subevent]?.first else { continue }
            guard packets.isEmpty || !packet.isAlone else { break }
            let parameters = (packets + [packet]).map(\.data.parameters)
            guard LESetPeriodicAdvertisingSubeventData.count(fitting: parameters) == parameters.count else { break }
            packets.append(packet)
            trains[index].queues[subevent]?.removeFirst()
            if packet.isAlone { break }
        }
        trains[index].requests.removeAll { subevent in packets.contains { $0.data.subevent == subevent } }
        return packets
    }

    // MARK: Replies

    /// Handles a successful reply. A reply to a command of an earlier controller has no effect.
    mutating func finished(_ step: GAPStep) -> [SubeventEffect] {
        guard let purpose = pending.end(step) else { return [] }
        var effects: [SubeventEffect] = []
        for packet in purpose.packets {
            guard let left = openCalls[packet.call] else { continue }
            openCalls[packet.call] = left > 1 ? left - 1 : nil
            if left == 1 { effects.append(.finish(packet.call, nil)) }
        }
        return effects
    }

    /// Handles a command that failed.
    mutating func failed(_ step: GAPStep, _ failure: CommandFailure) -> [SubeventEffect] {
        // The controller is being reset: `controllerLost` follows, and the packets wait again.
        guard !failure.meansReset, let purpose = pending.end(step) else { return [] }
        // The controller requests the data of these subevents again. It disallows data for a subevent that the last
        // request does not name (Vol 4, Part E, 7.8.125).
        let isUntimely =
            switch failure {
            case .status(.tooLate, _), .status(.tooEarly, _), .status(.commandDisallowed, _): true
            default: false
            }
        if purpose.packets.count > 1 {
            putBack(purpose, isAlone: true, isRequested: true)
            return [.ignore(failure)]
        }
        if isUntimely {
            putBack(purpose, isAlone: false, isRequested: false)
            return [.ignore(failure)]
        }
        var effects: [SubeventEffect] = []
        for packet in purpose.packets where openCalls[packet.call] != nil {
            remove(packet.call, of: purpose.advertisement)
            effects.append(.finish(packet.call, .command(failure)))
        }
        return effects
    }

    /// Queues packets of a command again, before those that wait.
    private mutating func putBack(_ purpose: Purpose, isAlone: Bool, isRequested: Bool) {
        guard let index = index(of: purpose.advertisement) else { return }
        var subevents: [UInt8] = []
        for var packet in purpose.packets where openCalls[packet.call] != nil {
            packet.isAlone = isAlone
            trains[index].queues[packet.data.subevent, default: []].prepend(packet)
            subevents.append(packet.data.subevent)
        }
        guard isRequested else { return }
        // The controller may have requested some again.
        trains[index].requests.removeAll { subevents.contains($0) }
        trains[index].requests.insert(contentsOf: subevents, at: 0)
    }

    // MARK: Events

    /// Handles a request for the data of subevents (Vol 4, Part E, 7.7.65.36).
    mutating func requested(_ event: LEPeriodicAdvertisingSubeventDataRequest) -> [SubeventEffect] {
        guard let index = trains.firstIndex(where: { $0.handle == event.advertisingHandle }) else { return [] }
        let count = trains[index].configuration.count
        guard event.subeventStart < count else { return [] }
        let subevents = (0..<min(Int(event.subeventDataCount), count)).map { offset in
            UInt8((Int(event.subeventStart) + offset) % count)
        }
        trains[index].requests.removeAll { subevents.contains($0) }
        trains[index].requests += subevents
        let missing = subevents.filter { trains[index].queues[$0]?.isEmpty != false }
        return missing.isEmpty ? [] : [.event(trains[index].identifier, .dataRequested(missing))]
    }

    /// Takes the responses of a report.
    ///
    /// - Parameter effects: appended to. It has the responses before a malformed one.
    mutating func receive(
        _ report: borrowing LEPeriodicAdvertisingResponseReport,
        at now: Instant,
        into effects: inout [SubeventEffect]
    ) throws(PacketDecodingError) {
        let handle = report.advertisingHandle
        guard let index = trains.firstIndex(where: { $0.handle == handle }) else { return }
        let (identifier, configuration) = (trains[index].identifier, trains[index].configuration)
        var events: [SubeventEvent] = []
        defer { effects += events.map { .event(identifier, $0) } }
        try trains[index].responses.receive(report, of: configuration, at: now, into: &events)
    }

    /// Records that the controller was reset: it has no data and no open request.
    mutating func controllerLost() {
        if let purpose = pending.purpose { putBack(purpose, isAlone: false, isRequested: false) }
        pending.forget()
        run.end()
        for index in trains.indices {
            trains[index].requests = []
            trains[index].responses = ResponseAssembler()
        }
    }
}

/// What the caller of a ``SubeventDataPlan`` does after an input, in this order.
enum SubeventEffect: Equatable {
    /// End a call that waited until the controller had accepted its data. Nil means success.
    case finish(CallToken, HostError?)
    /// Report an event of the train of an advertisement.
    case event(AdvertisementIdentifier, SubeventEvent)
    /// Log this failure. It does not matter.
    case ignore(CommandFailure)
}
