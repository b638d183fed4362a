import BLEHCI
import BluetoothTypes

extension ISOFraming {
    /// The longest payload of a PDU of a stream, in bytes.
    fileprivate static let longestPDU = 251

    /// How the PDUs of a stream are framed (Vol 6, Part G, 2).
    ///
    /// The ISO interval of a stream is a multiple of 1.25 ms. With unframed PDUs, it is also a multiple of the SDU interval,
    /// and the burst number is that of the PDUs for all its SDUs. Framed PDUs have neither limit, but some bytes more.
    ///
    /// - Parameters:
    ///   - sduInterval: in microseconds, at least 1.
    ///   - maximumSDU: in bytes.
    ///   - burstLimit: the highest burst number: 15 for a connected stream, 7 for a broadcast one.
    static func of(sduInterval: Int, maximumSDU: Int, burstLimit: Int) -> ISOFraming {
        let unit = 1250
        var (divisor, rest) = (sduInterval, unit)
        while rest != 0 { (divisor, rest) = (rest, divisor % rest) }
        let sdusPerInterval = unit / divisor
        let isoIntervals = unit * 4...unit * 0x0C80
        // The shortest ISO interval that both divide, or the first multiple of it that is long enough.
        let shortest = sduInterval * sdusPerInterval
        let factor = max(1, (isoIntervals.lowerBound + shortest - 1) / shortest)
        let pdusPerSDU = max(1, (maximumSDU + longestPDU - 1) / longestPDU)
        let isPossible =
            isoIntervals.contains(shortest * factor) && sdusPerInterval * factor * pdusPerSDU <= burstLimit
        return isPossible ? .unframed : .framed
    }
}

extension LEEventMask {
    /// The events of the establishment of a stream. A controller that has version 2 sends no other.
    static let streamsEstablished: LEEventMask = [.cisEstablished, .cisEstablishedV2]
}

extension LECISEstablishedV2 {
    /// The event of version 1, which describes no SDUs.
    ///
    /// The burst number counts PDUs. An SDU that fits one PDU is assumed to have one; a longer one is assumed to be the only
    /// one of its ISO interval (Vol 6, Part G, 2.1). No SDU is longer than the PDUs of an interval.
    init(_ event: LECISEstablished) {
        let interval = 1250 * UInt32(event.isoInterval)
        func sduInterval(_ burst: UInt8, _ maximumPDU: UInt16) -> UInt32 {
            maximumPDU < ISOFraming.longestPDU ? interval / max(1, UInt32(burst)) : interval
        }
        func longestSDU(_ burst: UInt8, _ maximumPDU: UInt16) -> UInt16 {
            min(maximumPDU, UInt16(ISOFraming.longestPDU)) * UInt16(burst)
        }
        self.init(
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
            isoInterval: event.isoInterval,
            maxSDUCToP: longestSDU(event.bnCToP, event.maxPDUCToP),
            maxSDUPToC: longestSDU(event.bnPToC, event.maxPDUPToC),
            sduIntervalCToP: sduInterval(event.bnCToP, event.maxPDUCToP),
            sduIntervalPToC: sduInterval(event.bnPToC, event.maxPDUPToC),
            framing: .unframed
        )
    }
}
