import BLEHCI
import Testing

@testable import BluetoothHost

@Suite("The debug key pair of the specification")
struct DebugKeyPolicyTests {
    /// The debug public key, whose private key is public knowledge (Vol 3, Part H, 2.3.5.6.1).
    private static let x: [UInt8] = [
        0xE6, 0x9D, 0x35, 0x0E, 0x48, 0x01, 0x03, 0xCC, 0xDB, 0xFD, 0xF4, 0xAC, 0x11, 0x91, 0xF4, 0xEF,
        0xB9, 0xA5, 0xF9, 0xE9, 0xA7, 0x83, 0x2C, 0x5E, 0x2C, 0xBE, 0x97, 0xF2, 0xD2, 0x03, 0xB0, 0x20,
    ]
    private static let y: [UInt8] = [
        0x8B, 0xD2, 0x89, 0x15, 0xD0, 0x8E, 0x1C, 0x74, 0x24, 0x30, 0xED, 0x8F, 0xC2, 0x45, 0x63, 0x76,
        0x5C, 0x15, 0x52, 0x5A, 0xBF, 0x9A, 0x32, 0x63, 0x6D, 0xEB, 0x2A, 0x65, 0x49, 0x9C, 0x80, 0xDC,
    ]

    /// The answers to the debug public key in a pairing by just works that the peer has begun.
    private func answers(configure: (inout SecurityPolicy) -> Void = { _ in }) throws -> [[UInt8]] {
        let fixture = try SecurityFixture(bond: nil) {
            $0.security.justWorks = .always
            configure(&$0.security)
        }
        try fixture.connect(.peripheral)
        let response = fixture.exchangeSecurity([0x01, 0x03, 0x00, 0x09, 0x10, 0x07, 0x07])
        #expect(response.map(\.first) == [0x02])
        return fixture.exchangeSecurity([0x0C] + Self.x + Self.y)
    }

    @Test func peerThatUsesTheDebugKeyPairIsRefusedByDefault() throws {
        // Pairing Failed: Invalid Parameters.
        #expect(try answers() == [[0x05, 0x0A]])
    }

    @Test func peerMayUseTheDebugKeyPairIfThePolicyAllowsIt() throws {
        let answers = try answers { $0.allowsDebugKeys = true }
        // Pairing Public Key, Pairing Confirm.
        #expect(answers.map(\.first) == [0x0C, 0x03])
    }
}
