import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import Testing

@testable import GatewayMQTT

/// Observations that wait for the queue of the publisher.
struct ObservationIntakeTests {
    private func observation(_ address: UInt64) -> SensorObservation {
        SensorObservation(
            time: Date(timeIntervalSince1970: 0),
            gateway: "hall",
            address: DeviceAddress(address, isRandom: true),
            report: SensorReport(format: .bthome, readings: [])
        )
    }

    private func addresses(_ observations: [SensorObservation]) -> [UInt64] { observations.map(\.address.value) }

    @Test func observationsAreTakenInTurnsAndInOrder() {
        var intake = ObservationIntake()
        let needsTurn = (1...2).map { intake.append(observation($0)) }
        #expect(needsTurn == [true, false], "one turn is to come")
        for address in 3...100 { _ = intake.append(observation(UInt64(address))) }
        let first = intake.take()
        #expect(addresses(first.observations) == Array(1...64) && first.firstNumber == 1 && first.needsTurn)
        let needsAnother = intake.append(observation(101))
        #expect(!needsAnother)
        let second = intake.take()
        #expect(addresses(second.observations) == Array(65...101) && second.firstNumber == 65 && !second.needsTurn)
        let needsNew = intake.append(observation(102))
        #expect(needsNew)
        let third = intake.take()
        #expect(third.firstNumber == 102)
    }

    @Test func oldestObservationsAreDroppedAndTheirNumbersAreMissing() {
        var intake = ObservationIntake()
        let count = UInt64(ObservationIntake.limit) + 10
        for address in 1...count { _ = intake.append(observation(address)) }
        #expect(intake.droppedCount == 10)
        let turn = intake.take()
        #expect(turn.firstNumber == 11 && turn.observations.first?.address.value == 11)
    }

    @Test func intakeWithoutObservationsGivesNone() {
        var intake = ObservationIntake()
        let turn = intake.take()
        #expect(turn.observations.isEmpty && !turn.needsTurn)
    }
}
