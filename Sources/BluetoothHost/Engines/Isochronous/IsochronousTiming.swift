import BLEHCI
import BluetoothTypes

extension ISOFraming {
    /// The longest payload of a PDU of a stream, in bytes.
    private static let longestPDU = 251
    /// The ISO intervals of a stream, in microseconds.
    private static let isoIntervals = 5000...4_000_000

    /// How the PDUs of a stream are framed (Vol 6, Part G, 2).
    ///
    /// The ISO interval of a stream is a multiple of 1.25 ms. With unframed PDUs, it is also a multiple of the SDU
    /// interval. The burst number counts the PDUs of all SDUs in it, and the first SDU waits for the last. Framed PDUs
    /// have no such limits, but some bytes more.
    ///
    /// - Parameters:
    ///   - sduInterval: in microseconds, at least 1.
    ///   - maximumSDU: in bytes.
    ///   - latency: the longest time for an SDU, in microseconds.
    ///   - burstLimit: the highest burst number: 15 for a connected stream, 7 for a broadcast one.
    static func of(sduInterval: Int, maximumSDU: Int, latency: Int, burstLimit: Int) -> ISOFraming {
        var (divisor, rest) = (sduInterval, 1250)
        while rest != 0 { (divisor, rest) = (rest, divisor % rest) }
        // The shortest time that both divide, or the first multiple of it that is an ISO interval.
        let common = sduInterval / divisor * 1250
        let isoInterval = common * max(1, (isoIntervals.lowerBound + common - 1) / common)
        let pdusPerSDU = max(1, (maximumSDU + longestPDU - 1) / longestPDU)
        let isPossible =
            isoIntervals.contains(isoInterval) && isoInterval / sduInterval * pdusPerSDU <= burstLimit
            && isoInterval - sduInterval < latency
        return isPossible ? .unframed : .framed
    }
}

extension ControllerInformation {
    /// The events of the establishment of a stream. Controllers of Bluetooth 6.0 and later have version 2, and send no
    /// other then.
    var streamEvents: LEEventMask { hciVersion >= 0x0E ? [.cisEstablished, .cisEstablishedV2] : .cisEstablished }
}

extension LECISEstablishedV2 {
    /// The time between two SDUs of the peripheral. A controller that gives none has one SDU in each ISO interval.
    var sduIntervalOfPeripheral: Duration {
        sduIntervalPToC >= 255 ? .microseconds(Int(sduIntervalPToC)) : .microseconds(1250 * Int(isoInterval))
    }
}
