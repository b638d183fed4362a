import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The periodic trains that the controller receives.
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

    /// The lowest free handle.
    var freeHandle: UInt16? {
        (0..<UInt16(Self.maximumSyncs)).first { handle in !syncs.contains { $0.handle == handle } }
    }
}

/// A periodic train received by one controller.
final class PeriodicSync {
    let handle: UInt16
    let advertiser: PeerAddress
    let sid: UInt8
    fileprivate let timeout: Duration
    fileprivate weak var receiver: VirtualController?
    fileprivate weak var train: PeriodicTrain?
    fileprivate var lastHeard: Instant

    fileprivate init(
        handle: UInt16,
        advertiser: PeerAddress,
        sid: UInt8,
        timeout: Duration,
        receiver: VirtualController,
        train: PeriodicTrain
    ) {
        self.handle = handle
        self.advertiser = advertiser
        self.sid = sid
        self.timeout = timeout
        self.receiver = receiver
        self.train = train
        lastHeard = receiver.air.now
    }

    fileprivate func leaveTrain() {
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
        receiver.perform(after: receiver.air.delay(from: sender, to: receiver)) { receiver in
            receiver.takeTrain(
                self,
                payload.bytes,
                received: octets,
                rssi: rssi,
                power: power,
                phy: parameters.secondaryPHY,
                interval: interval
            )
        }
    }
}

extension VirtualController {
    // MARK: Commands

    func createSync(_ command: LEPeriodicAdvertisingCreateSync) -> CommandTable.Beginning {
        guard synchronizer.pending == nil else { return .refused(.commandDisallowed) }
        let options: PeriodicSyncOptions = [
            .usePeriodicAdvertiserList, .reportingInitiallyDisabled, .duplicateFilteringInitiallyEnabled,
        ]
        guard options.isSuperset(of: command.options), command.advertisingSID <= 0x0F, command.skip <= 0x01F3,
            (0x000A...0x4000).contains(command.syncTimeout)
        else { return .refused(.invalidHCICommandParameters) }
        // All kinds of constant tone extension, and none, are refused.
        guard command.syncCTEType & 0x1F != 0x1F else { return .refused(.commandDisallowed) }
        // The controller has no periodic advertiser list, and no command to enable reporting later.
        guard !command.options.contains(.usePeriodicAdvertiserList) else {
            return .refused(.unsupportedFeatureOrParameterValue)
        }
        guard !command.options.contains(.reportingInitiallyDisabled) else {
            return .refused(.connectionFailedToBeEstablished)
        }
        guard !command.options.contains(.duplicateFilteringInitiallyEnabled) else {
            return .refused(.unsupportedFeatureOrParameterValue)
        }
        let isKnown = synchronizer.syncs.contains {
            $0.sid == command.advertisingSID && $0.advertiser.deviceAddress == command.advertiserAddress
        }
        guard !isKnown else { return .refused(.connectionAlreadyExists) }
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

    /// Stops receiving trains.
    func stopSynchronizing() {
        if case .acquiring(let sync)? = synchronizer.pending { sync.leaveTrain() }
        for sync in synchronizer.syncs { sync.leaveTrain() }
        synchronizer = Synchronizer()
    }

    // MARK: Finding a train

    /// Synchronizes with the train that an advertisement announces, if the host has requested that train.
    func synchronize(with advertisement: Advertisement, of identity: Identity) {
        guard case .searching(let wanted)? = synchronizer.pending, let train = advertisement.advertisingSet.train,
            train.isRunning,
            wanted.advertisingSID == advertisement.advertisingSet.parameters.sid,
            identity.address.deviceAddress == wanted.advertiserAddress
                || advertisement.address.address == wanted.advertiserAddress,
            let handle = synchronizer.freeHandle
        else { return }
        let sync = PeriodicSync(
            handle: handle,
            advertiser: identity.address,
            sid: wanted.advertisingSID,
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

    // MARK: Receiving

    fileprivate func takeTrain(
        _ sync: PeriodicSync,
        _ data: [UInt8],
        received: Int,
        rssi: Int8,
        power: Int8,
        phy: PHY,
        interval: UInt16
    ) {
        if case .acquiring(let pending)? = synchronizer.pending, pending === sync {
            synchronizer.pending = nil
            synchronizer.syncs.append(sync)
            tellLE(
                LEPeriodicAdvertisingSyncEstablished(
                    syncHandle: sync.handle,
                    advertisingSID: sync.sid,
                    advertiserAddress: sync.advertiser,
                    advertiserPHY: phy,
                    periodicAdvertisingInterval: interval,
                    advertiserClockAccuracy: 0
                )
            )
            watch(sync, until: sync.lastHeard + sync.timeout)
        }
        guard synchronizer.syncs.contains(where: { $0 === sync }),
            host.wants(subevent: LEPeriodicAdvertisingReport.subeventCode)
        else { return }
        // The report leaves 247 of the 255 parameter bytes for data.
        for fragment in ReportFragment.all(of: data, received: received, perReport: 247) {
            report { buffer in
                LEPeriodicAdvertisingReport(
                    syncHandle: sync.handle,
                    txPower: power,
                    rssi: rssi,
                    dataStatus: fragment.status,
                    data: data.rawSpan.extracting(fragment.range)
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

    private func tellNotSynchronized(_ status: HCIErrorCode) {
        tellLE(
            LEPeriodicAdvertisingSyncEstablished(
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
}
