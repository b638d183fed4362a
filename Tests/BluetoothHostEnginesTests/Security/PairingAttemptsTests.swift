import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Repeated attempts to pair")
struct PairingAttemptsTests {
    private let peer = DeviceAddress(1, isRandom: true)
    private let start = Instant(nanoseconds: 1_000_000_000)

    @Test("Each failure doubles the wait, up to the maximum")
    func eachFailureDoublesTheWait() {
        var attempts = PairingAttempts()
        var now = start
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 256] {
            attempts.failed(peer, at: now)
            let wait = attempts.wait(for: peer, at: now)
            #expect(wait == .seconds(seconds))
            now = now + .seconds(seconds)
            let over = attempts.wait(for: peer, at: now)
            #expect(over == nil)
        }
    }

    @Test("Other peers do not wait, and a success resets the wait")
    func successResetsTheWait() {
        var attempts = PairingAttempts()
        attempts.failed(peer, at: start)
        attempts.failed(peer, at: start)
        let other = attempts.wait(for: DeviceAddress(2, isRandom: true), at: start)
        #expect(other == nil)
        attempts.succeeded(peer)
        attempts.failed(peer, at: start)
        let wait = attempts.wait(for: peer, at: start)
        #expect(wait == .seconds(1))
    }

    @Test("Time without an attempt undoes failures, one after the other")
    func timeUndoesFailures() {
        var attempts = PairingAttempts()
        for _ in 0..<3 { attempts.failed(peer, at: start) }
        // 4 s imposed, 4 s more for the third failure, 2 s for the second.
        attempts.failed(peer, at: start + .seconds(10))
        let wait = attempts.wait(for: peer, at: start + .seconds(10))
        #expect(wait == .seconds(2))
        let later = start + .seconds(3600)
        attempts.failed(peer, at: later)
        let first = attempts.wait(for: peer, at: later)
        #expect(first == .seconds(1))
    }

    @Test("The number of remembered peers is bounded")
    func rememberedPeersAreBounded() {
        var attempts = PairingAttempts(limit: 16)
        for value in 0..<1000 { attempts.failed(DeviceAddress(UInt64(value), isRandom: true), at: start) }
        #expect(attempts.count <= 16)
    }
}
