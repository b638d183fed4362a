import BLEATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

/// Calls of GATT whose results are known without a request to the peer.
@Suite("Order of calls that need no request")
struct CallWithoutRequestTests {
    @Test("A result that needs no request is delivered after the results of the earlier calls")
    func resultWithoutARequestFollowsEarlierResults() throws {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let (_, _, location) = fixture.discover(peripheral)
        fixture.backend.inOrder.withLock { $0 = [] }
        peripheral.writeValue(Data([1]), for: location, type: .withResponse)
        peripheral.writeValue(Data(count: 513), for: location, type: .withResponse)
        peripheral.setNotifyValue(true, for: location)
        peripheral.discoverDescriptors(for: location)
        #expect(fixture.takeTold().isEmpty)
        fixture.answer(.write([1], 0x0015), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold() == ["written"] && fixture.recorder.errors.isEmpty)
        let waiting = fixture.backend.inOrder.withLock { $0 }
        for complete in try #require(waiting) { complete(.success(())) }
        #expect(fixture.takeTold() == ["written", "notifying false", "descriptors"])
        let codes = fixture.recorder.errors.map { ($0 as? CBATTError)?.code }
        #expect(codes == [.invalidAttributeValueLength, .requestNotSupported])
    }

    @Test("A call that needs no request completes after the requests before it, and before those after it")
    func callWithoutARequestCompletesInOrder() throws {
        try World.run(seed: 151) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let backend = pair.phone.backend
            let answers = Mailroom<Int>()
            for number in [0, 2] {
                backend.read(pair.handle(2), of: peripheral) { _ in answers.post(number) }
                backend.completeInOrder(of: peripheral) { _ in answers.post(number + 1) }
            }
            for number in 0...3 { #expect(await answers.next { $0 } == number) }
        }
    }

    @Test("A value that has no configuration is refused after the requests before it")
    func missingConfigurationIsReportedInOrder() throws {
        try World.run(seed: 152) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let text = try await pair.characteristics(of: peripheral)[1]
            #expect(text.descriptorRange == nil)
            let backend = pair.phone.backend
            let answers = Mailroom<String>()
            backend.read(pair.handle(2), of: peripheral) { _ in answers.post("read") }
            backend.setConfiguration(.notification, of: text, on: peripheral) { result in
                answers.post(result.failure == .attribute(.attributeNotFound) ? "refused" : "accepted")
            }
            #expect(await answers.next { $0 } == "read")
            #expect(await answers.next { $0 } == "refused")
        }
    }

    @Test("The end of a subscription that another manager keeps is reported after the requests before it")
    func endOfASharedSubscriptionIsReportedInOrder() throws {
        try World.run(seed: 153) { world in
            let pair = try await LampAndPhone(world)
            let second = await pair.phoneDevice.central()
            let peripheral = await pair.connect()
            await second.connect(peripheral)
            let brightness = try await pair.characteristics(of: peripheral)[0]
            for central in [pair.phone, second] {
                #expect(await central.configure(.notification, of: brightness, on: peripheral).failure == nil)
            }
            let answers = Mailroom<String>()
            let backend = pair.phone.backend
            backend.read(pair.handle(2), of: peripheral) { _ in answers.post("read") }
            backend.setConfiguration([], of: brightness, on: peripheral) { _ in answers.post("off") }
            #expect(await answers.next { $0 } == "read")
            #expect(await answers.next { $0 } == "off")
        }
    }

    @Test("A call that publishes nothing completes after the publications before it")
    func callThatPublishesNothingCompletesInOrder() throws {
        try World.run(seed: 154) { world in
            let device = try await BackendDevice("lamp", in: world)
            let lamp = await device.peripheral()
            let answers = Mailroom<String>()
            lamp.backend.publish(Lamp.definition) { _ in answers.post("published") }
            lamp.backend.completeInOrder { _ in answers.post("completed") }
            #expect(await answers.next { $0 } == "published")
            #expect(await answers.next { $0 } == "completed")
        }
    }
}
