import BLEByteCoding
import BLEHCI
import BLESMP
import BluetoothTypes
import OrderedCollections

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// A ``GAPEngine`` with a controller: it is driven as the host drives it.
struct GAPWorld: ~Copyable {
    var engine: GAPEngine
    var controller = GAPController()
    var information: ControllerInformation
    var isOn = false
    var hasLinks = false
    var bonds: OrderedDictionary<DeviceAddress, BondRecord> = [:]
    var random = SeededGenerator(seed: 1)
    var now = GAPSample.start
    /// The passes that are scheduled, in their order.
    var passes: [GAPPlan] = []
    /// The commands that the controller has not answered, oldest first.
    var pending: [PlannedCommand] = []
    /// All commands that were sent.
    var sent: [GAPCommand] = []
    /// The effects for apps, the session and the log.
    var effects: [GAPEffect] = []
    /// The commands that the controller refused because they broke its rules.
    var violations: [GAPCommand] = []

    init(
        isPrivate: Bool = false,
        listSize: Int = 0,
        canScanWhileInitiating: Bool = true,
        isExtended: Bool = false,
        hasCodedPHY: Bool = false
    ) {
        information = GAPSample.information(isExtended: isExtended, listSize: listSize)
        information.filterAcceptListSize = 4
        information.supportedStates = canScanWhileInitiating ? .max : 0
        if hasCodedPHY { information.features.insert(.leCodedPHY) }
        controller.canScanWhileInitiating = canScanWhileInitiating
        controller.usesExtendedCommands = isExtended
        engine = GAPEngine(
            scanning: ScanPlan(silenceTimeout: .seconds(90)),
            advertising: AdvertisingPlan(refreshInterval: nil),
            addresses: AddressPlan(
                .init(usesPrivateAddresses: isPrivate, privacyMode: .device, timeout: .seconds(900))
            )
        )
    }

    /// A world whose controller is ready.
    static func on(
        isPrivate: Bool = false,
        listSize: Int = 0,
        canScanWhileInitiating: Bool = true,
        isExtended: Bool = false,
        hasCodedPHY: Bool = false
    ) -> GAPWorld {
        var world = GAPWorld(
            isPrivate: isPrivate,
            listSize: listSize,
            canScanWhileInitiating: canScanWhileInitiating,
            isExtended: isExtended,
            hasCodedPHY: hasCodedPHY
        )
        world.bringUp()
        world.sent = []
        world.effects = []
        return world
    }

    var context: GAPContext {
        GAPContext(
            now: now,
            controller: isOn ? information : nil,
            hasLinks: hasLinks,
            hasBroadcasts: false,
            ownKey: AddressPlanFixture.ownKey,
            bonds: bonds.values
        )
    }

    // MARK: Inputs

    mutating func bringUp() {
        isOn = false
        perform(engine.prepareAddresses(information, context, &random))
        settle()
        isOn = true
        perform(engine.controllerIsReady(context))
        settle()
    }

    mutating func startScan(_ number: UInt64, _ options: ScanOptions = ScanOptions()) {
        perform(engine.startScan(ScanIdentifier(value: number), options, context))
    }

    mutating func stopScan(_ number: UInt64) {
        perform(engine.stopScan(ScanIdentifier(value: number), context))
    }

    mutating func connect(_ number: UInt64, to peer: DeviceAddress, timeout: Duration? = nil) {
        let attempt = ConnectionAttempt(
            identifier: number,
            addresses: [peer],
            parameters: ConnectionParameters(),
            deadline: timeout.map { now + $0 }
        )
        perform(engine.beginAttempt(attempt, context))
    }

    /// Receives a connectable advertisement with extended PDUs and without data, if a scan is on.
    mutating func receiveAdvertisement(of device: DeviceAddress, on phy: PHY, secondaryPHY: PHY) {
        let receipt = AdvertisingReceipt(
            address: device,
            privateAddress: nil,
            rssi: -40,
            isConnectable: true,
            isScannable: false,
            isLegacy: false,
            primaryPHY: phy,
            secondaryPHY: secondaryPHY,
            isScanResponse: false,
            data: [UInt8]().rawSpan
        )
        _ = engine.scanning.receive(receipt, at: now)
    }

    mutating func advertise(
        _ number: UInt64,
        _ configuration: AdvertisementConfiguration = AdvertisementConfiguration()
    ) throws(HostError) {
        perform(
            try engine.startAdvertising(
                AdvertisementIdentifier(value: number),
                configuration,
                on: information,
                for: GAPWorld.call(number),
                context
            )
        )
    }

    mutating func synchronize(_ number: UInt64, with address: DeviceAddress) throws(HostError) {
        perform(
            try engine.startSynchronization(
                SynchronizationIdentifier(value: number),
                PeriodicTrainRequest(address: address, sid: 1),
                on: information,
                context
            )
        )
    }

    /// Sets the bonds with these peers, the most recently used one last. Each has the key with its number.
    mutating func bond(_ numbers: [UInt64]) {
        bonds = [:]
        for number in numbers {
            var bond = Bond(identity: AddressPlanFixture.peer(number))
            bond.identityResolvingKey = UInt128(number)
            bonds[bond.identity] = BondRecord(bond: bond)
        }
        perform(engine.bondsChanged(context))
    }

    mutating func advance(by duration: Duration) {
        now = now + duration
        perform(engine.advance(context, &random))
    }

    static func call(_ number: UInt64) -> CallToken { CallToken(index: UInt32(number), generation: 0) }

    static func link(_ number: UInt16) -> LinkIdentifier {
        LinkIdentifier(handle: ConnectionHandle(number), serial: UInt64(number))
    }

    // MARK: The host

    mutating func perform(_ effects: [GAPEffect]) {
        for effect in effects {
            switch effect {
            case .schedulePass(let plan): passes.append(plan)
            case .send(let command):
                pending.append(command)
                sent.append(command.command)
            default: self.effects.append(effect)
            }
        }
    }

    mutating func pass() {
        guard !passes.isEmpty else { return }
        perform(engine.runPass(of: passes.removeFirst(), context, &random))
    }

    /// Has the controller answer the oldest command, and report the end of a cancelled initiation at once.
    ///
    /// - Parameter failure: the answer; nil for that of the controller.
    mutating func reply(_ failure: CommandFailure? = nil) {
        guard !pending.isEmpty else { return }
        let next = pending.removeFirst()
        guard failure == nil else { return perform(engine.commandEnded(next.step, failure, context)) }
        let status = controller.perform(next.command)
        if status != .success, !GAPController.isUsual(status) { violations.append(next.command) }
        let refusal = status == .success ? nil : CommandFailure.status(status, next.command.opcode)
        perform(engine.commandEnded(next.step, refusal, context))
        if status == .success, next.command.opcode == LEPeriodicAdvertisingCreateSyncCancel.opcode {
            synchronizationEnded(.operationCancelledByHost)
        }
        guard controller.initiator.state == .ending else { return }
        controller.initiator.state = .idle
        let nobody = DeviceAddress(0, isRandom: false)
        perform(engine.connectionFailed(.unknownConnectionIdentifier, of: nobody, asCentral: true, context))
    }

    /// Has the controller report the end of the creation of a synchronization.
    mutating func synchronizationEnded(_ status: HCIErrorCode) {
        let event = LEPeriodicAdvertisingSyncEstablished(
            status: status,
            syncHandle: 1,
            advertisingSID: 1,
            advertiserAddress: PeerAddress(type: .random, value: 0),
            advertiserPHY: .le1M,
            periodicAdvertisingInterval: 80,
            advertiserClockAccuracy: 0
        )
        perform(engine.synchronizationEstablished(.init(event), context))
    }

    /// Runs until no pass is scheduled and no command is pending.
    mutating func settle() {
        while !passes.isEmpty || !pending.isEmpty {
            pass()
            reply()
        }
    }

    /// Has the session give up the controller: its commands end, and it is reset.
    mutating func reset() {
        isOn = false
        while !pending.isEmpty { reply(.aborted) }
        perform(engine.controllerWasLost(context))
        controller.reset()
    }

    /// Takes the commands that were sent, by their opcodes.
    mutating func takeSent() -> [HCIOpcode] {
        defer { sent = [] }
        return sent.map(\.opcode)
    }

    mutating func takeEffects() -> [GAPEffect] {
        defer { effects = [] }
        return effects
    }
}
