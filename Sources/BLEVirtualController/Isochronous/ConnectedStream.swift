import BLEHCI
import BluetoothTypes

/// The parameters that both sides of a connected isochronous stream have (Vol 6, Part B, 4.5.13).
struct StreamParameters {
    let cigID: UInt8
    let cis: LESetCIGParameters.CIS
    let framing: ISOFraming
    /// The ISO interval in units of 1.25 ms.
    let isoInterval: UInt16
    /// The SDUs of the central and of the peripheral.
    let central: SDUTiming
    let peripheral: SDUTiming
    /// The longest time for an SDU in milliseconds.
    let latency: UInt16

    /// The parameters of the streams of a group, which have the same ISO interval. Returns nil for parameters that no
    /// ISO interval fits: the burst number is at most 15, and with unframed PDUs the SDU intervals divide the ISO
    /// interval.
    ///
    /// - Parameter streams: all streams of the group; nil for those of the command.
    static func all(
        of command: LESetCIGParameters,
        _ streams: [LESetCIGParameters.CIS]? = nil
    ) -> [StreamParameters]? {
        let streams = streams ?? command.streams
        let isFramed = command.framing != .unframed
        let timings = streams.map { cis in
            (
                central: SDUTiming(command.sduIntervalCToP, cis.maxSDUCToP, isFramed: isFramed),
                peripheral: SDUTiming(command.sduIntervalPToC, cis.maxSDUPToC, isFramed: isFramed)
            )
        }
        let directions = timings.flatMap { [$0.central, $0.peripheral] }
        guard let isoInterval = SDUTiming.isoInterval(for: directions, burstLimit: 15) else { return nil }
        return zip(streams, timings).map { cis, timing in
            StreamParameters(
                cigID: command.cigID,
                cis: cis,
                framing: command.framing,
                isoInterval: isoInterval,
                central: timing.central,
                peripheral: timing.peripheral,
                latency: max(command.maxTransportLatencyCToP, command.maxTransportLatencyPToC)
            )
        }
    }

    var interval: Duration { .microseconds(1250 * Int(isoInterval)) }
}

/// One controller's side of a connected isochronous stream.
final class StreamEnd: StreamEndpoint {
    enum Phase {
        /// The handle exists, but the stream is not established.
        case idle
        /// Its establishment has begun.
        case creating
        case established
    }

    /// As the central, they change until a stream of the group is created.
    var parameters: StreamParameters
    var phase = Phase.idle
    /// Whether the host has accepted the request for the stream.
    var isAccepted = false
    /// The connection that the stream belongs to, while it is created or established.
    weak var link: LinkEnd?
    weak var other: StreamEnd?
    /// Incremented whenever the stream, or an attempt to establish it, ends.
    private var generation: UInt64 = 0

    init(controller: VirtualController, handle: ConnectionHandle, parameters: StreamParameters) {
        self.parameters = parameters
        super.init(controller: controller, handle: handle)
    }

    override var isEstablished: Bool { phase == .established }
    /// As the central: with the configuration of the stream. As the peripheral: once the host has accepted the request.
    override var takesPaths: Bool { isConfigured || isAccepted }

    /// As the central: whether the stream belongs to a group, so that the handle outlives the connection.
    private var isConfigured: Bool {
        controller.isochronous.groups[parameters.cigID]?.handles.contains(handle) == true
    }

    /// The other side, unless that has ended the stream, or establishes it again.
    var partner: StreamEnd? { other?.other === self ? other : nil }

    var isCentral: Bool { link?.role == .central }
    private var timing: SDUTiming { isCentral ? parameters.central : parameters.peripheral }
    override var maximumSDU: Int { Int(timing.maximumSDU) }
    /// An event has at most 31 subevents (Vol 6, Part B, 4.5.13).
    private var retransmissions: Int { min(30, Int(isCentral ? parameters.cis.rtnCToP : parameters.cis.rtnPToC)) }

    func tellEstablished(_ status: HCIErrorCode = .success) {
        let (central, peripheral) = (parameters.central, parameters.peripheral)
        let (bnCToP, bnPToC) = (central.burst(in: parameters.isoInterval), peripheral.burst(in: parameters.isoInterval))
        let delay = UInt32(parameters.latency) * 1000
        tell(
            LECISEstablishedV2(
                status: status,
                connectionHandle: handle,
                cigSyncDelay: delay,
                cisSyncDelay: delay,
                transportLatencyCToP: delay,
                transportLatencyPToC: delay,
                phyCToP: PHYChoice.fastest(of: parameters.cis.phyCToP),
                phyPToC: PHYChoice.fastest(of: parameters.cis.phyPToC),
                nse: UInt8(max(1, bnCToP, bnPToC)),
                bnCToP: UInt8(bnCToP),
                bnPToC: UInt8(bnPToC),
                ftCToP: 1,
                ftPToC: 1,
                maxPDUCToP: central.maximumPDU(in: parameters.isoInterval),
                maxPDUPToC: peripheral.maximumPDU(in: parameters.isoInterval),
                isoInterval: parameters.isoInterval,
                maxSDUCToP: central.maximumSDU,
                maxSDUPToC: peripheral.maximumSDU,
                sduIntervalCToP: central.maximumSDU == 0 ? 0 : central.sduInterval,
                sduIntervalPToC: peripheral.maximumSDU == 0 ? 0 : peripheral.sduInterval,
                framing: parameters.framing
            )
        )
    }

    /// Sends the event in the newest version that the host wants.
    private func tell(_ event: LECISEstablishedV2) {
        if controller.host.wants(subevent: LECISEstablishedV2.subeventCode) { return controller.tellLE(event) }
        controller.tellLE(
            LECISEstablished(
                status: event.status,
                connectionHandle: event.connectionHandle,
                cigSyncDelay: event.cigSyncDelay,
                cisSyncDelay: event.cisSyncDelay,
                transportLatencyCToP: event.transportLatencyCToP,
                transportLatencyPToC: event.transportLatencyPToC,
                phyCToP: event.phyCToP,
                phyPToC: event.phyPToC,
                nse: event.nse,
                bnCToP: event.bnCToP,
                bnPToC: event.bnPToC,
                ftCToP: event.ftCToP,
                ftPToC: event.ftPToC,
                maxPDUCToP: event.maxPDUCToP,
                maxPDUPToC: event.maxPDUPToC,
                isoInterval: event.isoInterval
            )
        )
    }

    // MARK: Data

    /// Sends the SDUs of one event of the stream to the other side.
    ///
    /// An SDU that is lost with all its retransmissions is reported to the receiver's host as lost.
    ///
    /// - Parameter counter: the number of the event.
    func sendBurst(to receiver: StreamEnd, counter: UInt64) {
        let phy = PHYChoice.fastest(of: isCentral ? parameters.cis.phyCToP : parameters.cis.phyPToC)
        for number in timing.numbers(inEvent: counter, of: parameters.isoInterval) {
            guard let unit = takeUnit(number: number) else { return }
            let isReceived = (0...retransmissions).contains { _ in
                controller.air.getsThrough(from: controller, to: receiver.controller, phy: phy)
            }
            receiver.deliver(isReceived ? unit.bytes : nil, number: number)
        }
    }

    // MARK: The end

    /// Runs an action after a delay, unless the stream, or the attempt to establish it, has ended by then.
    func schedule(after delay: Duration, _ action: @escaping (StreamEnd) -> Void) {
        let generation = generation
        controller.schedule(after: delay) { [self] _ in
            if generation == self.generation { action(self) }
        }
    }

    /// Ends the stream by request of the host, on both sides.
    func terminate(_ reason: HCIErrorCode) {
        let partner = partner
        end(.connectionTerminatedByLocalHost)
        partner?.schedule(after: parameters.interval) { $0.end(reason) }
    }

    /// As the central: cancels the establishment of the stream by request of the host, on both sides (Vol 4, Part E,
    /// 7.1.6).
    func cancel() {
        let partner = partner
        end(.operationCancelledByHost)
        controller.tell(DisconnectionComplete(connectionHandle: handle, reason: .connectionTerminatedByLocalHost))
        partner?.schedule(after: parameters.interval) { $0.end(.operationCancelledByHost) }
    }

    /// Ends the stream at this side, and reports it to the host.
    func end(_ reason: HCIErrorCode) {
        guard phase != .idle else { return }
        let wasEstablished = phase == .established
        abandon()
        if wasEstablished {
            controller.tell(DisconnectionComplete(connectionHandle: handle, reason: reason))
        } else {
            tellEstablished(reason)
        }
    }

    /// Ends the stream at this side without a report to the host. At the central, the handle and the data paths remain
    /// until the group is removed (Vol 4, Part E, 7.7.5).
    func abandon() {
        generation += 1
        phase = .idle
        isAccepted = false
        link = nil
        other = nil
        dropSDUs()
        guard !isConfigured else { return }
        paths = []
        controller.isochronous.streams[handle] = nil
    }
}
