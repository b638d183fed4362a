import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Two security engines that face each other")
struct SecurityPairTests {
    private typealias Side = SecuritySide

    /// What a side reports of a pairing that leads to a bond.
    private func pairing(_ side: Side) -> [SecurityEffect] {
        [
            .report(.pairingStarted(Side.link, peer: side.peer)), side.encryptionReport(isOn: true),
            .setAuthenticatedPayloadTimeout, .attemptSucceeded(side.peer), side.paired(), .identityVerified,
        ]
    }

    @Test("Devices pair for the central's app, and both verify the other")
    func devicesPairForTheCentralAndVerifyEachOther() {
        var pair = SecurityPair(Side(.central), Side(.peripheral))
        pair.perform(.central) { $0.require() }
        #expect(pair.log[.central] == pairing(pair.central) + [Side.success()])
        #expect(pair.log[.peripheral] == pairing(pair.peripheral))
        for side in [pair.central, pair.peripheral] {
            #expect(side.state == .settled(Side.encrypted(.bond)))
            #expect(side.engine.deadline == nil)
            #expect(side.engine.published.gate == .open)
        }
        #expect(pair.central.context.bond?.centralKey == pair.peripheral.context.bond?.peripheralKey)
    }

    @Test("Devices pair for the peripheral's app")
    func devicesPairForThePeripheral() {
        var pair = SecurityPair(Side(.central), Side(.peripheral))
        pair.perform(.peripheral) { $0.require() }
        #expect(pair.log[.central] == pairing(pair.central) + [Side.success(.peer)])
        #expect(pair.log[.peripheral] == pairing(pair.peripheral) + [Side.success()])
    }

    @Test(
        "Bonded devices encrypt a new link by the key of their bond",
        arguments: [
            SecurityChannel<SwiftCryptography>.Role.central, .peripheral,
        ]
    )
    func bondedDevicesEncryptANewLinkByTheirBond(asking: SecurityChannel<SwiftCryptography>.Role) {
        var pair = SecurityPair(
            Side(.central, bond: Side.bond(.central)),
            Side(.peripheral, bond: Side.bond(.peripheral))
        )
        pair.perform(asking) { $0.require() }
        let verified: (Side) -> [SecurityEffect] = {
            [$0.encryptionReport(isOn: true), .setAuthenticatedPayloadTimeout, .identityVerified]
        }
        let isCentral = asking == .central
        #expect(pair.log[.central] == verified(pair.central) + [Side.success(isCentral ? Side.call : .peer)])
        #expect(pair.log[.peripheral] == verified(pair.peripheral) + (isCentral ? [] : [Side.success()]))
    }

    @Test("A central that has a bond alone finds out that the key is missing")
    func centralThatHasABondAloneFindsTheKeyMissing() {
        var pair = SecurityPair(Side(.central, bond: Side.bond(.central)), Side(.peripheral))
        pair.perform(.central) { side in side.engine.linkBegan(&side.context) }
        #expect(
            pair.log[.central] == [
                .report(.keyMissing(Side.link, identity: pair.central.peer)),
                Side.failure(.keyMissing, .verification),
            ]
        )
        #expect(pair.log[.peripheral] == [])
        #expect(pair.central.engine.published.gate == .failed(.security(.keyMissing)))
    }

    @Test("Devices that do not bond have the keys as long as the link")
    func devicesThatDoNotBondHaveKeysForTheLinkOnly() {
        var pair = SecurityPair(Side(.central), Side(.peripheral) { $0.bonds = false })
        pair.perform(.central) { $0.require() }
        #expect(pair.log[.central]?.suffix(2) == [pair.central.paired(isBonded: false), Side.success()])
        #expect(pair.central.state == .settled(Side.encrypted(.transient)))
        #expect(pair.peripheral.engine.transientKeys != nil)
    }

    @Test("An answer of the wrong kind ends the pairing at once, and the next one can begin")
    func answerOfTheWrongKindEndsThePairing() {
        var pair = SecurityPair(
            Side(.central) { $0.ioCapability = .keyboardOnly },
            Side(.peripheral) { $0.ioCapability = .displayOnly }
        )
        for number in 1...2 {
            pair.log = [:]
            pair.perform(.central) { $0.require() }
            let failure = pair.central.pairingFailed(.refused("the answer does not fit the question"))
            #expect(pair.log[.central]?.contains(failure) == true, "attempt \(number): \(pair.log)")
            #expect(pair.central.engine.deadline == nil)
        }
    }

    @Test("A pairing that one app refuses fails on both sides")
    func pairingThatOneAppRefusesFailsOnBothSides() {
        var pair = SecurityPair(Side(.central), Side(.peripheral))
        pair.answers[.peripheral] = .refuse
        pair.perform(.central) { $0.require() }
        #expect(
            pair.log[.peripheral] == [
                .report(.pairingStarted(Side.link, peer: pair.peripheral.peer)),
                .attemptFailed(pair.peripheral.peer, countsForAll: false),
                pair.peripheral.pairingFailed(.refused("it was not consented to")),
            ]
        )
        guard case .finish(Side.call, .failure(.security(.pairing(.endedByPeer)))) = pair.log[.central]?.last else {
            Issue.record("\(pair.log)")
            return
        }
    }

    @Test("Devices pair again on an encrypted link, and the new key replaces the bond's")
    func newKeyReplacesThatOfTheBondOnAnEncryptedLink() {
        var pair = SecurityPair(
            Side(.central, bond: Side.bond(.central)),
            Side(.peripheral, bond: Side.bond(.peripheral))
        )
        pair.perform(.central) { $0.require() }
        pair.log = [:]
        pair.perform(.central) { $0.require(pairsAgain: true) }
        #expect(pair.log[.central]?.last == Side.success())
        #expect(pair.central.context.bond?.centralKey != Side.key)
        #expect(pair.central.context.bond == pair.bonds[.central]?[pair.central.peer]?.bond)
        #expect(pair.peripheral.state == .settled(Side.encrypted(.bond)))
    }

    @Test("An encrypted link to a verified peer stays open while the devices pair again")
    func verifiedLinkStaysOpenDuringAnotherPairing() {
        var pair = SecurityPair(
            Side(.central, bond: Side.bond(.central)),
            Side(.peripheral, bond: Side.bond(.peripheral))
        )
        pair.perform(.central) { $0.require() }
        pair.perform(.central) { $0.require(pairsAgain: true) }
        for role in [SecurityChannel<SwiftCryptography>.Role.central, .peripheral] {
            #expect(pair.gates[role] == [.verifying, .open] && pair.gatesAtDecision[role] == .open)
        }
    }

    @Test("The gate of a bonded peer that has no key opens when the new bond is stored, not before")
    func gateOpensOnceTheNewBondIsStoredAndNotBefore() {
        var pair = SecurityPair(Side(.central, bond: Side.bond(.central)), Side(.peripheral))
        pair.perform(.central) { $0.require() }
        pair.gates = [:]
        pair.perform(.central) { $0.require(pairsAgain: true) }
        #expect(pair.gatesAtDecision[.central] == .verifying, "the pairing's key encrypts the link by now")
        #expect(pair.gates[.central] == [.verifying, .open])
    }
}
