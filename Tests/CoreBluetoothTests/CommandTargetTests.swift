import Foundation
import Testing

@testable import CoreBluetooth

/// The connection ends while the app's thread is in a call, after it has read the target of the command.
@Suite("A command during a disconnection")
struct CommandTargetTests {
    private let fixture = CentralFixture()
    private let peripheral: CBPeripheral
    private let target: CBPeripheral.CommandTarget

    init() throws {
        peripheral = fixture.connectedPeripheral()
        target = try #require(peripheral.commandTarget())
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        _ = fixture.takeTold()
    }

    @Test("Its result is not delivered after the end, or on the next connection", arguments: [true, false])
    func resultIsNotDelivered(isConnectedAgain: Bool) {
        if isConnectedAgain { fixture.connect(peripheral) }
        let answer: Completion<Void> = peripheral.answer(for: target) { peripheral, _ in
            peripheral.tell { $0.peripheralIsReady(toSendWriteWithoutResponse: peripheral) }
        }
        answer(.failure(.core(.notConnected)))
        #expect(fixture.takeTold().isEmpty)
    }

    @Test("A write without response does not count on the next connection")
    func writeDoesNotCountOnTheNextConnection() {
        fixture.connect(peripheral)
        for _ in 1...CBPeripheral.writeLimit {
            peripheral.writeWithoutResponse(Data([1]), to: CentralFixture.location, of: target)
        }
        #expect(fixture.takeCalls().isEmpty)
        #expect(peripheral.canSendWriteWithoutResponse)
    }
}
