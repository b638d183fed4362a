import BLESMP
import BluetoothTypes
import Synchronization
import Testing

@testable import BluetoothHost

/// An attacker that shows a passkey, which a program types on the host, and that changes its address for each attempt.
@Suite("An attacker that guesses a passkey")
struct GuessingTests {
    /// - Parameter passkeys: the passkeys that are typed, one after the other; the last one is repeated.
    private func encounter(_ passkeys: [UInt32]) throws -> Encounter {
        let typed = Mutex(0)
        let encounter = try Encounter(.peripheral) {
            $0.security.ioCapability = .keyboardOnly
            $0.pairingHandler = { inquiry, answer in
                guard inquiry.question == .enterPasskey else {
                    answer(.accept)
                    return {}
                }
                let index = typed.withLock { count in
                    defer { count += 1 }
                    return count
                }
                answer(.passkey(passkeys[min(index, passkeys.count - 1)]))
                return {}
            }
        }
        encounter.peer.parameters.ioCapability = .displayOnly
        return encounter
    }

    private func address(_ number: Int) -> DeviceAddress {
        DeviceAddress(0xC0FF_EE00_1000 + UInt64(number), isRandom: true)
    }

    @Test("A passkey is used for one pairing that a peer begins, because each attempt reveals a bit")
    func fixedPasskeyIsUsedOnce() throws {
        let encounter = try encounter([123_456])
        encounter.pair()
        #expect(encounter.heard.last == [0x05, 0x04], "confirm value failed: the attacker learns where it is wrong")
        for number in 0..<3 {
            encounter.fixture.loop.run(for: .seconds(100))
            encounter.meetAgain(address(number))
            encounter.pair()
            #expect(encounter.heard.last == [0x05, 0x01], "passkey entry failed, before any bit is told")
            #expect(!encounter.heard.contains { $0.first == 0x03 }, "no confirm value is sent")
        }
    }

    @Test("A passkey is used once for security that the app requests from clients")
    func requestedSecurityUsesPasskeyOnce() throws {
        let encounter = try encounter([123_456])
        for number in 0..<3 {
            encounter.fixture.loop.run(for: .seconds(100))
            encounter.meetAgain(address(number))
            _ = try encounter.require(RequiredSecurity(isAuthenticated: true))
            encounter.settle()
            encounter.pair()
            #expect(encounter.heard.contains { $0.first == 0x03 } == (number == 0), "attempt \(number)")
        }
    }

    @Test("Failures also delay clients from which the app requests security")
    func failuresDelayClientsFromWhichSecurityIsRequested() throws {
        let encounter = try encounter((0..<20).map { 100_000 + $0 })
        for number in 0...PairingAttempts.tolerated {
            encounter.meetAgain(address(number))
            encounter.pair()
        }
        encounter.meetAgain(address(100))
        let call = try encounter.require(RequiredSecurity(isAuthenticated: true))
        encounter.settle()
        let error = #expect(throws: HostError.self) { try call.all.first?.get() }
        guard case .security(.repeatedAttempts(let delay))? = error else {
            Issue.record("the app is not told to wait")
            return
        }
        #expect(delay > .zero && delay <= .seconds(1))
        encounter.pair()
        #expect(encounter.heard.last == [0x05, 0x09], "repeated attempts")
    }

    @Test("A passkey may be typed again if the app itself begins the pairing")
    func appMayRepeatPasskey() throws {
        var attempts = PairingAttempts()
        let uses = [7, 8, 7].map { attempts.use(passkey: $0) }
        #expect(uses == [false, false, true])
        let encounter = try Encounter(.central) {
            $0.security.ioCapability = .keyboardOnly
            $0.pairingHandler = { inquiry, answer in
                answer(inquiry.question == .enterPasskey ? .passkey(123_456) : .accept)
                return {}
            }
        }
        encounter.peer.parameters.ioCapability = .displayOnly
        for number in 0..<2 {
            encounter.meetAgain(address(number))
            _ = try encounter.require(RequiredSecurity(isAuthenticated: true))
            encounter.settle()
            #expect(encounter.heard.contains { $0.first == 0x03 }, "the passkey is used")
        }
    }

    @Test("After several failures all peers wait, however often the attacker changes its address")
    func severalFailuresDelayAllPeersWhateverTheirAddress() throws {
        let encounter = try encounter((0..<20).map { 100_000 + $0 })
        for number in 0...PairingAttempts.tolerated {
            encounter.meetAgain(address(number))
            encounter.pair()
            #expect(encounter.heard.last == [0x05, 0x04])
        }
        encounter.meetAgain(address(100))
        encounter.pair()
        #expect(encounter.heard.last == [0x05, 0x09], "repeated attempts, for an address that made none")
        encounter.fixture.loop.run(for: .seconds(1))
        encounter.meetAgain(address(101))
        encounter.pair()
        #expect(encounter.heard.last == [0x05, 0x04])
        encounter.fixture.loop.run(for: .seconds(1))
        encounter.meetAgain(address(102))
        encounter.pair()
        #expect(encounter.heard.last == [0x05, 0x09], "twice as long")
    }

    @Test("Refusals without a secret delay no other peer, and the wait of all peers ends")
    func waitOfAllIsBounded() {
        var attempts = PairingAttempts()
        let start = Instant(nanoseconds: 1_000_000_000)
        for number in 0..<100 { attempts.failed(address(number), at: start) }
        var wait = attempts.waitOfAll(at: start)
        #expect(wait == nil)
        for number in 0..<100 { attempts.failed(address(number), countsForAll: true, at: start) }
        wait = attempts.waitOfAll(at: start)
        #expect(wait == PairingAttempts.longestOfAll)
        wait = attempts.waitOfAll(at: start + PairingAttempts.longestOfAll)
        #expect(wait == nil)
        let later = start + PairingAttempts.longestOfAll * 20
        for number in 0..<PairingAttempts.tolerated { attempts.failed(address(number), countsForAll: true, at: later) }
        wait = attempts.waitOfAll(at: later)
        #expect(wait == nil, "what was long ago is forgiven")
    }
}
