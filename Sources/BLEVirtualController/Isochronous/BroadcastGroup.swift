import BLEHCI
import BluetoothTypes

/// A broadcast isochronous group that a controller sends (Vol 6, Part B, 4.4.6).
final class BroadcastGroup {
    /// A stream of the group.
    final class Stream: StreamEndpoint {
        private let length: Int
        /// Whether the group is being sent.
        fileprivate(set) var isSent = false

        fileprivate init(controller: VirtualController, handle: ConnectionHandle, maximumSDU: Int) {
            length = maximumSDU
            super.init(controller: controller, handle: handle)
        }

        override var isEstablished: Bool { isSent }
        override var maximumSDU: Int { length }
        override var possiblePaths: ISODataPathDirections { .input }
    }

    unowned let controller: VirtualController
    let command: LECreateBIG
    let timing: BIGTiming
    let phy: PHY
    let streams: [Stream]
    /// Whether LE Terminate BIG was received, or the controller was reset.
    private(set) var isEnding = false
    private(set) var receptions: [BroadcastReception] = []

    private let sdus: SDUTiming

    init(
        _ command: LECreateBIG,
        _ timing: BIGTiming,
        _ sdus: SDUTiming,
        phy: PHY,
        controller: VirtualController,
        handles: [ConnectionHandle]
    ) {
        self.controller = controller
        self.command = command
        self.timing = timing
        self.sdus = sdus
        self.phy = phy
        streams = handles.map { Stream(controller: controller, handle: $0, maximumSDU: Int(command.maxSDU)) }
    }

    /// Returns the timing of a group. Returns nil for parameters that no ISO interval fits: a stream has at most 7 PDUs
    /// in each event.
    static func timing(for command: LECreateBIG, _ sdus: SDUTiming) -> BIGTiming? {
        guard let isoInterval = SDUTiming.isoInterval(for: [sdus], burstLimit: 7) else { return nil }
        let bn = sdus.burst(in: isoInterval)
        let irc = min(UInt64(command.rtn) + 1, 15, 31 / bn)
        return BIGTiming(
            transportLatency: UInt32(command.maxTransportLatency) * 1000,
            nse: UInt8(bn * irc),
            bn: UInt8(bn),
            irc: UInt8(irc),
            maxPDU: sdus.maximumPDU(in: isoInterval),
            isoInterval: isoInterval
        )
    }

    var interval: Duration { .microseconds(1250 * Int(timing.isoInterval)) }
    private var repetitions: Int { Int(timing.irc) }

    /// The announcement of the group in its train, for the host of a receiver.
    func announcement(on syncHandle: UInt16) -> LEBIGInfoAdvertisingReport? {
        guard !isEnding, isSent else { return nil }
        return LEBIGInfoAdvertisingReport(
            syncHandle: syncHandle,
            numBIS: command.numBIS,
            nse: timing.nse,
            isoInterval: timing.isoInterval,
            bn: timing.bn,
            pto: timing.pto,
            irc: timing.irc,
            maxPDU: timing.maxPDU,
            sduInterval: command.sduInterval,
            maxSDU: command.maxSDU,
            phy: phy,
            framing: command.framing,
            encryption: command.broadcastCode == nil ? 0 : 1
        )
    }

    // MARK: Sending

    /// Reports the group to the host, and sends its events from now on.
    func begin() {
        guard !isEnding else { return }
        for stream in streams { stream.isSent = true }
        tellCreated(.success)
        runEvents(from: 0)
    }

    private var isSent: Bool { streams.first?.isSent == true }

    private func tellCreated(_ status: HCIErrorCode) {
        controller.tellLE(
            LECreateBIGComplete(
                status: status,
                bigHandle: command.bigHandle,
                bigSyncDelay: timing.transportLatency,
                phy: phy,
                timing: timing,
                connectionHandles: streams.map(\.handle)
            )
        )
    }

    private func runEvents(from counter: UInt64) {
        controller.schedule(after: interval) { [weak self] _ in
            guard let self, !isEnding else { return }
            send(counter)
            runEvents(from: counter + 1)
        }
    }

    /// Sends one event of the group. Each receiver that hears it gets each SDU, or its loss.
    private func send(_ counter: UInt64) {
        let hearing = receptions.filter { $0.hears(self) }
        var units: [(stream: Int, number: UInt16, bytes: [UInt8])] = []
        for (index, stream) in streams.enumerated() {
            for number in sdus.numbers(inEvent: counter, of: timing.isoInterval) {
                guard let unit = stream.takeUnit(number: number) else { break }
                units.append((index, number, unit.bytes))
            }
        }
        guard !units.isEmpty else { return }
        for reception in hearing where !reception.authenticates(self) {
            reception.end(.connectionTerminatedDueToMICFailure)
        }
        for unit in units {
            for reception in receptions {
                let isReceived = reaches(reception.controller, attempts: repetitions)
                reception.take(isReceived ? unit.bytes : nil, of: unit.stream, number: unit.number)
            }
        }
    }

    /// Whether one of some packets reaches a receiver.
    func reaches(_ receiver: VirtualController, attempts: Int) -> Bool {
        (0..<attempts).contains { _ in controller.air.getsThrough(from: controller, to: receiver, phy: phy) }
    }

    // MARK: Receivers

    func add(_ reception: BroadcastReception) { receptions.append(reception) }

    func remove(_ reception: BroadcastReception) { receptions.removeAll { $0 === reception } }

    // MARK: The end

    /// Ends the group by request of the host. A group that is not sent yet is not created (Vol 4, Part E, 7.8.105).
    ///
    /// Receivers that hear the announcement of the end report it, always with the same reason (7.7.65.30).
    func terminate() {
        guard isSent else {
            abandon()
            tellCreated(.operationCancelledByHost)
            return tellTerminated()
        }
        isEnding = true
        controller.schedule(after: interval) { [self] _ in
            // The end is announced in six events (Vol 6, Part B, 4.4.6.6).
            for reception in receptions where reaches(reception.controller, attempts: 6) {
                reception.end(.remoteUserTerminatedConnection)
            }
            abandon()
            tellTerminated()
        }
    }

    private func tellTerminated() {
        controller.tellLE(
            LETerminateBIGComplete(bigHandle: command.bigHandle, reason: .connectionTerminatedByLocalHost)
        )
    }

    /// Ends the group without a report.
    func abandon() {
        isEnding = true
        for stream in streams {
            stream.isSent = false
            stream.dropData()
            controller.isochronous.broadcastStreams[stream.handle] = nil
        }
        receptions = []
        controller.isochronous.broadcasts[command.bigHandle] = nil
    }
}
