import BLESMP
import Testing

@testable import BluetoothHost

@Suite("A Security Request of an unbonded peripheral")
struct UnattendedPairingTests {
    private static let securityRequest: [UInt8] = [0x0B, 0x01]
    private static let pairingNotSupported: [UInt8] = [0x05, 0x05]

    private func answers(_ configure: (inout SecurityPolicy) -> Void, hasDelegate: Bool) throws -> [[UInt8]] {
        let encounter = try Encounter(.central, meets: false) { configure(&$0.security) }
        if hasDelegate {
            try encounter.run {
                $0.setPairingHandler { _, answer in
                    answer(.accept)
                    return {}
                }
            }
        }
        encounter.meet()
        encounter.settle()
        encounter.send(Self.securityRequest)
        encounter.settle()
        return encounter.heard
    }

    @Test(
        arguments: [SecurityPolicy.JustWorks.never, .whenStartedHere]
    )
    func securityRequestIsRefusedAtOnceIfNobodyCanConsent(justWorks: SecurityPolicy.JustWorks) throws {
        #expect(try answers({ $0.justWorks = justWorks }, hasDelegate: false) == [Self.pairingNotSupported])
    }

    @Test func securityRequestIsRefusedAtOnceIfOnlyJustWorksIsPossible() throws {
        #expect(try answers({ $0.justWorks = .never }, hasDelegate: true) == [Self.pairingNotSupported])
    }

    @Test func securityRequestBeginsAPairingThatMaySucceed() throws {
        let pairingRequest: UInt8 = 0x01
        #expect(try answers({ $0.justWorks = .always }, hasDelegate: false).first?.first == pairingRequest)
        #expect(try answers({ $0.justWorks = .whenStartedHere }, hasDelegate: true).first?.first == pairingRequest)
        let withDisplay = try answers(
            {
                $0.justWorks = .never
                $0.ioCapability = .displayYesNo
            },
            hasDelegate: true
        )
        #expect(withDisplay.first?.first == pairingRequest)
    }

    /// Vol 3, Part H, 2.4.6: the peripheral itself decides whether the key is sufficient for it.
    @Test func justWorksIsAcceptedAlthoughAPeripheralWithoutInputAndOutputRequestsAuthentication() throws {
        let encounter = try Encounter(.central, meets: false) {
            $0.security.justWorks = .always
            $0.security.ioCapability = .displayYesNo
        }
        encounter.meet()
        encounter.settle()
        encounter.send([0x0B, 0x0D])
        encounter.settle()
        #expect(encounter.outcome?.model == .justWorks)
        // The peer repeats its request on the encrypted link.
        let count = encounter.heard.count
        encounter.send([0x0B, 0x0D])
        encounter.settle()
        #expect(encounter.heard.count == count, "no other pairing begins")
    }
}
