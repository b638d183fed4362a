import BLESMP
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
}
