import Testing

@testable import GatewayMQTT

/// Brokers that refuse announcements.
struct AnnouncementProgressTests {
    private typealias Refusal = AnnouncementProgress.Refusal

    /// Sends a state and announcements, of which the broker confirms the first ones before it ends the connection.
    private func lose(
        _ progress: inout AnnouncementProgress,
        after topics: [String],
        confirmed: Int = 1,
        firstMessage: UInt64? = nil,
        at time: Duration = .zero,
        delay: Duration = .zero
    ) -> Refusal? {
        let sent = ["status"] + topics
        for (number, topic) in zip(Int32(0)..., sent)
        where progress.sends(to: topic, isState: number == 0, at: time) {
            progress.send(number, to: topic, place: UInt64(number), isState: number == 0, at: time)
        }
        for number in Int32(0)..<Int32(confirmed) {
            let isAnnouncement = progress.confirm(number)
            #expect(isAnnouncement)
        }
        let isReason = progress.isReason(firstMessage: firstMessage, at: time + delay)
        let refusal = progress.connectionLost(firstMessage: firstMessage, at: time + delay)
        #expect(isReason || refusal == nil)
        return refusal
    }

    @Test func announcementBesideOthersIsRefusedAfterFiveConnectionsForADay() {
        var progress = AnnouncementProgress()
        let refusals = (0..<5).map { _ in lose(&progress, after: ["other", "config"], confirmed: 2) }
        #expect(refusals == [nil, nil, nil, nil, .topics(["config"])])
        func sends(_ topic: String, at time: Duration) -> Bool { progress.sends(to: topic, isState: false, at: time) }
        #expect(!sends("config", at: .seconds(86_399)) && sends("other", at: .zero) && progress.isConfirmed)
        #expect(sends("config", at: .seconds(86_400)))
    }

    @Test func allAreRefusedIfNoneIsConfirmedAndAgainADayLater() {
        var progress = AnnouncementProgress()
        let refusals = (0..<5).map { lose(&progress, after: ["config\($0)"]) }
        #expect(refusals == [nil, nil, nil, nil, .announcements])
        #expect(!progress.sends(to: "any", isState: false, at: .seconds(86_399)))
        #expect(progress.sends(to: "status", isState: true, at: .zero))
        let day = Duration.seconds(86_400)
        #expect(progress.sends(to: "any", isState: false, at: day))
        let later = (0..<5).map { _ in lose(&progress, after: ["other", "config"], confirmed: 2, at: day) }
        #expect(later.last == .topics(["config"]) && !progress.sends(to: "config", isState: false, at: day))
    }

    @Test func stateIsRefusedForTenMinutes() {
        var progress = AnnouncementProgress()
        let refusals = (0..<5).map { _ in lose(&progress, after: [], confirmed: 0) }
        #expect(refusals.last == .topics(["status"]))
        #expect(!progress.sends(to: "status", isState: true, at: .seconds(599)))
        #expect(progress.sends(to: "status", isState: true, at: .seconds(600)))
        #expect(progress.sends(to: "config", isState: false, at: .zero))
    }

    @Test func eachFurtherRefusalOfAStateDoublesItsPause() {
        var progress = AnnouncementProgress()
        var now = Duration.zero
        for pause in [600, 1200, 2400] {
            for _ in 0..<5 { _ = lose(&progress, after: [], confirmed: 0, at: now) }
            #expect(!progress.sends(to: "status", isState: true, at: now + .seconds(pause - 1)))
            now += .seconds(pause)
            #expect(progress.sends(to: "status", isState: true, at: now))
        }
        _ = lose(&progress, after: [], confirmed: 1, at: now)
        for _ in 0..<5 { _ = lose(&progress, after: [], confirmed: 0, at: now) }
        #expect(progress.sends(to: "status", isState: true, at: now + .seconds(600)))
    }

    @Test func stateBesideAnAnnouncementIsLeftOutForTenMinutesOnly() {
        var progress = AnnouncementProgress()
        progress.send(0, to: "other", place: 0, isState: false, at: .zero)
        for number in 0..<5 {
            // A state that is not confirmed, and later an announcement without a state before it.
            progress.send(1, to: number < 2 ? "status" : "config", place: 1, isState: number < 2, at: .zero)
            _ = progress.confirm(0)
            let refusal = progress.connectionLost(firstMessage: nil, at: .zero)
            #expect(refusal == (number == 4 ? .topics(["config", "status"]) : nil))
            progress.send(0, to: "other", place: 0, isState: false, at: .zero)
        }
        #expect(progress.sends(to: "status", isState: true, at: .seconds(600)))
        #expect(!progress.sends(to: "config", isState: false, at: .seconds(600)))
    }

    @Test func announcementThatIsConfirmedAtLastIsNotRefused() {
        var progress = AnnouncementProgress()
        for _ in 0..<10 {
            let refusals = (0..<4).map { _ in lose(&progress, after: ["config"]) }
            #expect(refusals == [nil, nil, nil, nil])
            #expect(lose(&progress, after: ["config"], confirmed: 2) == nil)
        }
        #expect(progress.sends(to: "config", isState: false, at: .zero))
    }

    @Test("Connections that are lost later, rarely, or at a message before the announcement are no refusals")
    func otherReasonsAreNoRefusals() {
        var progress = AnnouncementProgress()
        for number in 0..<10 {
            #expect(lose(&progress, after: ["config"], delay: DeliveryProgress.refusalTime) == nil)
            #expect(lose(&progress, after: ["config"], firstMessage: 0) == nil)
            #expect(lose(&progress, after: [], confirmed: 0, firstMessage: 1) == nil)
            #expect(lose(&progress, after: ["config\(number)"], at: .seconds(3600 * number)) == nil)
        }
        for _ in 0..<4 { _ = lose(&progress, after: ["config"], firstMessage: 5, at: .seconds(90_000)) }
        #expect(lose(&progress, after: ["config"], firstMessage: 5, at: .seconds(90_000)) == .announcements)
    }
}
