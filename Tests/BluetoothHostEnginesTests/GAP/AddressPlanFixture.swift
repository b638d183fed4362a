import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// A plan for addresses, and what its inputs need.
struct AddressPlanFixture {
    static let ownKey: UInt128 = 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10

    var plan: AddressPlan
    var context: AddressPlan.Context
    var random = SeededGenerator(seed: 1)
    var now = GAPSample.start
    /// The effects of the replies.
    var effects: [AddressEffect] = []

    init(
        isPrivate: Bool = false,
        mode: PrivacyMode = .device,
        timeout: Duration = .seconds(900),
        _ information: ControllerInformation = GAPSample.information()
    ) {
        plan = AddressPlan(.init(usesPrivateAddresses: isPrivate, privacyMode: mode, timeout: timeout))
        context = AddressPlan.Context(information: information, ownKey: Self.ownKey)
    }

    /// The identity address of a bonded peer.
    static func peer(_ number: UInt64) -> DeviceAddress { DeviceAddress(0x0011_2233_0000 + number, isRandom: false) }

    /// Sets the bonded peers, the most recently used one first. The key of a peer is its number unless another is
    /// given.
    mutating func setPeers(_ numbers: [UInt64], keys: [UInt64: UInt128] = [:]) {
        plan.resolver.setKeys(numbers.map { .init(identity: Self.peer($0), value: keys[$0] ?? UInt128($0)) })
        context.peers = numbers.map(Self.peer)
    }

    /// Sets the addresses up in a controller that was reset.
    ///
    /// - Returns: the commands.
    @discardableResult
    mutating func bringUp() -> [GAPCommand] {
        plan.controllerWasReset(context, &random)
        let commands = settle()
        plan.startLifetime(at: now)
        return commands
    }

    mutating func next() -> PlannedCommand? { plan.nextCommand(context) }

    mutating func requireNext() throws -> PlannedCommand {
        let next = next()
        return try #require(next)
    }

    /// Requests a run, and has the controller perform its commands, or this number. The activities rest as the context
    /// says.
    ///
    /// - Returns: the commands.
    @discardableResult
    mutating func run(commands limit: Int = 100) -> [GAPCommand] {
        _ = plan.requestRun()
        return settle(commands: limit)
    }

    private mutating func settle(commands limit: Int = 100) -> [GAPCommand] {
        var commands: [GAPCommand] = []
        while commands.count < limit {
            if let next = next() {
                commands.append(next.command)
                plan.finished(next.step, context.information)
            } else if plan.awaitsRest, context.rest >= plan.hold {
                plan.rested()
            } else {
                break
            }
        }
        return commands
    }

    /// Has the controller refuse the next command.
    ///
    /// - Returns: the effects.
    mutating func refuse() -> [AddressEffect] {
        guard let next = next() ?? next() else { return [] }
        return plan.failed(next.step, GAPSample.refusal(of: next.command))
    }

    mutating func advance(by duration: Duration) -> Bool {
        now = now + duration
        return plan.advance(to: now, context.ownKey, &random)
    }

    mutating func discard(_ identities: [DeviceAddress]) -> Bool {
        plan.discard(entriesOf: identities, at: now, context.ownKey, &random)
    }

    // MARK: Commands

    static func random(_ address: DeviceAddress?) -> GAPCommand {
        GAPCommand(LESetRandomAddress(randomAddress: address ?? DeviceAddress(0, isRandom: true)))
    }

    static func timeout(_ seconds: UInt16) -> GAPCommand {
        GAPCommand(LESetResolvablePrivateAddressTimeout(rpaTimeout: seconds))
    }

    static func add(_ identity: DeviceAddress, _ peerKey: UInt128, _ localKey: UInt128 = 0) -> GAPCommand {
        GAPCommand(LEAddDeviceToResolvingList(peerIdentityAddress: identity, peerIRK: peerKey, localIRK: localKey))
    }

    static func mode(_ identity: DeviceAddress, _ mode: PrivacyMode = .device) -> GAPCommand {
        GAPCommand(LESetPrivacyMode(peerIdentityAddress: identity, privacyMode: mode))
    }

    static func remove(_ identity: DeviceAddress) -> GAPCommand {
        GAPCommand(LERemoveDeviceFromResolvingList(peerIdentityAddress: identity))
    }

    static func resolve(_ isOn: Bool = true) -> GAPCommand {
        GAPCommand(LESetAddressResolutionEnable(addressResolutionEnable: isOn))
    }
}
