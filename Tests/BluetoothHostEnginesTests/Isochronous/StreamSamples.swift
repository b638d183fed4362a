import BLEHCI
import BluetoothTypes

extension LECISEstablishedV2 {
    /// A stream that the controller reports as established.
    static func sample(
        _ handle: ConnectionHandle,
        _ status: HCIErrorCode = .success,
        bursts: (UInt8, UInt8) = (1, 1),
        sdu: (maximum: UInt16, interval: UInt32) = (100, 10_000)
    ) -> LECISEstablishedV2 {
        LECISEstablishedV2(
            status: status,
            connectionHandle: handle,
            cigSyncDelay: 1000,
            cisSyncDelay: 1000,
            transportLatencyCToP: 1000,
            transportLatencyPToC: 1000,
            phyCToP: .le2M,
            phyPToC: .le2M,
            nse: 1,
            bnCToP: bursts.0,
            bnPToC: bursts.1,
            ftCToP: 1,
            ftPToC: 1,
            maxPDUCToP: 100,
            maxPDUPToC: 100,
            isoInterval: 8,
            maxSDUCToP: sdu.maximum,
            maxSDUPToC: sdu.maximum,
            sduIntervalCToP: sdu.interval,
            sduIntervalPToC: sdu.interval,
            framing: .unframed
        )
    }
}
