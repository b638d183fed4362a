import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

/// A sequence of commands. All except the last one succeed.
struct Misuse: CustomTestStringConvertible {
    let testDescription: String
    let commands: [any Command]
    let error: HCIErrorCode

    init(_ description: String, _ commands: [any Command], _ error: HCIErrorCode) {
        testDescription = description
        self.commands = commands
        self.error = error
    }

    func check(in world: World) {
        for command in commands.dropLast() {
            let status = world.status(of: command, to: 0)
            #expect(status == .success, "\(command)")
        }
        guard let last = commands.last else { return }
        let status = world.status(of: last, to: 0)
        #expect(status == error)
    }
}

typealias ExtendedParameters = LESetExtendedAdvertisingParameters
typealias ExtendedEnable = LESetExtendedAdvertisingEnable

private let other = DeviceAddress(0x2000_0000_0000, isRandom: false)
private let randomAddress = DeviceAddress(0xC000_0000_0001, isRandom: true)
private let set0 = ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 0)])
private let legacyADV: AdvertisingEventProperties = [.connectable, .scannable, .useLegacyPDUs]
private let periodicSet = ExtendedParameters(advertisingHandle: 0)
private let periodic = LESetPeriodicAdvertisingParameters(
    advertisingHandle: 0,
    periodicAdvertisingIntervalMin: 80,
    periodicAdvertisingIntervalMax: 80
)

private func parameters(
    _ properties: AdvertisingEventProperties = [],
    _ change: (inout ExtendedParameters) -> Void = { _ in }
) -> ExtendedParameters {
    var parameters = ExtendedParameters(advertisingHandle: 0, advertisingEventProperties: properties)
    change(&parameters)
    return parameters
}

private func data(_ count: Int, _ operation: AdvertisingDataOperation = .complete) -> LESetExtendedAdvertisingData {
    LESetExtendedAdvertisingData(
        advertisingHandle: 0,
        operation: operation,
        advertisingData: AdvertisingDataFragment([UInt8](repeating: 0xAA, count: count))
    )
}

private func response(_ count: Int, _ operation: AdvertisingDataOperation = .complete) -> LESetExtendedScanResponseData
{
    LESetExtendedScanResponseData(
        advertisingHandle: 0,
        operation: operation,
        scanResponseData: AdvertisingDataFragment([UInt8](repeating: 0xBB, count: count))
    )
}

private func train(_ count: Int, _ operation: AdvertisingDataOperation = .complete) -> LESetPeriodicAdvertisingData {
    LESetPeriodicAdvertisingData(
        advertisingHandle: 0,
        operation: operation,
        advertisingData: PeriodicAdvertisingDataFragment([UInt8](repeating: 0xCC, count: count))
    )
}

@Suite("Advertising commands in invalid states are refused as specified")
struct AdvertisingMisuseTests {
    static let legacy: [Misuse] = [
        Misuse(
            "extended after legacy",
            [LESetAdvertisingParameters(), LESetExtendedScanEnable(enable: true)],
            .commandDisallowed
        ),
        Misuse(
            "legacy after extended",
            [LESetExtendedScanParameters(), LESetAdvertisingEnable(advertisingEnable: true)],
            .commandDisallowed
        ),
        Misuse(
            "legacy scan after extended advertising",
            [parameters(), LESetScanEnable(leScanEnable: true)],
            .commandDisallowed
        ),
        Misuse(
            "legacy after extended, and a reset",
            [LESetExtendedScanParameters(), Reset(), LESetAdvertisingEnable(advertisingEnable: true)],
            .success
        ),
        Misuse(
            "parameters while advertising",
            [LESetAdvertisingEnable(advertisingEnable: true), LESetAdvertisingParameters()],
            .commandDisallowed
        ),
        Misuse(
            "interval too short",
            [LESetAdvertisingParameters(advertisingIntervalMin: 0x1F)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "interval too long",
            [LESetAdvertisingParameters(advertisingIntervalMax: 0x4001)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "interval upside down",
            [LESetAdvertisingParameters(advertisingIntervalMin: 0x801)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "high duty cycle needs no interval",
            [
                LESetAdvertisingParameters(
                    advertisingIntervalMin: 0,
                    advertisingIntervalMax: 0,
                    advertisingType: .connectableHighDutyCycleDirected
                )
            ],
            .success
        ),
        Misuse(
            "no channel",
            [LESetAdvertisingParameters(advertisingChannelMap: [])],
            .invalidHCICommandParameters
        ),
        Misuse(
            "random address that is not there",
            [
                LESetAdvertisingParameters(ownAddressType: .random),
                LESetAdvertisingEnable(advertisingEnable: true),
            ],
            .invalidHCICommandParameters
        ),
        Misuse(
            "private or random address, neither there",
            [
                LESetAdvertisingParameters(ownAddressType: .resolvableOrRandom),
                LESetAdvertisingEnable(advertisingEnable: true),
            ],
            .invalidHCICommandParameters
        ),
        Misuse(
            "random address while advertising",
            [LESetAdvertisingEnable(advertisingEnable: true), LESetRandomAddress(randomAddress: randomAddress)],
            .commandDisallowed
        ),
        Misuse(
            "random address while scanning",
            [LESetScanEnable(leScanEnable: true), LESetRandomAddress(randomAddress: randomAddress)],
            .commandDisallowed
        ),
        Misuse("stopping what is stopped", [LESetAdvertisingEnable(advertisingEnable: false)], .success),
    ]

    static let extended: [Misuse] = [
        Misuse("handle too large", [parameters { $0.advertisingHandle = 0xF0 }], .invalidHCICommandParameters),
        Misuse("connectable and scannable", [parameters([.connectable, .scannable])], .invalidHCICommandParameters),
        Misuse(
            "high duty cycle with extended PDUs",
            [parameters([.connectable, .directed, .highDutyCycleDirectedConnectable])],
            .invalidHCICommandParameters
        ),
        Misuse("no such legacy PDU", [parameters([.connectable, .useLegacyPDUs])], .invalidHCICommandParameters),
        Misuse(
            "connectable and anonymous",
            [parameters([.connectable, .omitAdvertiserAddress])],
            .invalidHCICommandParameters
        ),
        Misuse(
            "interval too short",
            [parameters { $0.primaryAdvertisingIntervalMin = 0x1F }],
            .invalidHCICommandParameters
        ),
        Misuse(
            "interval upside down",
            [parameters { $0.primaryAdvertisingIntervalMin = 0x801 }],
            .invalidHCICommandParameters
        ),
        Misuse("2M as primary PHY", [parameters { $0.primaryAdvertisingPHY = .le2M }], .invalidHCICommandParameters),
        Misuse(
            "coded PHY for legacy PDUs",
            [parameters(legacyADV) { $0.primaryAdvertisingPHY = .leCoded }],
            .invalidHCICommandParameters
        ),
        Misuse("no secondary PHY", [parameters { $0.secondaryAdvertisingPHY = .none }], .invalidHCICommandParameters),
        Misuse("SID too large", [parameters { $0.advertisingSID = 0x10 }], .invalidHCICommandParameters),
        Misuse("power too large", [parameters { $0.advertisingTXPower = 21 }], .invalidHCICommandParameters),
        Misuse("parameters while advertising", [parameters(), set0, parameters()], .commandDisallowed),
        Misuse(
            "data that legacy PDUs have no room for",
            [parameters(), data(32), parameters(legacyADV)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "data that fill a slow chain",
            [
                parameters(),
                data(251, .firstFragment),
                data(251, .lastFragment),
                parameters {
                    $0.secondaryAdvertisingPHY = .leCoded
                    $0.primaryAdvertisingIntervalMin = 0x20
                },
            ],
            .packetTooLong
        ),
        Misuse(
            "address of no set",
            [LESetAdvertisingSetRandomAddress(advertisingHandle: 0, randomAddress: randomAddress)],
            .unknownAdvertisingIdentifier
        ),
        Misuse(
            "address of a connectable set that is advertised",
            [
                parameters(.connectable), set0,
                LESetAdvertisingSetRandomAddress(advertisingHandle: 0, randomAddress: randomAddress),
            ],
            .commandDisallowed
        ),
        Misuse(
            "address of another set that is advertised",
            [parameters(), set0, LESetAdvertisingSetRandomAddress(advertisingHandle: 0, randomAddress: randomAddress)],
            .success
        ),
        Misuse("data of no set", [data(1)], .unknownAdvertisingIdentifier),
        Misuse("data for a scannable set", [parameters(.scannable), data(1)], .invalidHCICommandParameters),
        Misuse(
            "data in fragments for legacy PDUs",
            [parameters(legacyADV), data(1, .firstFragment)],
            .invalidHCICommandParameters
        ),
        Misuse("32 bytes for legacy PDUs", [parameters(legacyADV), data(32)], .invalidHCICommandParameters),
        Misuse("an empty fragment", [parameters(), data(0, .firstFragment)], .invalidHCICommandParameters),
        Misuse("a last fragment without a first", [parameters(), data(1, .lastFragment)], .commandDisallowed),
        Misuse("a fragment while advertising", [parameters(), set0, data(1, .firstFragment)], .commandDisallowed),
        Misuse("all data while advertising", [parameters(), set0, data(251)], .success),
        Misuse(
            "unchanged data while stopped",
            [parameters(), data(1), data(0, .unchanged)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "unchanged data, with data",
            [parameters(), data(1), set0, data(1, .unchanged)],
            .invalidHCICommandParameters
        ),
        Misuse("unchanged data, without any", [parameters(), set0, data(0, .unchanged)], .invalidHCICommandParameters),
        Misuse("unchanged data", [parameters(), data(1), set0, data(0, .unchanged)], .success),
        Misuse(
            "more than 1,650 bytes",
            [parameters(), data(251, .firstFragment)]
                + Array(repeating: data(251, .intermediateFragment), count: 5) + [data(145, .lastFragment)],
            .memoryCapacityExceeded
        ),
        Misuse(
            "enabling with half the data",
            [parameters(), data(251, .firstFragment), set0],
            .commandDisallowed
        ),
        Misuse("scan response of what is not scannable", [parameters(), response(1)], .invalidHCICommandParameters),
        Misuse("taking that scan response away", [parameters(), response(0)], .success),
        Misuse(
            "scan response unchanged",
            [parameters(.scannable), response(0, .unchanged)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "taking the scan response away while advertising",
            [parameters(.scannable), response(1), set0, response(0)],
            .commandDisallowed
        ),
        Misuse("enabling a scannable set without response", [parameters(.scannable), set0], .commandDisallowed),
        Misuse("enabling no set", [ExtendedEnable(enable: true)], .invalidHCICommandParameters),
        Misuse("disabling all of none", [ExtendedEnable(enable: false)], .success),
        Misuse("enabling an unknown set", [set0], .unknownAdvertisingIdentifier),
        Misuse(
            "enabling a set twice in one command",
            [
                parameters(),
                ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 0), .init(advertisingHandle: 0)]),
            ],
            .invalidHCICommandParameters
        ),
        Misuse(
            "enabling without the random address",
            [parameters { $0.ownAddressType = .random }, set0],
            .invalidHCICommandParameters
        ),
        Misuse(
            "high duty cycle without an end",
            [parameters([.connectable, .directed, .highDutyCycleDirectedConnectable, .useLegacyPDUs]), set0],
            .invalidHCICommandParameters
        ),
        Misuse(
            "removing an unknown set",
            [LERemoveAdvertisingSet(advertisingHandle: 0)],
            .unknownAdvertisingIdentifier
        ),
        Misuse(
            "removing an advertised set",
            [parameters(), set0, LERemoveAdvertisingSet(advertisingHandle: 0)],
            .commandDisallowed
        ),
        Misuse("clearing with an advertised set", [parameters(), set0, LEClearAdvertisingSets()], .commandDisallowed),
        Misuse("clearing", [parameters(), LEClearAdvertisingSets(), set0], .unknownAdvertisingIdentifier),
        Misuse(
            "a seventeenth set",
            (0..<17).map { handle in parameters { $0.advertisingHandle = UInt8(handle) } },
            .memoryCapacityExceeded
        ),
    ]

    static let periodicAdvertising: [Misuse] = [
        Misuse("train of no set", [periodic], .unknownAdvertisingIdentifier),
        Misuse("train of a connectable set", [parameters(.connectable), periodic], .invalidHCICommandParameters),
        Misuse(
            "train of an anonymous set",
            [parameters(.omitAdvertiserAddress), periodic],
            .invalidHCICommandParameters
        ),
        Misuse("data of no train", [periodicSet, train(1)], .commandDisallowed),
        Misuse(
            "enabling no train",
            [periodicSet, LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 0)],
            .commandDisallowed
        ),
        Misuse(
            "enabling with half the data",
            [
                periodicSet, periodic, train(1, .firstFragment),
                LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 0),
            ],
            .commandDisallowed
        ),
        Misuse(
            "parameters while enabled",
            [periodicSet, periodic, LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 0), periodic],
            .commandDisallowed
        ),
        Misuse(
            "removing a set whose train is enabled",
            [
                periodicSet, periodic, LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 0),
                LERemoveAdvertisingSet(advertisingHandle: 0),
            ],
            .commandDisallowed
        ),
        Misuse(
            "making a set with a train connectable",
            [
                periodicSet, periodic, LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 0),
                parameters(.connectable),
            ],
            .invalidHCICommandParameters
        ),
        Misuse(
            "SID too large",
            [LEPeriodicAdvertisingCreateSync(advertisingSID: 16, advertiserAddress: other, syncTimeout: 100)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "timeout too short",
            [LEPeriodicAdvertisingCreateSync(advertisingSID: 0, advertiserAddress: other, syncTimeout: 9)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "a second synchronization",
            [
                LEPeriodicAdvertisingCreateSync(advertisingSID: 0, advertiserAddress: other, syncTimeout: 100),
                LEPeriodicAdvertisingCreateSync(advertisingSID: 1, advertiserAddress: other, syncTimeout: 100),
            ],
            .commandDisallowed
        ),
        Misuse("cancelling none", [LEPeriodicAdvertisingCreateSyncCancel()], .commandDisallowed),
        Misuse("ending none", [LEPeriodicAdvertisingTerminateSync(syncHandle: 0)], .unknownAdvertisingIdentifier),
    ]

    @Test(arguments: legacy)
    func legacyAdvertisingCommandInAnInvalidStateIsRefused(_ misuse: Misuse) { misuse.check(in: World(count: 1)) }

    @Test(arguments: extended)
    func extendedAdvertisingCommandInAnInvalidStateIsRefused(_ misuse: Misuse) { misuse.check(in: World(count: 1)) }

    @Test(arguments: periodicAdvertising)
    func periodicAdvertisingCommandInAnInvalidStateIsRefused(_ misuse: Misuse) { misuse.check(in: World(count: 1)) }

    @Test(
        "A Bluetooth 4.2 controller has no extended advertising, and only LE 1M without the PHY features"
    )
    func controllerWithoutTheFeatureRefusesExtendedAdvertising() {
        let old = World(count: 1) { $0.features = .bluetooth42 }
        #expect(old.status(of: parameters(), to: 0) == .unknownHCICommand)
        let uncoded = World(count: 1) { $0.features.remove(.leCodedPHY) }
        let refused = uncoded.status(of: parameters { $0.primaryAdvertisingPHY = .leCoded }, to: 0)
        #expect(refused == .unsupportedFeatureOrParameterValue)
    }
}
