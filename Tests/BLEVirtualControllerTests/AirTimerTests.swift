import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Timers of the air")
struct AirTimerTests {
    @Test("The last setting of a timer replaces earlier ones, and other actions keep their order")
    func lastSettingReplacesEarlierOnes() {
        let air = Air()
        let timer = Air.Timer()
        var fired: [String] = []
        air.set(timer, at: air.now + .seconds(1)) { fired.append("early") }
        air.schedule(after: .seconds(2)) { fired.append("other") }
        air.set(timer, at: air.now + .seconds(3)) { fired.append("late") }
        #expect(air.nextDue == air.now + .seconds(2) && air.counts.actions == 2)
        air.advance(to: air.now + .seconds(10))
        #expect(fired == ["other", "late"] && air.nextDue == nil)
    }

    @Test func cancelledTimerDoesNotFireAndCanBeSetAgain() {
        let air = Air()
        let timer = Air.Timer()
        var count = 0
        air.set(timer, at: air.now + .seconds(1)) { count += 1 }
        air.cancel(timer)
        air.cancel(timer)
        #expect(air.nextDue == nil && air.counts.actions == 0)
        air.advance(to: air.now + .seconds(2))
        #expect(count == 0)
        air.set(timer, at: air.now + .seconds(1)) { count += 1 }
        air.advance(to: air.now + .seconds(2))
        #expect(count == 1)
        // The action has run, so there is nothing to cancel.
        air.cancel(timer)
        #expect(air.counts.actions == 0)
    }

    @Test func timerThatItsActionSetsAgainRepeats() {
        let air = Air()
        let timer = Air.Timer()
        var count = 0
        func repeatEverySecond() {
            air.set(timer, at: air.now + .seconds(1)) {
                count += 1
                repeatEverySecond()
            }
        }
        repeatEverySecond()
        air.advance(to: air.now + .milliseconds(5500))
        #expect(count == 5 && air.counts.actions == 1)
    }

    @Test("Moving the time runs no action and does not pass the next one")
    func movedTimeStopsAtTheNextAction() {
        let air = Air()
        let start = air.now
        var count = 0
        air.schedule(after: .seconds(2)) { count += 1 }
        air.moveTime(to: start + .seconds(1))
        #expect(air.now == start + .seconds(1))
        air.moveTime(to: start + .seconds(5))
        #expect(air.now == start + .seconds(2) && count == 0)
        air.moveTime(to: start)
        #expect(air.now == start + .seconds(2))
        air.advance(to: start + .seconds(5))
        #expect(count == 1)
        air.moveTime(to: start + .seconds(9))
        #expect(air.now == start + .seconds(9))
    }

    @Test func mostCancelledActionsAreReleasedBeforeTheirTime() {
        final class Resource {}
        struct Reference {
            weak var resource: Resource?
        }

        let air = Air()
        let timer = Air.Timer()
        air.schedule(after: .milliseconds(1)) {}
        var references: [Reference] = []
        for second in 1...1000 {
            let resource = Resource()
            references.append(Reference(resource: resource))
            air.set(timer, at: air.now + .seconds(second)) { withExtendedLifetime(resource) {} }
        }
        #expect(references.count { $0.resource != nil } < 200)
        #expect(air.counts.actions == 2)
    }
}
