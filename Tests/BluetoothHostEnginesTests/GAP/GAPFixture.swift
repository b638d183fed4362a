import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// What the tests of the plans of GAP share.
enum GAPSample {
    static let start = Instant(nanoseconds: 1_000_000_000)
    static let identity = DeviceAddress(0x0011_2233_4455, isRandom: false)

    /// A random static address.
    static func address(_ number: UInt64) -> DeviceAddress { DeviceAddress(0xC000_0000_0000 + number, isRandom: true) }

    static func information(
        isExtended: Bool = true,
        sets: Int = 2,
        listSize: Int = 0,
        hasPrivacyModes: Bool = true,
        identity: DeviceAddress = identity
    ) -> ControllerInformation {
        var commands = SupportedCommands()
        for opcode in [
            LEAddDeviceToResolvingList.opcode, LERemoveDeviceFromResolvingList.opcode,
            LESetAddressResolutionEnable.opcode,
        ] {
            commands.insert(opcode)
        }
        if hasPrivacyModes { commands.insert(LESetPrivacyMode.opcode) }
        var information = ControllerInformation(
            publicAddress: identity.isRandom ? nil : identity,
            identityAddress: identity,
            manufacturer: CompanyIdentifier(rawValue: 1),
            commands: commands
        )
        information.features = listSize > 0 ? [.llPrivacy] : []
        information.resolvingListSize = listSize
        information.usesExtendedCommands = isExtended
        information.numberOfAdvertisingSets = isExtended ? sets : 1
        information.maximumAdvertisingDataLength = isExtended ? 1650 : 31
        return information
    }

    static func refusal(
        of command: GAPCommand,
        _ code: HCIErrorCode = .unsupportedFeatureOrParameterValue
    ) -> CommandFailure {
        .status(code, command.opcode)
    }
}

extension GAPCommand {
    /// The command, if it is one of this type.
    func decode<C: Command>(_ type: C.Type) -> C? {
        guard opcode == C.opcode else { return nil }
        let parameters = Array(packet.dropFirst(4))
        return try? C(decoding: parameters.rawSpan)
    }

    /// The bytes after the H4 indicator.
    var hexadecimal: String {
        packet.dropFirst().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// A plan for advertising, and what its inputs need.
struct AdvertisingPlanFixture {
    var plan = AdvertisingPlan(refreshInterval: .seconds(90))
    var context: AdvertisingPlan.Context
    var resolver = AddressResolver()
    var random = SeededGenerator(seed: 1)
    var now = GAPSample.start
    var hasLinks = false
    /// The effects of the replies.
    var effects: [AdvertisingEffect] = []
    private var count: UInt32 = 0

    init(isExtended: Bool = true, sets: Int = 2) {
        context = AdvertisingPlan.Context(
            information: GAPSample.information(isExtended: isExtended, sets: sets),
            addresses: OwnAddresses()
        )
    }

    static func call(_ number: UInt32) -> CallToken { CallToken(index: number, generation: 0) }

    /// Starts an advertisement. Its call has the number of the advertisement, the first of which is 1.
    @discardableResult
    mutating func start(
        _ configuration: AdvertisementConfiguration = .init()
    ) throws(HostError) -> AdvertisementIdentifier {
        let identifier = AdvertisementIdentifier(value: UInt64(count + 1))
        try plan.start(identifier, configuration, context.information, for: Self.call(count + 1))
        count += 1
        return identifier
    }

    mutating func next() -> PlannedCommand? {
        _ = plan.requestRun()
        return plan.nextCommand(context, &resolver, &random)
    }

    mutating func requireNext() throws -> PlannedCommand {
        let next = next()
        return try #require(next)
    }

    /// Has the controller perform commands until the plan has none, or this number.
    ///
    /// - Returns: the commands.
    @discardableResult
    mutating func settle(commands limit: Int = 100) -> [GAPCommand] {
        var commands: [GAPCommand] = []
        while commands.count < limit, let next = next() {
            commands.append(next.command)
            effects += plan.finished(next.step, at: now)
        }
        return commands
    }

    /// Has the controller refuse the next command.
    ///
    /// - Returns: the effects.
    mutating func refuse(_ code: HCIErrorCode = .unsupportedFeatureOrParameterValue) -> [AdvertisingEffect] {
        guard let next = next() else { return [] }
        let failure = GAPSample.refusal(of: next.command, code)
        return plan.failed(next.step, failure, at: now, hasLinks: hasLinks)
    }

    mutating func advance(by duration: Duration) -> [AdvertisingEffect] {
        now = now + duration
        return plan.advance(to: now)
    }

    mutating func takeEffects() -> [AdvertisingEffect] {
        defer { effects = [] }
        return effects
    }

    // MARK: Commands

    static func parameters(
        _ handle: UInt8,
        _ properties: AdvertisingEventProperties = [.connectable, .scannable, .useLegacyPDUs],
        ownType: OwnAddressType = .public,
        peer: DeviceAddress = DeviceAddress(0, isRandom: false)
    ) -> GAPCommand {
        GAPCommand(
            LESetExtendedAdvertisingParameters(
                advertisingHandle: handle,
                advertisingEventProperties: properties,
                primaryAdvertisingIntervalMin: 160,
                primaryAdvertisingIntervalMax: 160,
                ownAddressType: ownType,
                peerAddress: peer,
                advertisingSID: handle
            )
        )
    }

    static func data(
        _ handle: UInt8,
        _ data: [UInt8] = [],
        _ operation: AdvertisingDataOperation = .complete
    ) -> GAPCommand {
        GAPCommand(
            LESetExtendedAdvertisingData(
                advertisingHandle: handle,
                operation: operation,
                advertisingData: AdvertisingDataFragment(data)
            )
        )
    }

    static func response(_ handle: UInt8, _ data: [UInt8] = []) -> GAPCommand {
        GAPCommand(
            LESetExtendedScanResponseData(
                advertisingHandle: handle,
                operation: .complete,
                scanResponseData: AdvertisingDataFragment(data)
            )
        )
    }

    static func address(_ handle: UInt8, _ address: DeviceAddress) -> GAPCommand {
        GAPCommand(LESetAdvertisingSetRandomAddress(advertisingHandle: handle, randomAddress: address))
    }

    static func enable(_ handle: UInt8, _ isOn: Bool = true) -> GAPCommand {
        GAPCommand(LESetExtendedAdvertisingEnable(enable: isOn, sets: [.init(advertisingHandle: handle)]))
    }

    static func disable(_ handle: UInt8) -> GAPCommand { enable(handle, false) }

    static func remove(_ handle: UInt8) -> GAPCommand {
        GAPCommand(LERemoveAdvertisingSet(advertisingHandle: handle))
    }

    /// All commands that start an advertisement without data.
    static func starting(_ handle: UInt8) -> [GAPCommand] {
        [parameters(handle), data(handle), response(handle), enable(handle)]
    }

    static func legacyEnable(_ isOn: Bool = true) -> GAPCommand {
        GAPCommand(LESetAdvertisingEnable(advertisingEnable: isOn))
    }

    static let legacyStart = [
        GAPCommand(
            LESetAdvertisingParameters(
                advertisingIntervalMin: 160,
                advertisingIntervalMax: 160,
                advertisingType: .connectableScannableUndirected,
                ownAddressType: .public,
                peerAddress: DeviceAddress(0, isRandom: false)
            )
        ), GAPCommand(LESetAdvertisingData(advertisingData: LegacyAdvertisingData())),
        GAPCommand(LESetScanResponseData(scanResponseData: LegacyAdvertisingData())), legacyEnable(),
    ]
}
