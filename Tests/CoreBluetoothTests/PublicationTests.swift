import BLEATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

@Suite("Publishing services that include others")
struct PublicationTests {
    private let fixture = PeripheralFixture()
    private let battery = CBMutableService(type: CBUUID(string: "180F"), primary: false)

    /// Adds two services, of which the second includes the first, and returns their definitions.
    private func addBoth() throws -> (included: ServiceDefinition, outer: ServiceDefinition) {
        fixture.service.includedServices = [battery]
        fixture.manager.add(battery)
        fixture.manager.add(fixture.service)
        let definitions = fixture.takeCalls().compactMap { call -> ServiceDefinition? in
            if case .publish(let definition) = call { definition } else { nil }
        }
        try #require(definitions.count == 2)
        return (definitions[0], definitions[1])
    }

    @Test("A service may be added before the publication of an included one is reported")
    func includedServiceMayStillBePublished() throws {
        let (included, outer) = try addBoth()
        #expect(fixture.backend.includedHandles == [nil])
        // The backend publishes the next service before the manager handles the result.
        fixture.manager.deliveryQueue.suspend()
        fixture.backend.answer(.publish(included), .success(try published(included, at: 0x0030)))
        #expect(fixture.backend.includedHandles == [0x0030])
        fixture.manager.deliveryQueue.resume()
        fixture.answer(.publish(outer), .success(try published(outer, at: 0x0040)))
        #expect(fixture.takeTold() == ["added 180F", "added 180D"])
        #expect(fixture.recorder.errors.isEmpty)
    }

    @Test("The handle of an included service that could not be published is not known")
    func includedServiceThatFailsHasNoHandle() throws {
        let (included, outer) = try addBoth()
        fixture.answer(.publish(included), Result<PublishedService, BackendError>.failure(.core(.outOfSpace)))
        #expect(fixture.backend.includedHandles == [nil])
        fixture.answer(.publish(outer), Result<PublishedService, BackendError>.failure(.core(.invalidParameters)))
        #expect(fixture.takeTold() == ["added 180F", "added 180D"])
        #expect(fixture.recorder.errors.map { ($0 as? CBError)?.code } == [.outOfSpace, .invalidParameters])
        // Both can be changed again.
        fixture.service.includedServices = []
        #expect(fixture.service.includedServices == [])
    }

    @Test("A value that the app stores while its service is not published is not one that the host answers with")
    func storedValueDoesNotBecomeCachedByAnotherPublication() throws {
        try fixture.publish()
        fixture.deliver(.stateChanged(.resetting))
        fixture.characteristic.value = Data([1])
        fixture.deliver(.stateChanged(.poweredOn))
        try #require(!fixture.service.hasCachedValueThatChanges)
        _ = fixture.takeCalls()
        fixture.manager.add(fixture.service)
        guard case .publish(let definition) = fixture.takeCalls().last else { throw CBError(.unknown) }
        #expect(definition.characteristics.map(\.value) == [.handled])
        fixture.answer(.publish(definition), .success(try published(definition, at: 0x0010)))
        #expect(fixture.characteristic.value == Data([1]))
        fixture.characteristic.value = Data([2])
        #expect(fixture.characteristic.value == Data([2]))
        _ = fixture.takeTold()
        let handle = PeripheralFixture.valueHandle
        fixture.deliver(.access(fixture.remote, AccessRequest(identifier: 7, kind: .read(handle, offset: 0))))
        #expect(fixture.takeTold() == ["read 0"])
    }

    @Test("A value that is sent before the publication is reported has no subscribers, and is not refused")
    func valueBeforeThePublicationIsReportedIsNotRefused() throws {
        fixture.manager.add(fixture.service)
        guard case .publish(let definition) = fixture.takeCalls().last else { throw CBError(.unknown) }
        #expect(fixture.manager.updateValue(Data([1]), for: fixture.characteristic, onSubscribedCentrals: nil))
        #expect(fixture.takeCalls().isEmpty)
        fixture.answer(.publish(definition), .success(try published(definition, at: 0x0010)))
        #expect(fixture.manager.updateValue(Data([2]), for: fixture.characteristic, onSubscribedCentrals: nil))
        fixture.manager.remove(fixture.service)
        #expect(!fixture.manager.updateValue(Data([3]), for: fixture.characteristic, onSubscribedCentrals: nil))
    }

    @Test func includedServiceThatWasRemovedBeforeItsPublicationIsRefused() {
        fixture.service.includedServices = [battery]
        fixture.manager.add(battery)
        fixture.manager.remove(battery)
        _ = fixture.takeCalls()
        fixture.manager.add(fixture.service)
        #expect(fixture.takeCalls().isEmpty)
        #expect(fixture.takeTold() == ["added 180D"])
        #expect((fixture.recorder.errors.first as? CBError)?.code == .invalidParameters)
    }
}

@Suite("Starts of advertising that follow each other")
struct AdvertisingStartTests {
    private let fixture = PeripheralFixture()
    private let success = Result<Void, BackendError>.success(())
    private let failure = Result<Void, BackendError>.failure(.core(.unknown))

    private func payload(_ name: String) -> AdvertisementPayload { AdvertisementPayload(localName: name, services: []) }

    private func start(_ names: String...) {
        for name in names { fixture.manager.startAdvertising([CBAdvertisementDataLocalNameKey: name]) }
    }

    private var codes: [CBError.Code?] { fixture.recorder.errors.map { ($0 as? CBError)?.code } }

    @Test("Later starts fail after the first one has succeeded")
    func laterStartsFailAfterASuccess() {
        start("one", "two", "three")
        #expect(fixture.takeCalls() == [.startAdvertising(payload("one"))])
        #expect(fixture.takeTold().isEmpty)
        fixture.answer(.startAdvertising(payload("one")), success)
        #expect(fixture.takeTold() == ["advertising true", "advertising true", "advertising true"])
        #expect(codes == [.alreadyAdvertising, .alreadyAdvertising])
        #expect(fixture.takeCalls().isEmpty)
    }

    @Test("After a failure the next start begins")
    func nextStartBeginsAfterAFailure() {
        start("one", "two", "three")
        fixture.answer(.startAdvertising(payload("one")), failure)
        #expect(fixture.takeTold() == ["advertising false"])
        #expect(fixture.takeCalls() == [.startAdvertising(payload("one")), .startAdvertising(payload("two"))])
        fixture.answer(.startAdvertising(payload("two")), success)
        #expect(fixture.takeTold() == ["advertising true", "advertising true"])
        #expect(codes == [.unknown, .alreadyAdvertising])
        #expect(fixture.manager.isAdvertising)
    }

    @Test("A stop or the loss of power ends the starts that wait", arguments: [true, false])
    func waitingStartsEnd(isStopped: Bool) {
        start("one", "two")
        if isStopped { fixture.manager.stopAdvertising() } else { fixture.deliver(.stateChanged(.poweredOff)) }
        _ = fixture.takeCalls()
        _ = fixture.takeTold()
        fixture.answer(.startAdvertising(payload("one")), failure)
        #expect(fixture.takeCalls().isEmpty)
        #expect(fixture.takeTold().isEmpty)
        if !isStopped { fixture.deliver(.stateChanged(.poweredOn)) }
        start("three")
        #expect(fixture.takeCalls() == [.startAdvertising(payload("three"))])
    }

    @Test func stopEndsAStartThatWasRequestedWhileAdvertisingWasOn() {
        start("one")
        fixture.answer(.startAdvertising(payload("one")), success)
        _ = fixture.takeTold()
        fixture.manager.deliveryQueue.suspend()
        start("two")
        fixture.manager.stopAdvertising()
        start("three")
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold().isEmpty)
        fixture.answer(.startAdvertising(payload("three")), success)
        #expect(fixture.takeTold() == ["advertising true"])
        #expect(codes.isEmpty)
    }

    /// Stops advertising as soon as it has started.
    private final class Stopping: NSObject, CBPeripheralManagerDelegate {
        private(set) var count = 0

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {}

        func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
            count += 1
            peripheral.stopAdvertising()
        }
    }

    @Test func stopInTheFirstReportEndsTheStartsThatWait() {
        let delegate = Stopping()
        fixture.manager.delegate = delegate
        start("one", "two")
        fixture.answer(.startAdvertising(payload("one")), success)
        #expect(delegate.count == 1)
        #expect(!fixture.manager.isAdvertising)
    }
}
