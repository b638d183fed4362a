import BLEHCI

// The host handles version 2 of these events. An event of version 1 is converted first.

extension LEPeriodicAdvertisingSyncEstablishedV2 {
    /// The event of version 1, which describes no subevents.
    init(_ event: LEPeriodicAdvertisingSyncEstablished) {
        self.init(
            status: event.status,
            syncHandle: event.syncHandle,
            advertisingSID: event.advertisingSID,
            advertiserAddress: event.advertiserAddress,
            advertiserPHY: event.advertiserPHY,
            periodicAdvertisingInterval: event.periodicAdvertisingInterval,
            advertiserClockAccuracy: event.advertiserClockAccuracy
        )
    }
}

extension LEPeriodicAdvertisingSyncTransferReceivedV2 {
    /// The event of version 1, which describes no subevents.
    init(_ event: LEPeriodicAdvertisingSyncTransferReceived) {
        self.init(
            status: event.status,
            connectionHandle: event.connectionHandle,
            serviceData: event.serviceData,
            syncHandle: event.syncHandle,
            advertisingSID: event.advertisingSID,
            advertiserAddress: event.advertiserAddress,
            advertiserPHY: event.advertiserPHY,
            periodicAdvertisingInterval: event.periodicAdvertisingInterval,
            advertiserClockAccuracy: event.advertiserClockAccuracy
        )
    }
}

extension LECISEstablishedV2 {
    /// The event of version 1, which describes neither SDUs nor framing. So nothing is known about the longest SDU.
    ///
    /// The burst number counts PDUs. An SDU that fits one PDU is assumed to have one; a longer one is assumed to be the
    /// only one of its ISO interval (Vol 6, Part G, 2.1).
    init(_ event: LECISEstablished) {
        let interval = 1250 * UInt32(event.isoInterval)
        func sduInterval(_ burst: UInt8, _ maximumPDU: UInt16) -> UInt32 {
            maximumPDU < 251 ? interval / max(1, UInt32(burst)) : interval
        }
        func longestSDU(_ burst: UInt8) -> UInt16 { burst == 0 ? 0 : UInt16(ISODataLoadHeader.maximumSDULength) }
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
            maxSDUCToP: longestSDU(event.bnCToP),
            maxSDUPToC: longestSDU(event.bnPToC),
            sduIntervalCToP: sduInterval(event.bnCToP, event.maxPDUCToP),
            sduIntervalPToC: sduInterval(event.bnPToC, event.maxPDUPToC),
            framing: .unframed
        )
    }
}
