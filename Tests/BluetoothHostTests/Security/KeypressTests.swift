import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Keypress notifications (Vol 3, Part H, 3.5.8).
@Suite("Keypress notifications while a passkey is typed")
struct KeypressTests {
    private func encounter(_ capability: IOCapability, of peer: IOCapability) throws -> Encounter {
        let encounter = try Encounter(.peripheral) {
            $0.security.ioCapability = capability
            $0.security.usesKeypressNotifications = true
            $0.pairingHandler = { inquiry, answer in
                if case .consent = inquiry.question { answer(.accept) }
                return {}
            }
        }
        encounter.peer.parameters.ioCapability = peer
        encounter.peer.parameters.usesKeypressNotifications = true
        return encounter
    }

    @Test("The app receives them if the peer types")
    func appReceivesKeypressesIfThePeerTypes() throws {
        let encounter = try encounter(.displayOnly, of: .keyboardOnly)
        let events = Recorder<SecurityEvent>()
        _ = try encounter.run { $0.observeSecurity { events.append($0) } }
        encounter.pair()
        for kind in [0, 1, 4] as [UInt8] { encounter.send([0x0E, kind]) }
        let kinds = events.all.compactMap { event -> KeypressNotification.Kind? in
            if case .keyPressed(_, Encounter.peerAddress, let kind) = event { kind } else { nil }
        }
        #expect(kinds == [.entryStarted, .digitEntered, .entryCompleted])
    }

    @Test("The peer receives them if the app types, and only during that time")
    func peerReceivesKeypressesWhileTheAppTypesOnly() throws {
        let encounter = try encounter(.keyboardOnly, of: .displayOnly)
        let link = try #require(try encounter.run { $0.linkIdentifiers().first })
        #expect(try encounter.run { $0.reportKeypress(.entryStarted, on: link) } == false)
        encounter.pair()
        #expect(try encounter.run { $0.reportKeypress(.digitEntered, on: link) })
        encounter.settle()
        #expect(encounter.heard.last == [0x0E, 0x01])
        #expect(encounter.keysPressed == [.digitEntered])
    }
}
