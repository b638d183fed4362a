import Testing

@testable import GatewayMQTT

/// Brokers that refuse messages, and brokers that confirm none.
struct DeliveryProgressTests {
    /// Takes a connection that ended before a message was confirmed.
    private func loseConnection(_ progress: inout DeliveryProgress) -> Bool {
        progress.update(isConfirmed: false, at: .zero)
        return progress.connectionLost(at: .zero)
    }

    @Test func messageIsRefusedWhenItWasSentAloneAfterThreeFruitlessConnections() {
        var progress = DeliveryProgress()
        let refusals = (0..<8).map { _ in loseConnection(&progress) }
        #expect(refusals == [false, false, false, true, false, false, false, true])
    }

    @Test func connectionThatCannotBeMadeOrHadNothingToSendIsNotCounted() {
        var progress = DeliveryProgress()
        for _ in 0..<10 {
            let isRefused = progress.connectionLost(at: .zero)
            #expect(!isRefused)
        }
        #expect(!progress.sendsOneAtATime)
    }

    @Test func connectionThatIsLostLaterIsNoRefusal() {
        var progress = DeliveryProgress()
        for _ in 0..<10 {
            progress.update(isConfirmed: false, at: .zero)
            let isRefused = progress.connectionLost(at: DeliveryProgress.refusalTime)
            #expect(!isRefused && !progress.sendsOneAtATime)
        }
    }

    @Test func confirmationShowsThatTheBrokerTakesMessages() {
        var progress = DeliveryProgress()
        for _ in 0..<3 { _ = loseConnection(&progress) }
        #expect(progress.sendsOneAtATime)
        progress.update(isConfirmed: false, at: .zero)
        progress.confirm()
        progress.update(isConfirmed: true, at: .zero)
        #expect(!progress.sendsOneAtATime)
        let isRefused = progress.connectionLost(at: .zero)
        #expect(!isRefused)
    }

    @Test func connectionWithoutConfirmationsIsEndedOnceAndIsNoRefusal() {
        var progress = DeliveryProgress()
        for _ in 0..<10 {
            progress.update(isConfirmed: false, at: .seconds(10))
            progress.update(isConfirmed: false, at: .seconds(40))
            let isStalled = [69, 70, 71].map { progress.checkStalled(at: .seconds($0)) }
            #expect(isStalled == [false, true, false])
            let isRefused = progress.connectionLost(at: .seconds(71))
            #expect(!isRefused && !progress.sendsOneAtATime)
        }
    }

    @Test func connectionThatEndsForAnnouncementsIsNotCounted() {
        var progress = DeliveryProgress()
        for _ in 0..<10 {
            progress.update(isConfirmed: false, at: .zero)
            let isRefused = progress.connectionLost(at: .zero, isForOtherReason: true)
            #expect(!isRefused && !progress.sendsOneAtATime)
        }
    }

    @Test func statesThatMessagesWaitForAreConfirmedInTime() {
        var progress = DeliveryProgress()
        let isStalled = [69, 70, 71].map { progress.checkStalled(at: .seconds($0), waitingSince: .seconds(10)) }
        #expect(isStalled == [false, true, false])
    }

    @Test func eachConfirmationBeginsTheTimeAgain() {
        var progress = DeliveryProgress()
        progress.update(isConfirmed: false, at: .zero)
        progress.confirm()
        progress.update(isConfirmed: false, at: .seconds(50))
        let isStalled = [100, 110].map { progress.checkStalled(at: .seconds($0)) }
        #expect(isStalled == [false, true])
        progress.update(isConfirmed: true, at: .seconds(110))
        let isStalledWithoutMessages = progress.checkStalled(at: .seconds(500))
        #expect(!isStalledWithoutMessages)
    }
}
