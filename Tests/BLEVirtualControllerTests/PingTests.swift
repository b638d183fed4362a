import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

/// LE Ping and the authenticated payload timeout (Vol 6, Part B, 5.1.8 and 5.4).
@Suite("Pings between software controllers")
struct PingTests {
    private static let key: UInt128 = 0x4C68_3841_39F5_74D8_36BC_F34E_9DFB_01BF
    private static let expired: [UInt8] = [0x04, 0x57, 0x02, 0x40, 0x00]

    /// A link, encrypted or not, with all events enabled except those of page 2.
    private func link(
        isEncrypted: Bool = true,
        latency: UInt16 = 0,
        configure: (inout VirtualController.Configuration) -> Void = { _ in }
    ) throws -> LinkWorld {
        let link = LinkWorld(latency: latency, supervisionTimeout: 1000, configure: configure)
        guard isEncrypted else { return link }
        let command = LEEnableEncryption(
            connectionHandle: LinkWorld.handle,
            randomNumber: 0,
            encryptedDiversifier: 0,
            longTermKey: Self.key
        )
        #expect(link.world.status(of: command, to: 0) == .success)
        try #require(link.run { !link.world.events(LELongTermKeyRequest.subeventCode, at: 1).isEmpty } != nil)
        let reply = LELongTermKeyRequestReply(connectionHandle: LinkWorld.handle, longTermKey: Self.key)
        #expect(link.world.status(of: reply, to: 1) == .success)
        let encrypted: [UInt8] = [0x04, 0x08, 0x04, 0x00, 0x40, 0x00, 0x01]
        try #require(link.run { link.told(0).contains(encrypted) && link.told(1).contains(encrypted) } != nil)
        link.world.forget()
        return link
    }

    private func wantEvents(_ link: LinkWorld, at index: Int) {
        let command = SetEventMaskPage2(eventMaskPage2: .authenticatedPayloadTimeoutExpired)
        #expect(link.world.status(of: command, to: index) == .success)
    }

    private func set(_ timeout: UInt16, _ link: LinkWorld, at index: Int) -> HCIErrorCode? {
        link.world.status(
            of: WriteAuthenticatedPayloadTimeout(
                connectionHandle: LinkWorld.handle,
                authenticatedPayloadTimeout: timeout
            ),
            to: index
        )
    }

    /// The number of Authenticated Payload Timeout Expired events.
    private func expirations(_ link: LinkWorld, at index: Int) -> Int {
        link.packets(index).count { $0 == Self.expired }
    }

    @Test("The timeout is 30 s by default, and its minimum lets the peripheral listen once")
    func timeoutIsReadAndWritten() throws {
        let link = try link(isEncrypted: false, latency: 3)
        func read() -> [UInt8]? {
            link.world.send(ReadAuthenticatedPayloadTimeout(connectionHandle: LinkWorld.handle), to: 0).last
        }
        #expect(read() == [0x04, 0x0E, 0x08, 0x01, 0x7B, 0x0C, 0x00, 0x40, 0x00, 0xB8, 0x0B])
        // Four intervals of 30 ms.
        #expect(set(11, link, at: 0) == .invalidHCICommandParameters)
        #expect(set(0, link, at: 0) == .invalidHCICommandParameters)
        #expect(set(12, link, at: 0) == .success)
        #expect(read() == [0x04, 0x0E, 0x08, 0x01, 0x7B, 0x0C, 0x00, 0x40, 0x00, 0x0C, 0x00])
        let unknown = WriteAuthenticatedPayloadTimeout(connectionHandle: 0x0EFF, authenticatedPayloadTimeout: 100)
        #expect(link.world.status(of: unknown, to: 0) == .unknownConnectionIdentifier)
    }

    @Test("Pings prove the key on an idle link before the timeout", arguments: [0, 1])
    func pingsProveTheKeyOnAnIdleLinkBeforeTheTimeout(index: Int) throws {
        let link = try link()
        wantEvents(link, at: index)
        #expect(set(100, link, at: index) == .success)
        link.run(.seconds(60))
        #expect(link.told(0).isEmpty && link.told(1).count <= 2)
        #expect(expirations(link, at: index) == 0)
        #expect(link.central.links[0] != nil && link.peripheral.links[0] != nil)
    }

    @Test("A peer that does not answer causes an event at each timeout")
    func silentPeerGivesEvents() throws {
        let link = try link()
        link.peripheral.faults.ignoresPings = true
        wantEvents(link, at: 0)
        #expect(set(100, link, at: 0) == .success)
        link.run(.milliseconds(999))
        #expect(expirations(link, at: 0) == 0)
        link.run(.milliseconds(9_002))
        #expect(expirations(link, at: 0) == 10)
        // Data from the peer proves the key as well.
        link.send(.init(7, count: 20), from: 1)
        link.run(.milliseconds(900))
        #expect(expirations(link, at: 0) == 10)
        link.run(.milliseconds(200))
        #expect(expirations(link, at: 0) == 11)
    }

    @Test("No event without encryption, with a masked event, or without support")
    func noEventIsSentWithoutEncryptionMaskOrSupport() throws {
        for isEncrypted in [true, false] {
            let link = try link(isEncrypted: isEncrypted)
            link.peripheral.faults.ignoresPings = true
            #expect(set(100, link, at: 0) == .success)
            if !isEncrypted { wantEvents(link, at: 0) }
            link.run(.seconds(10))
            #expect(expirations(link, at: 0) == 0)
        }
        let incapable = try link { $0.features.remove(.ping) }
        #expect(set(100, incapable, at: 0) == .unknownHCICommand)
    }

    @Test("A host that enables the event later gets it for a link that was encrypted before")
    func laterMaskBeginsTheTimer() throws {
        let link = try link()
        link.peripheral.faults.ignoresPings = true
        link.run(.seconds(20))
        wantEvents(link, at: 0)
        link.run(.milliseconds(29_900))
        #expect(expirations(link, at: 0) == 0)
        link.run(.milliseconds(200))
        #expect(expirations(link, at: 0) == 1)
    }

    @Test func timeoutsLeaveOneTimerHoweverOftenTheyAreSet() throws {
        let link = try link()
        wantEvents(link, at: 0)
        let actions = link.air.counts.actions
        for _ in 0..<1000 { #expect(set(0xFFFF, link, at: 0) == .success) }
        #expect(link.air.counts.actions <= actions)
    }

    @Test("Both sides can watch a link, and a peer without LE Ping proves the key by its refusal")
    func refusalProvesTheKey() throws {
        for lacksPing in [false, true] {
            var count = 0
            let link = try link {
                count += 1
                if lacksPing, count == 2 { $0.features.remove(.ping) }
            }
            wantEvents(link, at: 0)
            wantEvents(link, at: 1)
            #expect(set(50, link, at: 0) == .success)
            #expect(set(70, link, at: 1) == (lacksPing ? .unknownHCICommand : .success))
            link.run(.seconds(30))
            #expect(expirations(link, at: 0) == 0 && expirations(link, at: 1) == 0)
        }
    }
}
