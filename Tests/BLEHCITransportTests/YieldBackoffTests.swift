import Testing

@testable import BLEHCITransport

@Suite("YieldBackoff")
struct YieldBackoffTests {
    private let millisecond: UInt64 = 1_000_000

    @Test func yieldingContinuesWhileItTakesLittleTime() {
        var yielding = YieldBackoff()
        for start in stride(from: UInt64(0), to: 100 * millisecond, by: 100_000) {
            #expect(yielding.isWorthIt(at: start))
            yielding.yielded(from: start, to: start + 50_000)
        }
    }

    @Test func longYieldsCausePausesThatDoubleUpToTenSeconds() {
        var yielding = YieldBackoff()
        var now: UInt64 = 0
        var pauses: [UInt64] = []
        for _ in 0..<13 {
            yielding.yielded(from: now, to: now + 3 * millisecond)
            now += 3 * millisecond
            let end = now
            while !yielding.isWorthIt(at: now) { now += millisecond }
            pauses.append((now - end) / millisecond)
        }
        #expect(pauses == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_000, 10_000, 10_000])
    }

    @Test func pausesShrinkGraduallyAfterShortYields() {
        var yielding = YieldBackoff()
        for _ in 0..<4 { yielding.yielded(from: 0, to: millisecond) }
        yielding.yielded(from: 0, to: 1)
        yielding.yielded(from: 0, to: millisecond)
        #expect(!yielding.isWorthIt(at: 140 * millisecond))
        for _ in 0..<100 { yielding.yielded(from: 0, to: 1) }
        yielding.yielded(from: 0, to: millisecond)
        #expect(!yielding.isWorthIt(at: 10 * millisecond))
        #expect(yielding.isWorthIt(at: 11 * millisecond))
    }
}
