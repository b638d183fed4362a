import BLEByteCoding
import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// Network privacy for peers that the controller does not resolve (Vol 6, Part B, 4.7).
@Suite("Network privacy")
struct NetworkPrivacyTests {
    private static let key: UInt128 = 0xEC02_34A3_57C8_AD05_3410_10A6_0A39_7D9B

    private func fixture(_ mode: PrivacyMode) throws -> SecurityFixture {
        var bond = SecurityFixture.bond()
        bond.identityResolvingKey = Self.key
        return try SecurityFixture(bond: bond) { $0.privacyMode = mode }
    }

    private var privateAddress: DeviceAddress {
        var random = SeededGenerator(seed: 1)
        return Toolbox(SwiftCryptography()).resolvablePrivateAddress(irk: Self.key, random: &random)
    }

    @Test(
        "A bonded peer with a private address key is not reported under its identity address",
        arguments: [PrivacyMode.network, .device]
    )
    func bondedPeerIsNotReportedUnderItsIdentityAddress(mode: PrivacyMode) throws {
        let fixture = try fixture(mode)
        let found = Recorder<DeviceAddress?>()
        try fixture.run { host in
            _ = host.startScan(ScanOptions(reportsDuplicates: true)) { event in
                if case .advertisement(let advertisement) = event { found.append(advertisement.privateAddress) }
            }
        }
        fixture.advance(.milliseconds(5))
        let stranger = DeviceAddress(0xC0FF_EE00_0009, isRandom: true)
        for address in [SecurityFixture.peer, privateAddress, stranger] {
            fixture.emit {
                LEAdvertisingReport.Report(
                    eventType: .connectableScannableUndirected,
                    address: PeerAddress(address),
                    data: [0x02, 0x01, 0x06].rawSpan,
                    rssi: -50
                ).encodePacket(into: &$0)
            }
        }
        #expect(found.all == (mode == .network ? [] : [nil]) + [privateAddress, nil])
    }

    @Test("A peer that connects under its identity address is disconnected", arguments: [PrivacyMode.network, .device])
    func peerThatConnectsUnderItsIdentityAddressIsDisconnected(mode: PrivacyMode) throws {
        let fixture = try fixture(mode)
        try fixture.connect(.peripheral)
        #expect(fixture.count(Disconnect.self) == (mode == .network ? 1 : 0))
        let other = try self.fixture(mode)
        try other.connect(.peripheral, peer: privateAddress)
        #expect(other.count(Disconnect.self) == 0)
    }
}
