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
        at time: Duration = .zero
    ) -> Refusal? {
        for (number, topic) in zip(Int32(0)..., ["status"] + topics) {
            progress.send(number, to: topic, place: UInt64(number), isDispensable: number > 0, at: .zero)
        }
        for number in Int32(0)..<Int32(confirmed) {
            let isAnnouncement = progress.confirm(number)
            #expect(isAnnouncement)
        }
        let isReason = progress.isReason(firstMessage: firstMessage, at: time)
        let refusal = progress.connectionLost(firstMessage: firstMessage, at: time)
        #expect(isReason || refusal == nil)
        return refusal
    }

    @Test func firstAnnouncementWithoutAConfirmationIsRefusedAfterFiveConnectionsForADay() {
        var progress = AnnouncementProgress()
        let refusals = (0..<5).map { _ in lose(&progress, after: ["other", "config"], confirmed: 2) }
        #expect(refusals == [nil, nil, nil, nil, .topic("config")])
        #expect(!progress.sends(to: "config", at: .seconds(86_399)) && progress.sends(to: "other", at: .zero))
        #expect(progress.sends(to: "config", at: .seconds(86_400)) && progress.isConfirmed)
    }

    @Test func allAreRefusedIfAnotherOneComesFirstEachTime() {
        var progress = AnnouncementProgress()
        let refusals = (0..<5).map { lose(&progress, after: ["config\($0)"]) }
        #expect(refusals == [nil, nil, nil, nil, .all])
        #expect(!progress.sends(to: "any", at: .seconds(10)) && progress.sends(to: "any", at: .seconds(86_400)))
    }

    @Test func announcementThatIsConfirmedAtLastIsNotRefused() {
        var progress = AnnouncementProgress()
        for _ in 0..<10 {
            for _ in 0..<4 { #expect(lose(&progress, after: ["config"]) == nil) }
            #expect(lose(&progress, after: ["config", "other"], confirmed: 3) == nil)
        }
        #expect(progress.sends(to: "config", at: .zero))
    }

    @Test("A connection that is lost later, at a state or at a message before the announcement is no refusal")
    func otherReasonsAreNoRefusals() {
        var progress = AnnouncementProgress()
        for _ in 0..<10 {
            #expect(lose(&progress, after: ["config"], at: DeliveryProgress.refusalTime) == nil)
            #expect(lose(&progress, after: ["config"], confirmed: 0) == nil)
            #expect(lose(&progress, after: ["config"], firstMessage: 0) == nil)
            #expect(lose(&progress, after: []) == nil)
        }
        #expect(progress.sends(to: "config", at: .zero))
        for _ in 0..<4 { #expect(lose(&progress, after: ["config"], firstMessage: 5) == nil) }
        #expect(lose(&progress, after: ["config"], firstMessage: 5) == .topic("config"))
    }
}
