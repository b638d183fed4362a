import Testing

@testable import GatewayMQTT

/// Elements that wait for the queue of the publisher.
struct QueueIntakeTests {
    @Test func elementsAreTakenInTurnsAndInOrder() {
        var intake = QueueIntake<Int>(limit: 4096)
        let needsTurn = (1...2).map { intake.append($0) }
        #expect(needsTurn == [true, false], "one turn is to come")
        for element in 3...100 { _ = intake.append(element) }
        let first = intake.take()
        #expect(first.elements == Array(1...64) && first.firstNumber == 1 && first.needsTurn)
        let needsAnother = intake.append(101)
        #expect(!needsAnother)
        let second = intake.take()
        #expect(second.elements == Array(65...101) && second.firstNumber == 65 && !second.needsTurn)
        let needsNext = intake.append(102)
        #expect(needsNext)
        let third = intake.take()
        #expect(third.firstNumber == 102)
    }

    @Test func oldestElementsAreDroppedAndTheirNumbersAreMissing() {
        var intake = QueueIntake<Int>(limit: 1024)
        for element in 1...1034 { _ = intake.append(element) }
        #expect(intake.droppedCount == 10)
        let turn = intake.take()
        #expect(turn.firstNumber == 11 && turn.elements.first == 11)
    }

    @Test func intakeWithoutElementsGivesNone() {
        var intake = QueueIntake<Int>(limit: 1024)
        let turn = intake.take()
        #expect(turn.elements.isEmpty && !turn.needsTurn)
    }
}
