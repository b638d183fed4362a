import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The periodic trains that the controller receives, and the periodic advertiser list.
struct Synchronizer {
    /// A train that the host has requested.
    enum Pending {
        /// The advertiser has not been heard.
        case searching(LEPeriodicAdvertisingCreateSync)
        /// The timing of the train is known, but no event has been received.
        case acquiring(PeriodicSync)
    }

    static let maximumSyncs = 16

    var pending: Pending?
    var syncs: [PeriodicSync] = []
    /// The trains that peers have transferred, and of which no event has been received.
    var transfers: [IncomingTransfer] = []
    var advertiserList = PeriodicAdvertiserList()

    /// The synchronizations, including those whose trains have not been received.
    private var all: [PeriodicSync] {
        var all = syncs + transfers.map(\.sync)
        if case .acquiring(let sync)? = pending { all.append(sync) }
        return all
    }

    /// The lowest free handle.
    var freeHandle: UInt16? {
        let all = all
        return (0..<UInt16(Self.maximumSyncs)).first { handle in !all.contains { $0.handle == handle } }
    }

    /// Whether the controller receives a train, or tries to.
    func isSynchronized(with advertiser: DeviceAddress?, _ sid: UInt8) -> Bool {
        all.contains { $0.sid == sid && $0.advertiser.deviceAddress == advertiser }
    }
}

/// A periodic train received by one controller.
final class PeriodicSync {
    let handle: UInt16
    /// The advertiser as reported to the host.
    let advertiser: PeerAddress
    /// The advertiser's address on the air.
    let address: DeviceAddress
    let sid: UInt8
    /// Whether the data of the train is reported to the host.
    var isReporting: Bool
    fileprivate let timeout: Duration
    private(set) weak var receiver: VirtualController?
    private(set) weak var train: PeriodicTrain?
    var lastHeard: Instant
    /// When the last packet reaches the host.
    private var lastDelivery: Instant
    /// The subevents that the host has chosen; nil if it has chosen none.
    var subevents: [UInt8]?
    /// The fields of each response.
    var responseProperties: PeriodicAdvertisingProperties = []

    init(
        handle: UInt16,
        advertiser: PeerAddress,
        address: DeviceAddress,
        sid: UInt8,
        isReporting: Bool = true,
        timeout: Duration,
        receiver: VirtualController,
        train: PeriodicTrain
    ) {
        self.handle = handle
        self.advertiser = advertiser
        self.address = address
        self.sid = sid
        self.isReporting = isReporting
        self.timeout = timeout
        self.receiver = receiver
        self.train = train
        lastHeard = receiver.air.now
        lastDelivery = lastHeard
    }

    func leaveTrain() {
        train?.remove(self)
        train = nil
    }

    /// Receives an event of the train, as far as it gets through.
    func hear(_ train: PeriodicTrain, from sender: VirtualController, _ parameters: AdvertisingSet.Parameters) {
        guard let receiver,
            let octets = receiver.receive(train.payload, from: sender, parameters, phy: parameters.secondaryPHY)
        else { return }
        lastHeard = receiver.air.now
        let rssi = receiver.rssi(from: sender, parameters)
        let (payload, interval) = (train.payload, train.interval)
        let power = train.properties.contains(.includeTXPower) ? parameters.transmitPower : 127
        let packet = PeriodicPacket(
            data: payload.bytes,
            received: octets,
            rssi: rssi,
            power: power,
            phy: parameters.secondaryPHY,
            interval: interval,
            event: train.eventCounter,
            broadcast: octets == payload.bytes.count ? train.broadcast?.announcement(on: handle) : nil
        )
        deliver(packet, from: sender)
    }

    /// Gives a packet to the host's side, after the delay of the air and behind the packets before it.
    func deliver(_ packet: PeriodicPacket, from sender: VirtualController) {
        guard let receiver else { return }
        let now = receiver.air.now
        lastDelivery = max(lastDelivery, now + receiver.air.delay(from: sender, to: receiver))
        receiver.perform(after: lastDelivery - now) { $0.takeTrain(self, packet) }
    }
}

/// The packets of one event of a train, or of one subevent, as a receiver gets them.
struct PeriodicPacket {
    var data: [UInt8]
    /// The number of received bytes; nil if no packet was received.
    var received: Int?
    var rssi: Int8 = 127
    var power: Int8 = 127
    var phy: PHY
    /// In units of 1.25 ms.
    var interval: UInt16
    /// The number of the event.
    var event: UInt16
    /// Nil for a train without subevents.
    var subevent: UInt8?
    var subevents: SubeventTiming?
    /// The announcement of a broadcast group; nil for none.
    var broadcast: LEBIGInfoAdvertisingReport?
}

extension VirtualController {
    // MARK: Commands

    func createSync(_ command: LEPeriodicAdvertisingCreateSync) -> CommandTable.Beginning {
        guard synchronizer.pending == nil else { return .refused(.commandDisallowed) }
        let options: PeriodicSyncOptions = [
            .usePeriodicAdvertiserList, .reportingInitiallyDisabled, .duplicateFilteringInitiallyEnabled,
        ]
        // With the list, the SID is ignored.
        let usesList = command.options.contains(.usePeriodicAdvertiserList)
        guard options.isSuperset(of: command.options), usesList || command.advertisingSID <= 0x0F,
            command.skip <= 0x01F3, (0x000A...0x4000).contains(command.syncTimeout)
        else { return .refused(.invalidHCICommandParameters) }
        // All kinds of constant tone extension, and none, are refused.
        guard command.syncCTEType & 0x1F != 0x1F else { return .refused(.commandDisallowed) }
        // Trains have no ADI field.
        guard !command.options.contains(.duplicateFilteringInitiallyEnabled) else {
            return .refused(.unsupportedFeatureOrParameterValue)
        }
        if !usesList {
            guard !synchronizer.isSynchronized(with: command.advertiserAddress, command.advertisingSID) else {
                return .refused(.connectionAlreadyExists)
            }
        }
        guard synchronizer.freeHandle != nil else { return .refused(.memoryCapacityExceeded) }
        synchronizer.pending = .searching(command)
        return .begun {}
    }

    func cancelSync() -> HCIErrorCode {
        guard let pending = synchronizer.pending else { return .commandDisallowed }
        synchronizer.pending = nil
        if case .acquiring(let sync) = pending { sync.leaveTrain() }
        // The answer to the command is sent first.
        schedule { $0.tellNotSynchronized(.operationCancelledByHost) }
        return .success
    }

    func terminateSync(_ command: LEPeriodicAdvertisingTerminateSync) -> HCIErrorCode {
        guard command.syncHandle <= 0x0EFF else { return .invalidHCICommandParameters }
        guard let index = synchronizer.syncs.firstIndex(where: { $0.handle == command.syncHandle }) else {
            return .unknownAdvertisingIdentifier
        }
        synchronizer.syncs.remove(at: index).leaveTrain()
        return .success
    }

    func setReceiving(_ command: LESetPeriodicAdvertisingReceiveEnable) -> HCIErrorCode {
        guard command.syncHandle <= 0x0EFF,
            PeriodicAdvertisingReceiveEnable([.reporting, .duplicateFiltering]).isSuperset(of: command.enable)
        else { return .invalidHCICommandParameters }
        guard let sync = synchronizer.syncs.first(where: { $0.handle == command.syncHandle }) else {
            return .unknownAdvertisingIdentifier
        }
        // Trains have no ADI field.
        guard !command.enable.contains(.duplicateFiltering) else { return .unsupportedFeatureOrParameterValue }
        sync.isReporting = command.enable.contains(.reporting)
        return .success
    }

    /// Stops receiving trains.
    func stopSynchronizing() {
        for transfer in synchronizer.transfers { transfer.sync.leaveTrain() }
        if case .acquiring(let sync)? = synchronizer.pending { sync.leaveTrain() }
        for sync in synchronizer.syncs { sync.leaveTrain() }
        synchronizer = Synchronizer()
    }

    // MARK: Finding a train

    /// Synchronizes with the train that an advertisement announces, if the host has requested that train.
    func synchronize(with advertisement: Advertisement, of identity: Identity) {
        guard case .searching(let wanted)? = synchronizer.pending, let train = advertisement.advertisingSet.train,
            train.isRunning, canReceive(train), isWanted(advertisement, of: identity, by: wanted),
            !synchronizer.isSynchronized(
                with: identity.address.deviceAddress,
                advertisement.advertisingSet.parameters.sid
            ),
            let handle = synchronizer.freeHandle
        else { return }
        let sync = PeriodicSync(
            handle: handle,
            advertiser: identity.address,
            address: advertisement.address.address,
            sid: advertisement.advertisingSet.parameters.sid,
            isReporting: !wanted.options.contains(.reportingInitiallyDisabled),
            timeout: .milliseconds(10 * Int(wanted.syncTimeout)),
            receiver: self,
            train: train
        )
        synchronizer.pending = .acquiring(sync)
        train.add(sync)
        // Synchronization fails if none of six events is received (Vol 6, Part B, 4.4.5).
        schedule(after: train.intervalDuration * 6 + .milliseconds(1)) { controller in
            guard case .acquiring(let pending)? = controller.synchronizer.pending, pending === sync else { return }
            sync.leaveTrain()
            controller.synchronizer.pending = nil
            controller.tellNotSynchronized(.connectionFailedToBeEstablished)
        }
    }

    /// Whether an advertisement announces the train that the host has requested, or one on the periodic advertiser
    /// list.
    private func isWanted(
        _ advertisement: Advertisement,
        of identity: Identity,
        by wanted: LEPeriodicAdvertisingCreateSync
    ) -> Bool {
        let sid = advertisement.advertisingSet.parameters.sid
        let addresses = [identity.address.deviceAddress, advertisement.address.address]
        guard !wanted.options.contains(.usePeriodicAdvertiserList) else {
            return addresses.contains { address in
                address.map { synchronizer.advertiserList.contains($0, sid) } ?? false
            }
        }
        return wanted.advertisingSID == sid && addresses.contains(wanted.advertiserAddress)
    }

    // MARK: Receiving

    /// Reports an event of a train to the host. The first one completes the synchronization.
    func takeTrain(_ sync: PeriodicSync, _ packet: PeriodicPacket) {
        if case .acquiring(let pending)? = synchronizer.pending, pending === sync {
            guard packet.received != nil else { return }
            synchronizer.pending = nil
            synchronizer.syncs.append(sync)
            tellSynchronized(sync, packet)
            watch(sync, until: sync.lastHeard + sync.timeout)
        } else if packet.received != nil, let transfer = takeTransfer(sync) {
            synchronizer.syncs.append(sync)
            tellTransferred(transfer, packet)
            watch(sync, until: sync.lastHeard + sync.timeout)
        }
        guard synchronizer.syncs.contains(where: { $0 === sync }), sync.isReporting else { return }
        if let subevent = packet.subevent {
            guard sync.subevents?.contains(subevent) == true else { return }
        }
        if host.wants(subevent: LEPeriodicAdvertisingReportV2.subeventCode) {
            reportV2(sync, packet)
        } else if packet.subevent == nil, host.wants(subevent: LEPeriodicAdvertisingReport.subeventCode) {
            // The report leaves 247 of the 255 parameter bytes for data.
            for fragment in ReportFragment.all(of: packet.data, received: packet.received ?? 0, perReport: 247) {
                report { buffer in
                    LEPeriodicAdvertisingReport(
                        syncHandle: sync.handle,
                        txPower: packet.power,
                        rssi: packet.rssi,
                        dataStatus: fragment.status,
                        data: packet.data.rawSpan.extracting(fragment.range)
                    ).encodePacket(into: &buffer)
                }
            }
        }
        if let broadcast = packet.broadcast { tellLE(broadcast) }
    }

    private func reportV2(_ sync: PeriodicSync, _ packet: PeriodicPacket) {
        // The report leaves 244 of the 255 parameter bytes for data.
        for fragment in ReportFragment.all(of: packet.data, received: packet.received ?? 0, perReport: 244) {
            report { buffer in
                LEPeriodicAdvertisingReportV2(
                    syncHandle: sync.handle,
                    txPower: packet.power,
                    rssi: packet.rssi,
                    periodicEventCounter: packet.event,
                    subevent: packet.subevent ?? 0xFF,
                    dataStatus: packet.received == nil ? .failedToReceive : fragment.status,
                    data: packet.data.rawSpan.extracting(fragment.range)
                ).encodePacket(into: &buffer)
            }
        }
    }

    /// Checks at the deadline whether the train is still being received.
    private func watch(_ sync: PeriodicSync, until deadline: Instant) {
        schedule(after: deadline - air.now) { controller in
            guard let index = controller.synchronizer.syncs.firstIndex(where: { $0 === sync }) else { return }
            let next = sync.lastHeard + sync.timeout
            guard next <= controller.air.now else { return controller.watch(sync, until: next) }
            controller.synchronizer.syncs.remove(at: index)
            sync.leaveTrain()
            controller.tellLE(LEPeriodicAdvertisingSyncLost(syncHandle: sync.handle))
        }
    }

    private func tellSynchronized(_ sync: PeriodicSync, _ packet: PeriodicPacket) {
        tell(
            LEPeriodicAdvertisingSyncEstablishedV2(
                syncHandle: sync.handle,
                advertisingSID: sync.sid,
                advertiserAddress: sync.advertiser,
                advertiserPHY: packet.phy,
                periodicAdvertisingInterval: packet.interval,
                advertiserClockAccuracy: 0,
                numSubevents: packet.subevents?.count ?? 0,
                subeventInterval: packet.subevents?.interval ?? 0,
                responseSlotDelay: packet.subevents?.responseSlotDelay ?? 0,
                responseSlotSpacing: packet.subevents?.responseSlotSpacing ?? 0
            )
        )
    }

    private func tellNotSynchronized(_ status: HCIErrorCode) {
        tell(
            LEPeriodicAdvertisingSyncEstablishedV2(
                status: status,
                syncHandle: 0,
                advertisingSID: 0,
                advertiserAddress: PeerAddress(type: .public, value: 0),
                advertiserPHY: .le1M,
                periodicAdvertisingInterval: 0,
                advertiserClockAccuracy: 0
            )
        )
    }

    /// Sends the event in the newest version that the host wants.
    private func tell(_ event: LEPeriodicAdvertisingSyncEstablishedV2) {
        guard !host.wants(subevent: LEPeriodicAdvertisingSyncEstablishedV2.subeventCode) else { return tellLE(event) }
        tellLE(
            LEPeriodicAdvertisingSyncEstablished(
                status: event.status,
                syncHandle: event.syncHandle,
                advertisingSID: event.advertisingSID,
                advertiserAddress: event.advertiserAddress,
                advertiserPHY: event.advertiserPHY,
                periodicAdvertisingInterval: event.periodicAdvertisingInterval,
                advertiserClockAccuracy: event.advertiserClockAccuracy
            )
        )
    }
}
