import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// An advertisement or scan response as reported to a host, in the terms of extended scanning.
struct AdvertisingReport {
    let eventType: LEExtendedAdvertisingReport.EventType
    let address: PeerAddress
    let direction: Direction
    let primaryPHY: PHY
    let secondaryPHY: PHY
    let sid: UInt8
    let dataIdentifier: UInt16
    /// In dBm; 127 if the advertiser does not include it.
    let transmitPower: Int8
    let rssi: Int8
    /// In units of 1.25 ms; 0 without periodic advertising.
    let periodicInterval: UInt16
    let data: [UInt8]
    /// The number of data bytes received.
    private(set) var received: Int

    init(
        _ advertisement: Advertisement,
        eventType: LEExtendedAdvertisingReport.EventType,
        identity: Identity,
        direction: Direction,
        data: [UInt8],
        received: Int,
        rssi: Int8,
        distinguishesCoding: Bool
    ) {
        let set = advertisement.advertisingSet
        self.eventType = eventType
        address = identity.address
        self.direction = direction
        let phys =
            distinguishesCoding
            ? set.parameters.airPHYs : (set.parameters.primaryPHY, set.parameters.secondaryPHY)
        primaryPHY = phys.0
        secondaryPHY = advertisement.isLegacy ? .none : phys.1
        sid = set.parameters.sid
        // Legacy PDUs have no data identifier.
        dataIdentifier = advertisement.isLegacy ? 0 : set.dataIdentifier
        transmitPower = set.parameters.properties.contains(.includeTXPower) ? set.parameters.transmitPower : 127
        self.rssi = rssi
        periodicInterval = set.train.map { $0.isRunning ? $0.interval : 0 } ?? 0
        self.data = data
        self.received = received
    }

    func with(received: Int) -> AdvertisingReport {
        var report = self
        report.received = received
        return report
    }

    var isWhole: Bool { received == data.count }

    var reported: Scanner.Reported {
        Scanner.Reported(address: address, eventType: eventType.rawValue, sid: sid, dataIdentifier: dataIdentifier)
    }

    /// The data in fragments. An event with one report has room for 229 bytes of data.
    var fragments: [ReportFragment] { ReportFragment.all(of: data, received: received, perReport: 229) }

    func encodeExtended(_ fragment: ReportFragment, into buffer: inout PacketBuffer) {
        LEExtendedAdvertisingReport.Report(
            eventType: eventType.with(fragment.status),
            address: address,
            primaryPHY: primaryPHY,
            secondaryPHY: secondaryPHY,
            advertisingSID: sid,
            txPower: transmitPower,
            rssi: rssi,
            periodicAdvertisingInterval: periodicInterval,
            directAddress: directAddress,
            data: data.rawSpan.extracting(fragment.range)
        ).encodePacket(into: &buffer)
    }

    func encodeLegacy(into buffer: inout PacketBuffer) {
        LEAdvertisingReport.Report(
            eventType: legacyEventType,
            address: address,
            data: data.rawSpan,
            rssi: rssi
        ).encodePacket(into: &buffer)
    }

    func encodeDirected(to target: PeerAddress, into buffer: inout PacketBuffer) {
        LEDirectedAdvertisingReport.Report(address: address, directAddress: target, rssi: rssi)
            .encodePacket(into: &buffer)
    }

    private var directAddress: PeerAddress {
        switch direction {
        case .thisDevice(let address), .unresolved(let address): address
        case .everyone, .another: PeerAddress(type: .public, value: 0)
        }
    }

    private var legacyEventType: LEAdvertisingReport.EventType {
        if eventType.contains(.scanResponse) { return .scanResponse }
        if eventType.contains(.directed) { return .connectableDirected }
        if eventType.contains(.connectable) { return .connectableScannableUndirected }
        return eventType.contains(.scannable) ? .scannableUndirected : .nonConnectableUndirected
    }
}

extension LEExtendedAdvertisingReport.EventType {
    init(_ advertisement: Advertisement) {
        self = []
        if advertisement.isConnectable { insert(.connectable) }
        if advertisement.isScannable { insert(.scannable) }
        if advertisement.target != nil { insert(.directed) }
        if advertisement.isLegacy { insert(.legacyPDU) }
    }
}
