import BLEHCI
import BLEHCITransport
import BluetoothHost
import BluetoothTesting
import BluetoothTypes

/// The specification's rules for scanning and initiating, on a scripted controller.
///
/// A command that the specification forbids in the controller's state is recorded and refused with Command Disallowed.
/// A cancelled initiation ends some time after the answer to LE Create Connection Cancel.
///
/// Used only on the simulated loop that runs its controller.
final class RadioRules {
    /// One accepted LE Create Connection.
    struct Initiation {
        let peers: Set<DeviceAddress>
        let begin: Instant
        var end: Instant?
    }

    /// A reference that does not keep the rules.
    private struct Reference {
        weak let rules: RadioRules?
    }

    private enum State {
        case idle
        case initiating
        case cancelling
    }

    private unowned let controller: ScriptedController
    private var state = State.idle
    private var usesAcceptList = false
    private var acceptList: Set<DeviceAddress> = []
    private var isScanning = false
    private var scansActively = false
    /// The number of times that scanning has started.
    private var scanCount = 0
    /// The number of resets and initiations.
    private var generation = 0

    private(set) var initiations: [Initiation] = []
    /// The commands that were refused.
    private(set) var refusals: [HCIOpcode] = []
    /// The time from the answer to LE Create Connection Cancel to the end of the initiation.
    var cancellationTime = Duration.milliseconds(3)
    /// The time that the controller takes to answer LE Set Scan Enable.
    var scanEnableTime = Duration.zero
    /// Advertisements that are received every 300 ms while the controller scans.
    var advertisements: [[UInt8]] = []

    /// The event that ends a cancelled initiation.
    static let end: [UInt8] = ScriptedController.packet {
        LEConnectionComplete(
            status: .unknownConnectionIdentifier,
            connectionHandle: 0,
            role: .central,
            peerAddress: PeerAddress(type: .public, value: 0),
            connectionInterval: 0,
            peripheralLatency: 0,
            supervisionTimeout: 0
        ).encodePacket(into: &$0)
    }

    init(_ controller: ScriptedController) {
        self.controller = controller
        controller.override = { self.answer($0) }
    }

    func forgetInitiations() {
        initiations = initiations.filter { $0.end == nil }
    }

    /// How long the controller initiated connections to a peer.
    func time(of peer: DeviceAddress) -> Duration {
        initiations.filter { $0.peers.contains(peer) }
            .reduce(.zero) { $0 + (($1.end ?? controller.loop.now) - $1.begin) }
    }

    /// Ends the initiation with a connection.
    func connect(_ fixture: HostFixture, _ handle: ConnectionHandle, to peer: DeviceAddress) {
        endInitiation()
        fixture.connect(handle, role: .central, peer: peer)
    }

    // MARK: Commands

    private func answer(_ command: ScriptedController.CommandView) -> ScriptedController.Answer? {
        guard isAllowed(command) else {
            refusals.append(command.opcode)
            if command.opcode == LECreateConnection.opcode {
                return ScriptedController.status(command.opcode, .commandDisallowed)
            }
            return .packets([RadioRules.completion(of: command.opcode, .commandDisallowed)])
        }
        perform(command)
        guard command.opcode == LESetScanEnable.opcode, scanEnableTime > .zero else { return nil }
        after(scanEnableTime) { $0.controller.emit(RadioRules.completion(of: command.opcode, .success)) }
        return .silence
    }

    private func isAllowed(_ command: ScriptedController.CommandView) -> Bool {
        switch command.opcode {
        case LESetRandomAddress.opcode, LESetScanParameters.opcode:
            // Vol 4, Part E, 7.8.4 and 7.8.10.
            return !isScanning && (state == .idle || command.opcode == LESetScanParameters.opcode)
        case LESetScanEnable.opcode:
            let isEnabled = command.decode(LESetScanEnable.self)?.leScanEnable == true
            return !isEnabled || state == .idle || canScanWhileInitiating
        case LEClearFilterAcceptList.opcode, LEAddDeviceToFilterAcceptList.opcode,
            LERemoveDeviceFromFilterAcceptList.opcode:
            // Vol 4, Part E, 7.8.15 to 7.8.17.
            return state == .idle || !usesAcceptList
        case LECreateConnection.opcode:
            // Vol 4, Part E, 7.8.12.
            return state == .idle && (!isScanning || canScanWhileInitiating)
        case LECreateConnectionCancel.opcode:
            // Vol 4, Part E, 7.8.13.
            return state == .initiating
        default: return true
        }
    }

    /// Vol 4, Part E, 7.8.27: bits 22 and 23.
    private var canScanWhileInitiating: Bool {
        controller.profile.states >> (scansActively ? 23 : 22) & 1 == 1
    }

    private func perform(_ command: ScriptedController.CommandView) {
        if let parameters = command.decode(LESetScanParameters.self) {
            scansActively = parameters.leScanType == .active
        }
        if let enable = command.decode(LESetScanEnable.self) {
            isScanning = enable.leScanEnable
            scanCount += 1
            if isScanning, !advertisements.isEmpty { advertise() }
        }
        if let addition = command.decode(LEAddDeviceToFilterAcceptList.self), let peer = addition.address.deviceAddress
        {
            acceptList.insert(peer)
        }
        if let initiation = command.decode(LECreateConnection.self) {
            generation += 1
            state = .initiating
            usesAcceptList = initiation.initiatorFilterPolicy == .filterAcceptList
            let peer = initiation.peerAddress.deviceAddress.map { Set([$0]) } ?? []
            initiations.append(Initiation(peers: usesAcceptList ? acceptList : peer, begin: controller.loop.now))
        }
        switch command.opcode {
        case LEClearFilterAcceptList.opcode: acceptList = []
        case LECreateConnectionCancel.opcode:
            state = .cancelling
            after(cancellationTime) { [generation] rules in
                guard rules.generation == generation, rules.state == .cancelling else { return }
                rules.endInitiation()
                rules.controller.emit(RadioRules.end)
            }
        case Reset.opcode:
            generation += 1
            endInitiation()
            isScanning = false
            acceptList = []
        default: break
        }
    }

    private func endInitiation() {
        guard state != .idle else { return }
        state = .idle
        initiations[initiations.count - 1].end = controller.loop.now
    }

    private func advertise() {
        after(.milliseconds(300)) { [scanCount] rules in
            guard rules.isScanning, rules.scanCount == scanCount else { return }
            for advertisement in rules.advertisements { rules.controller.emit(advertisement) }
            rules.advertise()
        }
    }

    private func after(_ duration: Duration, _ action: @escaping @Sendable (RadioRules) -> Void) {
        let reference = LoopConfined(Reference(rules: self), to: controller.loop)
        let alarm = controller.loop.makeAlarm {
            if let rules = reference.value.rules { action(rules) }
        }
        alarm.set(controller.loop.now + duration)
    }

    private static func completion(of opcode: HCIOpcode, _ status: HCIErrorCode) -> [UInt8] {
        [
            0x04, 0x0E, 0x04, 0x01, UInt8(truncatingIfNeeded: opcode.rawValue),
            UInt8(truncatingIfNeeded: opcode.rawValue >> 8), status.rawValue,
        ]
    }
}
