import BLESMP
import BluetoothTypes
import Testing

/// Keypress notifications (Vol 3, Part H, 3.5.8).
@Suite("A pairing in which a passkey is typed")
struct KeypressTests {
    @Test func unrequestedKeypressNotificationsAreIgnoredIfValid() throws {
        var (device, _) = Device.agreed(.peripheral, with: [0x01, 0x02, 0x00, 0x15, 0x10, 0x07, 0x07]) {
            $0.ioCapability = .displayOnly
        }
        for kind in 0...4 as ClosedRange<UInt8> { #expect(device.receive([0x0E, kind]) == []) }
        #expect(device.receive([0x0E, 5]) == .ending(.invalidParameters))
    }

    @Test func keypressNotificationsAreExchangedIfBothSidesWantThem() {
        let secureRequest: [UInt8] = [0x01, 0x02, 0x00, 0x1D, 0x10, 0x07, 0x07]
        var (shows, sent) = Device.agreed(.peripheral, with: secureRequest) {
            $0.ioCapability = .displayOnly
            $0.usesKeypressNotifications = true
        }
        #expect(sent.first?[3] == 0x1D, "the Keypress flag of AuthReq")
        for kind in KeypressNotification.Kind.allCases {
            #expect(shows.receive([0x0E, kind.rawValue]) == [.keyPressed(kind)])
        }
        for wants in [true, false] {
            var (types, _) = Device.agreed(.peripheral, with: [0x01, 0x00, 0x00, 0x15, 0x10, 0x07, 0x07]) {
                $0.ioCapability = .keyboardOnly
                $0.usesKeypressNotifications = wants
            }
            #expect(types.press(.digitEntered) == (wants ? [.send([0x0E, 0x01])] : []))
            _ = types.answer(.passkey(1))
            #expect(types.press(.entryCompleted) == [], "the passkey is typed")
        }
    }

    /// The responder of a legacy pairing can type as soon as it has sent its Pairing Response.
    @Test(arguments: [true, false])
    func keypressNotificationsDuringTheCentralsConsentAreValid(wants: Bool) {
        var device = Device(.central) {
            $0.ioCapability = .displayOnly
            $0.usesKeypressNotifications = wants
        }
        _ = device.start()
        let strength = KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16)
        let steps = device.receive([0x02, 0x02, 0x00, 0x15, 0x10, 0x07, 0x07])
        #expect(steps == [.ask(.consent(.passkeyShownHere, strength))])
        #expect(device.receive([0x0E, 0x00]) == (wants ? [.keyPressed(.entryStarted)] : []))
        let sent = device.answer(.accept).sent
        #expect(sent.map(\.first) == [0x03], "the pairing continues with Pairing Confirm")
    }

    /// In the other cases, the peer has no passkey to type yet.
    @Test(
        arguments: [
            // LE Secure Connections, in which the public keys come first.
            [0x02, 0x02, 0x00, 0x1D, 0x10, 0x07, 0x07],
            // Just works.
            [0x02, 0x03, 0x00, 0x11, 0x10, 0x07, 0x07],
        ] as [[UInt8]]
    )
    func otherKeypressNotificationsDuringTheCentralsConsentEndThePairing(response: [UInt8]) {
        var device = Device(.central) {
            $0.ioCapability = .displayOnly
            $0.usesKeypressNotifications = true
        }
        _ = device.start()
        let steps = device.receive(response)
        #expect(steps.count == 1, "the consent")
        #expect(device.receive([0x0E, 0x00]) == .ending(.unspecifiedReason))
    }

    // MARK: The timeout

    /// A peripheral that shows a passkey, which the central types.
    private func showing(usesNotifications: Bool) -> Device {
        Device.agreed(.peripheral, with: [0x01, 0x02, 0x00, 0x15, 0x10, 0x07, 0x07]) {
            $0.ioCapability = .displayOnly
            $0.usesKeypressNotifications = usesNotifications
        }.0
    }

    /// Vol 3, Part H, 3.4.
    @Test func keypressNotificationsRestartTheTimeout() {
        var device = showing(usesNotifications: true)
        for _ in 0..<3 {
            let ended = device.advance(by: .seconds(20))
            #expect(ended == [])
            let steps = device.receive([0x0E, 0x01])
            #expect(steps == [.keyPressed(.digitEntered)])
        }
        #expect(device.channel.deadline == device.now + .seconds(30))
        let ended = device.advance(by: .seconds(30))
        #expect(ended == [.failed(.timedOut)])
    }

    @Test func keypressNotificationsThatAreNotAgreedDoNotRestartTheTimeout() {
        var device = showing(usesNotifications: false)
        let deadline = device.channel.deadline
        _ = device.advance(by: .seconds(20))
        let steps = device.receive([0x0E, 0x01])
        #expect(steps == [] && device.channel.deadline == deadline)
    }

    @Test func keypressNotificationsDoNotKeepAPairingOpenForEver() {
        var device = showing(usesNotifications: true)
        let start = device.now
        while device.channel.isPairing, device.now < start + .seconds(600) {
            _ = device.advance(by: .seconds(10))
            _ = device.receive([0x0E, 0x01])
        }
        #expect(device.now == start + .seconds(300) && device.channel.isClosed)
    }
}
