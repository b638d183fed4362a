import BLEHCI
import BluetoothTypes

/// The parameters that both sides of a connected isochronous stream have (Vol 6, Part B, 4.5.13).
struct StreamParameters {
    let cigID: UInt8
    let cis: LESetCIGParameters.CIS
    /// The ISO interval in units of 1.25 ms.
    let isoInterval: UInt16
    /// The SDUs of the central and of the peripheral in each ISO interval; 0 for a side that sends none.
    let bursts: (central: Int, peripheral: Int)
    /// The longest time for an SDU in milliseconds.
    let latency: UInt16

    /// Returns nil for SDU intervals that the simulation does not support: the longer one is a multiple of the other, and
    /// unframed PDUs need whole units of 1.25 ms.
    init?(_ command: LESetCIGParameters, _ cis: LESetCIGParameters.CIS) {
        let long = max(command.sduIntervalCToP, command.sduIntervalPToC)
        let short = min(command.sduIntervalCToP, command.sduIntervalPToC)
        // A group of short SDU intervals has at least 5 ms between its events.
        let factor = max(1, (5000 + long - 1) / long)
        let interval = long * factor
        guard long % short == 0, command.framing != .unframed || interval % 1250 == 0 else { return nil }
        let units = (interval + 1249) / 1250
        guard units <= 0x0C80 else { return nil }
        self.cis = cis
        cigID = command.cigID
        isoInterval = UInt16(truncatingIfNeeded: units)
        bursts = (
            cis.maxSDUCToP == 0 ? 0 : Int(interval / command.sduIntervalCToP),
            cis.maxSDUPToC == 0 ? 0 : Int(interval / command.sduIntervalPToC)
        )
        guard bursts.central <= 15, bursts.peripheral <= 15 else { return nil }
        latency = max(command.maxTransportLatencyCToP, command.maxTransportLatencyPToC)
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

    let parameters: StreamParameters
    var phase = Phase.idle
    /// Whether the host has accepted the request for the stream.
    var isAccepted = false
    /// The connection that the stream belongs to, while it is created or established.
    weak var link: LinkEnd?
    weak var other: StreamEnd?

    init(controller: VirtualController, handle: ConnectionHandle, parameters: StreamParameters) {
        self.parameters = parameters
        super.init(controller: controller, handle: handle)
    }

    override var isEstablished: Bool { phase == .established }

    var isCentral: Bool { link?.role == .central }
    private var burst: Int { isCentral ? parameters.bursts.central : parameters.bursts.peripheral }
    override var maximumSDU: Int { Int(isCentral ? parameters.cis.maxSDUCToP : parameters.cis.maxSDUPToC) }
    private var retransmissions: Int { Int(isCentral ? parameters.cis.rtnCToP : parameters.cis.rtnPToC) }

    func tellEstablished(_ status: HCIErrorCode = .success) {
        let (central, peripheral) = parameters.bursts
        let cis = parameters.cis
        let delay = UInt32(parameters.latency) * 1000
        controller.tellLE(
            LECISEstablished(
                status: status,
                connectionHandle: handle,
                cigSyncDelay: delay,
                cisSyncDelay: delay,
                transportLatencyCToP: delay,
                transportLatencyPToC: delay,
                phyCToP: PHYChoice.fastest(of: cis.phyCToP),
                phyPToC: PHYChoice.fastest(of: cis.phyPToC),
                nse: UInt8(truncatingIfNeeded: max(1, max(central, peripheral))),
                bnCToP: UInt8(truncatingIfNeeded: central),
                bnPToC: UInt8(truncatingIfNeeded: peripheral),
                ftCToP: 1,
                ftPToC: 1,
                maxPDUCToP: min(251, cis.maxSDUCToP),
                maxPDUPToC: min(251, cis.maxSDUPToC),
                isoInterval: parameters.isoInterval
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
        for index in 0..<burst {
            let number = UInt16(truncatingIfNeeded: counter * UInt64(burst) + UInt64(index))
            guard let unit = takeUnit(number: number) else { return }
            let isReceived = (0...retransmissions).contains { _ in
                controller.air.getsThrough(from: controller, to: receiver.controller, phy: phy)
            }
            receiver.deliver(isReceived ? unit.bytes : nil, number: number)
        }
    }

    // MARK: The end

    /// Ends the stream by request of the host, on both sides.
    func terminate(_ reason: HCIErrorCode) {
        let other = other
        end(.connectionTerminatedByLocalHost)
        guard let other else { return }
        controller.schedule(after: parameters.interval) { _ in other.end(reason) }
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

    /// Ends the stream at this side without a report to the host.
    func abandon() {
        phase = .idle
        link = nil
        other = nil
        dropData()
        if controller.isochronous.groups[parameters.cigID]?.contains(handle) != true {
            controller.isochronous.streams[handle] = nil
        }
    }
}
