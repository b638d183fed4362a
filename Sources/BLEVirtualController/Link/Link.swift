import BLEHCI
import BluetoothTypes

/// A connection between two controllers: its connection events, and the packets exchanged (Vol 6, Part B, 4.5).
///
/// Only connection events with work are simulated. While neither side has data and every packet gets through, a link
/// costs nothing.
final class Link {
    let air: Air
    private(set) lazy var central = LinkEnd(parties.central, role: .central, place: places.central, link: self)
    private(set) lazy var peripheral = LinkEnd(
        parties.peripheral,
        role: .peripheral,
        place: places.peripheral,
        link: self
    )
    private let parties: (central: LinkParty, peripheral: LinkParty)
    private let places: (central: Int, peripheral: Int)
    private(set) var parameters: LinkParameters
    private(set) var channelMap: ChannelMap
    private(set) var subrate = Subrate()
    /// The number of the last event with data.
    private var lastData: UInt64?
    /// The PHYs used by the central and by the peripheral to send.
    private(set) var phys: (central: PHY, peripheral: PHY)

    /// The start of the connection event with the number ``counter``.
    private var anchor: Instant
    private(set) var counter: UInt64 = 0
    private var hasBegun = false
    /// The number of the last event in which the peripheral listened.
    private var lastListened: UInt64 = 0
    /// The next planned event, if any. `plan` distinguishes it from plans that were replaced.
    private var planned: (counter: UInt64, plan: UInt64)?
    private var plans: UInt64 = 0
    private var isEventOpen = false
    /// Whether packets can be lost, so both ends must watch their supervision timeouts.
    private var isWatched = false
    private var changes: [Change] = []

    /// A change that both ends make in the event with this number.
    private struct Change {
        let instant: UInt64
        let action: () -> Void
    }

    private init(
        parties: (central: LinkParty, peripheral: LinkParty),
        places: (central: Int, peripheral: Int),
        _ parameters: LinkParameters,
        _ phy: PHY
    ) {
        self.parties = parties
        self.places = places
        self.parameters = parameters
        air = parties.central.controller.air
        phys = (phy, phy)
        // The host's classification applies to later links too (Vol 4, Part E, 7.8.19).
        channelMap = parties.central.controller.linkDefaults.channelMap
        // The transmit window begins 1.25 ms after the indication. The first packet is sent within it.
        anchor = air.now + .microseconds(1250 + 1250)
    }

    /// Opens a link and reports it to both hosts. Returns nil if one of the controllers has no place for it.
    static func open(
        central: LinkParty,
        peripheral: LinkParty,
        parameters: LinkParameters,
        phy: PHY
    ) -> (central: ConnectionHandle, peripheral: ConnectionHandle)? {
        guard let centralPlace = central.controller.freePlace, let peripheralPlace = peripheral.controller.freePlace
        else {
            return nil
        }
        let link = Link(
            parties: (central, peripheral),
            places: (centralPlace, peripheralPlace),
            parameters,
            phy
        )
        for end in link.ends {
            end.controller.links[end.place] = LinkPlace(link: link, end: end)
            end.tellConnected()
        }
        for end in link.ends { end.beginDefaultProcedures() }
        link.conditionsHaveChanged()
        return (link.central.handle, link.peripheral.handle)
    }

    private var isPaced: Bool {
        central.controller.configuration.pacesPackets && peripheral.controller.configuration.pacesPackets
    }

    private var ends: [LinkEnd] { [central, peripheral] }

    func phy(from end: LinkEnd) -> PHY { end === central ? phys.central : phys.peripheral }

    /// The PHY on which an end sends, with its coding.
    func airPHY(from end: LinkEnd) -> PHY {
        let phy = phy(from: end)
        return phy == .leCoded && end.prefersS2Coding ? .leCodedS2 : phy
    }

    /// The strength of the signal that an end receives from the other, in dBm.
    func rssi(at end: LinkEnd) -> Int8 {
        air.rssi(at: end.controller, from: other(end).controller, power: other(end).power.power)
    }

    func other(_ end: LinkEnd) -> LinkEnd { end === central ? peripheral : central }

    // MARK: When events happen

    /// Plans the next event in which something can happen, if any.
    func wake() {
        guard !isEventOpen, !(central.isGone && peripheral.isGone) else { return }
        let isWanted = isWatched || !changes.isEmpty || central.hasWork || peripheral.hasWork
        guard isWanted else { return }
        let next = nextCounter()
        if let planned, planned.counter <= next { return }
        plans += 1
        planned = (next, plans)
        let plan = plans
        let isImmediate = !isPaced && !isWatched
        air.schedule(at: isImmediate ? air.now : instant(of: next)) { [self] in
            guard planned?.plan == plan else { return }
            planned = nil
            anchor = isImmediate ? air.now : instant(of: next)
            counter = next
            openEvent()
        }
    }

    private func instant(of number: UInt64) -> Instant {
        anchor + .nanoseconds(Int64(clamping: UInt64(parameters.interval) * 1_250_000 * (number - counter)))
    }

    private func nextCounter() -> UInt64 {
        let interval = UInt64(parameters.interval) * 1_250_000
        var next = counter + (hasBegun ? 1 : 0)
        let begin = instant(of: next)
        if begin < air.now { next += (air.now.nanoseconds - begin.nanoseconds + interval - 1) / interval }
        if changes.isEmpty { next = subrate.firstUsed(from: next, lastData: lastData) }
        // A peripheral without data sleeps as long as its latency allows.
        let period = (UInt64(parameters.latency) + 1) * UInt64(subrate.factor)
        if period > UInt64(subrate.factor), !isWatched, changes.isEmpty, !peripheral.hasWork {
            let slept = (next - lastListened) % period
            if slept > 0 { next = subrate.firstUsed(from: next + period - slept, lastData: lastData) }
        }
        return next
    }

    private func openEvent() {
        isEventOpen = true
        hasBegun = true
        lastListened = counter
        let due = changes.filter { $0.instant <= counter }
        changes.removeAll { $0.instant <= counter }
        for change in due { change.action() }
        exchange()
    }

    private func closeEvent() {
        isEventOpen = false
        endSilentEnds()
        wake()
    }

    /// Returns an instant for a change, early enough for both ends to learn of it (Vol 6, Part B, 5.1). From now, it is
    /// six events, the peripheral's latency and twice the delay of the air away.
    func futureInstant() -> UInt64 {
        let delays = air.conditions(between: central.controller, and: peripheral.controller)
        let delay = (delays.latency + delays.jitter).wholeNanoseconds
        let interval = UInt64(parameters.interval) * 1_250_000
        let late = UInt64(max(0, delay)) / interval
        let gone = air.now > anchor ? (air.now.nanoseconds - anchor.nanoseconds) / interval : 0
        return counter + gone + 6 + (UInt64(parameters.latency) + 1) * UInt64(subrate.factor) - 1 + 2 * late
    }

    /// Runs an action in the event with the given number. Returns false if that has passed.
    func change(at instant: UInt64, _ action: @escaping () -> Void) -> Bool {
        if !isPaced {
            action()
            return true
        }
        guard instant > counter else { return false }
        changes.append(Change(instant: instant, action: action))
        return true
    }

    // MARK: What is exchanged

    /// Exchanges one packet in each direction, and more if there is more data and time.
    private func exchange() {
        guard !central.isGone, !peripheral.isGone else { return closeEvent() }
        let outgoing = central.nextPDU()
        var time = airTime(outgoing, from: central)
        guard getsThrough(from: central) else {
            return closeEvent()
        }
        peripheral.hear(outgoing, after: isPaced ? time : 0)
        guard !peripheral.isGone else { return closeEvent() }
        let answer = peripheral.nextPDU()
        if outgoing != nil || answer != nil { lastData = counter }
        time += AirTime.interFrameSpace + airTime(answer, from: peripheral)
        guard getsThrough(from: peripheral) else {
            return closeEvent()
        }
        central.hear(answer, after: isPaced ? time : 0)
        guard !central.isGone else { return closeEvent() }
        time += AirTime.interFrameSpace
        let next = air.now + (isPaced ? .microseconds(time) : .zero)
        air.schedule(at: next) { [self] in
            guard isEventOpen else { return }
            // An acknowledgement alone does not continue the event. On an unpaced link, however, it need not wait.
            let hasMore = central.hasMoreToSend || peripheral.hasMoreToSend || !isPaced && peripheral.hasWork
            if hasMore, hasTime { exchange() } else { closeEvent() }
        }
    }

    private func airTime(_ pdu: DataPhysicalChannelPDU?, from end: LinkEnd) -> Int {
        AirTime.microseconds(byteCount: pdu?.octets ?? 0, phy: airPHY(from: end), isEncrypted: pdu?.seal != nil)
    }

    /// Whether another exchange of the longest packets ends before the next event begins.
    private var hasTime: Bool {
        guard isPaced else { return true }
        let longest =
            AirTime.maximum(byteCount: central.transmitOctets, phy: airPHY(from: central))
            + AirTime.maximum(byteCount: peripheral.transmitOctets, phy: airPHY(from: peripheral))
        return air.now + .microseconds(longest + 3 * AirTime.interFrameSpace) <= anchor + parameters.intervalDuration
    }

    /// Lets the central acknowledge a termination with its first packet of the next event. A peripheral has already
    /// acknowledged it with its response packet.
    func acknowledgeTermination() {
        air.schedule(at: max(air.now, isPaced ? instant(of: counter + 1) : air.now)) { [self] in
            if getsThrough(from: central) {
                peripheral.end(.connectionTerminatedByLocalHost)
            }
        }
    }

    /// Returns whether one packet of an end reaches the other now. Each call draws a random loss.
    private func getsThrough(from end: LinkEnd) -> Bool {
        air.getsThrough(
            from: end.controller,
            to: other(end).controller,
            phy: airPHY(from: end),
            power: end.power.power
        )
    }

    private func reaches(from end: LinkEnd) -> Bool {
        air.reaches(other(end).controller, from: end.controller, phy: airPHY(from: end), power: end.power.power)
    }

    // MARK: Silence

    /// Updates the link after a change of conditions, or after one of its ends has closed.
    func conditionsHaveChanged() {
        let conditions = air.conditions(between: central.controller, and: peripheral.controller)
        let isQuiet =
            central.isGone || peripheral.isGone || conditions.isDead || conditions.loss > 0
            || !reaches(from: central) || !reaches(from: peripheral)
        if isQuiet, !isWatched {
            // Until now every packet got through, even if no event was simulated.
            let hasPassedFirstEvent = !hasBegun && air.now > anchor
            for end in ends where end.hasHeard || hasPassedFirstEvent {
                end.hasHeard = true
                end.lastHeard = air.now
            }
        }
        isWatched = isQuiet
        for end in ends { end.judgeSignal() }
        wake()
    }

    private func endSilentEnds() {
        guard isWatched else { return }
        for end in ends where !end.isGone {
            let silence = air.now - end.lastHeard
            if !end.hasHeard {
                // If six events pass without a packet, the link was never established (Vol 6, Part B, 4.5.2).
                if silence >= parameters.intervalDuration * 6 { end.end(.connectionFailedToBeEstablished) }
            } else if silence >= parameters.supervisionDuration {
                end.end(.connectionTimeout)
            }
        }
    }

    // MARK: Changes

    func apply(_ parameters: LinkParameters) {
        guard parameters != self.parameters else { return }
        // Another interval ends subrating (5.1.1).
        if parameters.interval != self.parameters.interval { subrate = Subrate() }
        self.parameters = parameters
        for end in ends where !end.isGone { end.lastHeard = max(end.lastHeard, anchor) }
    }

    func apply(_ new: SubrateIndication) {
        let subrate = Subrate(
            factor: new.factor,
            continuationNumber: new.continuationNumber,
            baseEvent: counter
        )
        parameters.latency = new.latency
        parameters.supervisionTimeout = new.supervisionTimeout
        // The other end may have applied it before.
        if subrate.factor == self.subrate.factor, subrate.continuationNumber == self.subrate.continuationNumber {
            return
        }
        self.subrate = subrate
        // The next event may be another one than the planned one.
        planned = nil
        wake()
    }

    func apply(_ channelMap: ChannelMap) { self.channelMap = channelMap }

    func apply(centralToPeripheral: PHY, peripheralToCentral: PHY) {
        if centralToPeripheral != .none { phys.central = centralToPeripheral }
        if peripheralToCentral != .none { phys.peripheral = peripheralToCentral }
        conditionsHaveChanged()
    }
}

/// A link and its end at one controller.
struct LinkPlace {
    let link: Link
    let end: LinkEnd
}
