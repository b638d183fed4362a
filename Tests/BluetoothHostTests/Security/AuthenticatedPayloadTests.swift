import BLE
import BLEHCI
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Authenticated Payload Timeout (Vol 6, Part B, 5.4).
@Suite("Authenticated Payload Timeout")
struct AuthenticatedPayloadTests {
    private func fixture(_ timeout: Duration?, isSupported: Bool = true) throws -> SecurityFixture {
        let fixture = try SecurityFixture(watchesAuthenticatedPayload: isSupported) {
            $0.security.authenticatedPayloadTimeout = timeout
        }
        try fixture.connect(.central)
        fixture.encryptionChanged()
        return fixture
    }

    @Test("The controller watches the link, and its timeout event ends the link")
    func expiredTimeoutEndsTheLink() throws {
        let fixture = try fixture(.seconds(10))
        let commands = fixture.controller.commands
        let mask = commands.compactMap { $0.decode(SetEventMaskPage2.self) }
        #expect(mask.map(\.eventMaskPage2) == [.authenticatedPayloadTimeoutExpired])
        let timeouts = commands.compactMap { $0.decode(WriteAuthenticatedPayloadTimeout.self) }
        #expect(timeouts.map(\.authenticatedPayloadTimeout) == [1000])
        let events = Recorder<SecurityEvent>()
        _ = try fixture.run { $0.observeSecurity { events.append($0) } }
        let link = try #require(try fixture.run { $0.linkIdentifiers().first })
        fixture.emit {
            AuthenticatedPayloadTimeoutExpired(connectionHandle: fixture.handle).encodePacket(into: &$0)
        }
        #expect(events.all == [.authenticatedPayloadTimedOut(link, peer: SecurityFixture.peer)])
        let disconnect = fixture.controller.commands.compactMap { $0.decode(Disconnect.self) }
        #expect(disconnect.map(\.reason) == [.authenticationFailure])
    }

    @Test("Not used if the policy sets no time or the controller does not support it", arguments: [true, false])
    func linkIsNotWatchedWithoutATimeOrSupport(isSupported: Bool) throws {
        let fixture = try fixture(isSupported ? nil : .seconds(10), isSupported: isSupported)
        #expect(fixture.count(WriteAuthenticatedPayloadTimeout.self) == 0 && fixture.count(SetEventMaskPage2.self) == 0)
        fixture.emit {
            AuthenticatedPayloadTimeoutExpired(connectionHandle: fixture.handle).encodePacket(into: &$0)
        }
        #expect(fixture.count(Disconnect.self) == (isSupported ? 0 : 1))
    }

    @Test("The link stays while the peer answers pings, and ends when it does not", arguments: [true, false])
    func pingsKeepTheLink(isCentral: Bool) throws {
        try LockAndPhone.run { world in
            func configure(_ configuration: inout Adapter.Configuration, _ watches: Bool) {
                configuration.security.justWorks = .always
                if watches { configuration.security.authenticatedPayloadTimeout = .seconds(2) }
            }
            let devices = try await LockAndPhone(
                in: world,
                lock: { configure(&$0, !isCentral) },
                phone: { configure(&$0, isCentral) }
            )
            let (events, other) =
                isCentral ? (devices.phoneEvents, devices.lockEvents) : (devices.lockEvents, devices.phoneEvents)
            let peer = try await devices.connect()
            try await peer.pair()
            try await world.sleep(for: .seconds(60))
            #expect(await peer.isConnected)
            #expect(events.expirations == 0)
            (isCentral ? devices.lockDevice : devices.phoneDevice).faults.ignoresPings = true
            #expect(try await peer.disconnection() == .controller(.authenticationFailure))
            #expect(events.expirations == 1 && other.expirations == 0)
        }
    }
}

extension SecurityLog {
    fileprivate var expirations: Int {
        all.count { if case .authenticatedPayloadTimedOut = $0 { true } else { false } }
    }
}
