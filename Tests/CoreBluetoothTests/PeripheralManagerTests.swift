import BLEATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

/// A peripheral manager with a scripted host, and the calls that its delegate received.
final class PeripheralFixture: ManagerFixture {
    final class Recorder: NSObject, CBPeripheralManagerDelegate, DelegateRecorder {
        var told: [String] = []
        var errors: [any Error] = []
        var requests: [CBATTRequest] = []
        var centrals: [CBCentral] = []
        var restored: [String: Any] = [:]

        private func note(_ text: String, _ error: (any Error)? = nil) {
            told.append(text)
            if let error { errors.append(error) }
        }

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) { note("state \(peripheral.state)") }
        func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
            restored = dict
            note("restore")
        }
        func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
            note("advertising \(peripheral.isAdvertising)", error)
        }
        func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            note("added \(service.uuid.uuidString)", error)
        }
        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            central: CBCentral,
            didSubscribeTo characteristic: CBCharacteristic
        ) {
            centrals.append(central)
            note("subscribed \((characteristic as? CBMutableCharacteristic)?.subscribedCentrals?.count ?? -1)")
        }
        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            central: CBCentral,
            didUnsubscribeFrom characteristic: CBCharacteristic
        ) {
            note("unsubscribed \((characteristic as? CBMutableCharacteristic)?.subscribedCentrals?.count ?? -1)")
        }
        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
            requests = [request]
            note("read \(request.offset)")
        }
        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
            self.requests = requests
            note("write " + requests.map { "\($0.offset):\([UInt8]($0.value ?? Data()))" }.joined(separator: " "))
        }
        func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { note("ready") }
        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            didPublishL2CAPChannel psm: CBL2CAPPSM,
            error: (any Error)?
        ) {
            note("published \(psm)", error)
        }
        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            didUnpublishL2CAPChannel psm: CBL2CAPPSM,
            error: (any Error)?
        ) {
            note("unpublished \(psm)", error)
        }
        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            didOpen channel: CBL2CAPChannel?,
            error: (any Error)?
        ) {
            note("channel \(channel?.psm ?? 0)", error)
        }
    }

    let backend = ScriptedPeripheralBackend()
    let recorder = Recorder()
    let manager: CBPeripheralManager
    let service = CBMutableService(type: CBUUID(string: "180D"), primary: true)
    let characteristic = CBMutableCharacteristic(
        type: CBUUID(string: "2A37"),
        properties: [.read, .write, .notify],
        value: nil,
        permissions: [.readable, .writeable]
    )
    let remote = RemoteCentral(link: .placeholder(1), identifier: UUID(), mtu: 185)
    /// The handle of the characteristic's value, in a service that is published at 0x0010.
    static let valueHandle = AttributeHandle(0x0012)

    init(state: CBManagerState? = .poweredOn) {
        manager = CBPeripheralManager(delegate: recorder, queue: DispatchQueue(label: "test"), backend: backend)
        service.characteristics = [characteristic]
        if let state {
            deliver(.stateChanged(state))
            recorder.told = []
        }
    }

    /// Adds a service and makes the host publish it.
    func publish(_ service: CBMutableService, at handle: UInt16) throws {
        manager.add(service)
        guard case .publish(let definition) = takeCalls().last else { throw CBError(.unknown) }
        answer(.publish(definition), .success(try published(definition, at: handle)))
    }

    /// Reports to the manager that the service is published.
    func publish() throws {
        try publish(service, at: 0x0010)
        recorder.told = []
    }

    func subscribe(_ remote: RemoteCentral? = nil) {
        deliver(.configured(remote ?? self.remote, PeripheralFixture.valueHandle, .notification))
    }
}

@Suite("A peripheral manager")
struct PeripheralManagerTests {
    @Test("A service that is removed and added again while it is being published is published once")
    func serviceAddedAgainWhileItIsBeingPublishedIsPublishedOnce() throws {
        let fixture = PeripheralFixture()
        fixture.manager.add(fixture.service)
        fixture.manager.remove(fixture.service)
        fixture.manager.add(fixture.service)
        guard case .publish(let definition) = fixture.takeCalls().last else { throw CBError(.unknown) }
        fixture.answer(.publish(definition), .success(try published(definition, at: 0x0010)))
        #expect(fixture.takeCalls() == [.remove(0x0010)])
        #expect(fixture.takeTold().isEmpty)
        fixture.answer(.publish(definition), .success(try published(definition, at: 0x0020)))
        #expect(fixture.takeTold() == ["added 180D"])
        fixture.deliver(.configured(fixture.remote, 0x0022, .notification))
        _ = fixture.takeCalls()
        #expect(fixture.manager.updateValue(Data([1]), for: fixture.characteristic, onSubscribedCentrals: nil))
        #expect(fixture.takeCalls() == [.update([1], 0x0022, [fixture.remote.link])])
    }

    @Test("The failure of a service that was removed does not remove the service that was added again")
    func failureOfARemovedServiceDoesNotRemoveTheNext() throws {
        let fixture = PeripheralFixture()
        fixture.manager.add(fixture.service)
        fixture.manager.removeAllServices()
        fixture.manager.add(fixture.service)
        guard case .publish(let definition) = fixture.takeCalls().last else { throw CBError(.unknown) }
        fixture.answer(.publish(definition), Result<PublishedService, BackendError>.failure(.core(.outOfSpace)))
        #expect(fixture.takeTold().isEmpty)
        fixture.answer(.publish(definition), .success(try published(definition, at: 0x0010)))
        #expect(fixture.takeTold() == ["added 180D"])
    }

    @Test("Advertising and channel services that begin before the app knows of a reset end with it")
    func callsBeforeTheResetIsKnownAreUndone() {
        let fixture = PeripheralFixture()
        fixture.manager.deliveryQueue.suspend()
        fixture.backend.deliver(.stateChanged(.resetting))
        fixture.manager.startAdvertising(nil)
        fixture.manager.publishL2CAPChannel(withEncryption: false)
        fixture.backend.answer(.publishChannel(false), Result<CBL2CAPPSM, BackendError>.success(0x0080))
        fixture.manager.deliveryQueue.resume()
        #expect(
            fixture.takeCalls() == [
                .startAdvertising(AdvertisementPayload(dictionary: nil)), .publishChannel(false), .stopAdvertising,
                .unpublishAllChannels,
            ]
        )
        #expect(fixture.takeTold() == ["state resetting"], "the channel service was removed")
    }

    @Test("Restoration is the first callback; the state is reported once")
    func restorationIsTheFirstCallbackAndTheStateIsReportedOnce() throws {
        let fixture = PeripheralFixture(state: nil)
        #expect(fixture.manager.state == .unknown)
        fixture.backend.deliver(.restored(RestoredPeripheral(localName: "TiTan", services: ["180D"])))
        fixture.backend.deliver(.stateChanged(.poweredOn))
        fixture.deliver(.stateChanged(.poweredOn))
        #expect(fixture.takeTold() == ["restore", "state poweredOn"])
        let advertisement = try #require(
            fixture.recorder.restored[CBPeripheralManagerRestoredStateAdvertisementDataKey] as? [String: Any]
        )
        #expect(advertisement[CBAdvertisementDataLocalNameKey] as? String == "TiTan")
    }

    @Test("Commands below poweredOn are dropped without a callback", arguments: [CBManagerState.unknown, .poweredOff])
    func commandsBelowPoweredOnAreDroppedWithoutACallback(state: CBManagerState) {
        let fixture = PeripheralFixture(state: state)
        fixture.manager.startAdvertising(nil)
        fixture.manager.stopAdvertising()
        fixture.manager.add(fixture.service)
        fixture.manager.remove(fixture.service)
        fixture.manager.removeAllServices()
        fixture.manager.publishL2CAPChannel(withEncryption: true)
        fixture.manager.unpublishL2CAPChannel(0x80)
        #expect(!fixture.manager.updateValue(Data(), for: fixture.characteristic, onSubscribedCentrals: nil))
        #expect(fixture.takeCalls().isEmpty)
        #expect(fixture.takeTold().isEmpty)
    }

    // MARK: Advertising

    @Test("Advertising accepts only a name and services; a second start fails while it is on")
    func advertisingAcceptsOnlyANameAndServicesAndOneStart() throws {
        let fixture = PeripheralFixture()
        fixture.manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: "TiTan", CBAdvertisementDataServiceUUIDsKey: [fixture.service.uuid],
            CBAdvertisementDataTxPowerLevelKey: 4,
        ])
        let payload = AdvertisementPayload(localName: "TiTan", services: ["180D"])
        #expect(fixture.takeCalls() == [.startAdvertising(payload)])
        #expect(!fixture.manager.isAdvertising)
        fixture.answer(.startAdvertising(payload), Result<Void, BackendError>.success(()))
        fixture.manager.startAdvertising(nil)
        #expect(fixture.takeTold() == ["advertising true", "advertising true"])
        #expect((fixture.recorder.errors.first as? CBError)?.code == .alreadyAdvertising)
        fixture.manager.stopAdvertising()
        #expect(!fixture.manager.isAdvertising)
        fixture.manager.stopAdvertising()
        #expect(fixture.takeCalls() == [.stopAdvertising])
    }

    @Test("Advertising that is stopped before it starts is not reported; a failed one is off")
    func advertisingStoppedBeforeItsStartIsNotReported() {
        let fixture = PeripheralFixture()
        let payload = AdvertisementPayload(localName: nil, services: [])
        fixture.manager.startAdvertising(nil)
        fixture.manager.stopAdvertising()
        fixture.answer(.startAdvertising(payload), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold().isEmpty)
        fixture.manager.startAdvertising(nil)
        fixture.answer(.startAdvertising(payload), Result<Void, BackendError>.failure(.core(.unknown)))
        #expect(fixture.takeTold() == ["advertising false"])
    }

    // MARK: Services

    @Test("The host gets a service as it is declared")
    func hostGetsAServiceAsItIsDeclared() throws {
        let fixture = PeripheralFixture()
        let name = CBMutableCharacteristic(
            type: CBUUID(string: "2A00"),
            properties: .read,
            value: Data("Linux".utf8),
            permissions: .readEncryptionRequired
        )
        let secret = CBMutableCharacteristic(
            type: CBUUID(string: "2A38"),
            properties: [.read, .notify, .notifyEncryptionRequired],
            value: nil,
            permissions: .readable
        )
        secret.descriptors = [CBMutableDescriptor(type: CBUUID(string: "2901"), value: "Secret")]
        fixture.service.characteristics = [name, secret]
        fixture.manager.add(fixture.service)
        let expected = ServiceDefinition(
            uuid: "180D",
            characteristics: [
                CharacteristicDefinition(
                    uuid: "2A00",
                    properties: .read,
                    permissions: [.read, .readEncrypted],
                    value: .stored(Array("Linux".utf8))
                ),
                CharacteristicDefinition(
                    uuid: "2A38",
                    properties: [.read, .notify],
                    permissions: .read,
                    value: .handled,
                    descriptors: [
                        DescriptorDefinition(
                            uuid: "2902",
                            value: .stored([0, 0]),
                            permissions: [.read, .write, .writeEncrypted]
                        ),
                        DescriptorDefinition(uuid: "2901", value: .stored(Array("Secret".utf8))),
                    ]
                ),
            ]
        )
        #expect(fixture.takeCalls() == [.publish(expected)])
    }

    @Test func includedServiceMustBePublishedFirst() throws {
        let fixture = PeripheralFixture()
        let battery = CBMutableService(type: CBUUID(string: "180F"), primary: false)
        fixture.service.includedServices = [battery]
        fixture.manager.add(fixture.service)
        #expect(fixture.takeCalls().isEmpty)
        #expect(fixture.takeTold() == ["added 180D"])
        #expect((fixture.recorder.errors.first as? CBError)?.code == .invalidParameters)
        try fixture.publish(battery, at: 0x0030)
        fixture.manager.add(fixture.service)
        guard case .publish(let definition) = fixture.takeCalls().last else {
            Issue.record("not published")
            return
        }
        #expect(definition.includes == [.handle(0x0030)])
    }

    @Test("A published service cannot be changed or added again until it is removed")
    func publishedServiceCannotBeChangedUntilItIsRemoved() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        fixture.service.characteristics = []
        fixture.service.includedServices = []
        fixture.characteristic.properties = .read
        fixture.characteristic.permissions = []
        fixture.characteristic.descriptors = []
        #expect(fixture.service.characteristics?.count == 1)
        #expect(fixture.service.includedServices == nil)
        #expect(fixture.characteristic.properties == [.read, .write, .notify])
        #expect(fixture.characteristic.permissions == [.readable, .writeable])
        #expect(fixture.characteristic.descriptors == nil)
        // An app that answers reads itself may store the value here.
        fixture.characteristic.value = Data([1])
        #expect(fixture.characteristic.value == Data([1]))
        fixture.manager.add(fixture.service)
        #expect(fixture.takeCalls().isEmpty)
        #expect((fixture.recorder.errors.first as? CBError)?.code == .invalidParameters)
        fixture.manager.remove(fixture.service)
        #expect(fixture.takeCalls() == [.remove(0x0010)])
        // The host could not answer reads with that value.
        try fixture.publish()
        #expect(fixture.characteristic.value == Data([1]))
        fixture.manager.remove(fixture.service)
        fixture.service.characteristics = []
        #expect(fixture.service.characteristics == [])
    }

    @Test("A value that the host answers reads with cannot change once it is published")
    func publishedCachedValueCannotChange() throws {
        let fixture = PeripheralFixture()
        let name = CBMutableCharacteristic(
            type: CBUUID(string: "2A00"),
            properties: .read,
            value: Data([1]),
            permissions: .readable
        )
        fixture.service.characteristics = [name]
        try fixture.publish()
        name.value = Data([2])
        #expect(name.value == Data([1]))
    }

    @Test("A service that the host refuses can be changed again")
    func refusedServiceCanBeChangedAgain() {
        let fixture = PeripheralFixture()
        fixture.manager.add(fixture.service)
        guard case .publish(let definition) = fixture.takeCalls().last else {
            Issue.record("not published")
            return
        }
        fixture.answer(.publish(definition), Result<PublishedService, BackendError>.failure(.core(.outOfSpace)))
        #expect(fixture.takeTold() == ["added 180D"])
        #expect((fixture.recorder.errors.first as? CBError)?.code == .outOfSpace)
        fixture.characteristic.permissions = .readable
        #expect(fixture.characteristic.permissions == .readable)
    }

    @Test("All services are removed from the host one by one")
    func allServicesAreRemovedOneByOne() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        try fixture.publish(CBMutableService(type: CBUUID(string: "180F"), primary: true), at: 0x0030)
        fixture.manager.removeAllServices()
        #expect(fixture.takeCalls() == [.remove(0x0030), .remove(0x0010)])
        fixture.manager.removeAllServices()
        #expect(fixture.takeCalls().isEmpty)
    }

    @Test("A cached value that could be written or notified ends the process with Apple's message")
    func cachedValueThatCouldBeWrittenEndsTheProcess() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let fixture = PeripheralFixture()
            fixture.service.characteristics = [
                CBMutableCharacteristic(
                    type: CBUUID(string: "2A00"),
                    properties: [.read, .write],
                    value: Data([1]),
                    permissions: [.readable]
                )
            ]
            fixture.manager.add(fixture.service)
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("Characteristics with cached values must be read-only"))
    }

    static let cached: [(CBCharacteristicProperties, CBAttributePermissions, Bool)] = [
        (.read, .readable, false), ([.read, .extendedProperties], .readEncryptionRequired, false),
        ([.read, .write], .readable, true), ([.read, .writeWithoutResponse], .readable, true),
        ([.read, .notify], .readable, true), ([.read, .indicate], .readable, true),
        (.read, [.readable, .writeable], true), (.read, .writeEncryptionRequired, true),
    ]

    @Test("Only a characteristic that can just be read may have a cached value", arguments: cached)
    func onlyAReadOnlyCharacteristicMayHaveACachedValue(
        properties: CBCharacteristicProperties,
        permissions: CBAttributePermissions,
        isMisuse: Bool
    ) {
        let service = CBMutableService(type: CBUUID(string: "180D"), primary: true)
        let uuid = CBUUID(string: "2A00")
        service.characteristics = [
            CBMutableCharacteristic(type: uuid, properties: properties, value: Data(), permissions: permissions)
        ]
        #expect(service.hasCachedValueThatChanges == isMisuse)
        service.characteristics = [
            CBMutableCharacteristic(type: uuid, properties: properties, value: nil, permissions: permissions)
        ]
        #expect(!service.hasCachedValueThatChanges)
    }

    @Test("Apps can create only user descriptions and presentation formats, with the right types")
    func appsCanCreateOnlyDescriptionsAndFormats() async {
        let format = Data([0x04, 0x00, 0xAD, 0x27, 0x01, 0x00, 0x00])
        #expect(
            CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicFormatString), value: format).octets
                == Array(format)
        )
        #expect(CBMutableDescriptor(type: CBUUID(string: "2901"), value: "Level").value as? String == "Level")
        await #expect(processExitsWith: .failure) {
            _ = CBMutableDescriptor(type: CBUUID(string: "2902"), value: NSNumber(value: 1))
        }
        await #expect(processExitsWith: .failure) {
            _ = CBMutableDescriptor(type: CBUUID(string: "2901"), value: nil)
        }
        await #expect(processExitsWith: .failure) {
            _ = CBMutableDescriptor(type: CBUUID(string: "2904"), value: "no data")
        }
    }

    // MARK: Requests

    private func access(_ kind: AccessRequest.Kind, _ identifier: UInt64 = 7) -> AccessRequest {
        AccessRequest(identifier: identifier, kind: kind)
    }

    @Test("A read has an offset, is answered with the value that is set, and only once")
    func readIsAnsweredOnceWithTheValueThatIsSet() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        fixture.deliver(.access(fixture.remote, access(.read(PeripheralFixture.valueHandle, offset: 5))))
        #expect(fixture.takeTold() == ["read 5"])
        let request = fixture.recorder.requests[0]
        #expect(request.characteristic === fixture.characteristic)
        #expect(request.central.identifier == fixture.remote.identifier)
        #expect(request.central.maximumUpdateValueLength == 182)
        #expect(request.value == nil)
        request.value = Data([1, 2])
        fixture.manager.respond(to: request, withResult: .success)
        fixture.manager.respond(to: request, withResult: .unlikelyError)
        #expect(fixture.takeCalls() == [.answer(7, fixture.remote.link, .success([1, 2]))])
    }

    @Test("An error code is sent as it is, including application errors", arguments: [0x07, 0x80, 0xFF])
    func errorCodeIsSentAsItIs(code: Int) throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        fixture.deliver(.access(fixture.remote, access(.read(PeripheralFixture.valueHandle, offset: 0))))
        fixture.manager.respond(to: fixture.recorder.requests[0], withResult: CBATTError.Code(rawValue: code)!)
        let expected = ATTErrorCode(rawValue: UInt8(code))
        #expect(fixture.takeCalls() == [.answer(7, fixture.remote.link, .failure(expected))])
    }

    @Test("An answer that is not a byte becomes an unlikely error", arguments: [-1, 0x100, 0x180])
    func answerThatIsNoErrorCode(code: Int) throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        fixture.deliver(.access(fixture.remote, access(.read(PeripheralFixture.valueHandle, offset: 0))))
        fixture.manager.respond(to: fixture.recorder.requests[0], withResult: CBATTError.Code(rawValue: code)!)
        #expect(fixture.takeCalls() == [.answer(7, fixture.remote.link, .failure(.unlikelyError))])
    }

    @Test("Prepared writes arrive together, contiguous parts joined, and get one answer")
    func preparedWritesArriveTogetherAndGetOneAnswer() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let handle = PeripheralFixture.valueHandle
        fixture.deliver(
            .access(
                fixture.remote,
                access(
                    .execute([
                        AttributeWrite(handle: handle, offset: 0, value: [1, 2]),
                        AttributeWrite(handle: handle, offset: 2, value: [3]),
                        AttributeWrite(handle: handle, offset: 1, value: [9]),
                    ])
                )
            )
        )
        #expect(fixture.takeTold() == ["write 0:[1, 2, 3] 1:[9]"])
        for request in fixture.recorder.requests { fixture.manager.respond(to: request, withResult: .success) }
        #expect(fixture.takeCalls() == [.answer(7, fixture.remote.link, .success([]))])
    }

    @Test("A write command arrives as a write and is not answered")
    func writeCommandIsNotAnswered() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let write = AttributeWrite(handle: PeripheralFixture.valueHandle, offset: 0, value: [5])
        fixture.deliver(.access(fixture.remote, access(.write(write, isCommand: true))))
        #expect(fixture.takeTold() == ["write 0:[5]"])
        fixture.manager.respond(to: fixture.recorder.requests[0], withResult: .success)
        #expect(fixture.takeCalls().isEmpty)
    }

    /// A delegate with the required method only.
    private final class StateOnly: NSObject, CBPeripheralManagerDelegate {
        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {}
    }

    @Test("An access for which the delegate has no method is refused")
    func accessWithoutADelegateMethodIsRefused() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let link = fixture.remote.link
        let write = AttributeWrite(handle: PeripheralFixture.valueHandle, offset: 0, value: [5])
        let delegate = StateOnly()
        fixture.manager.delegate = delegate
        fixture.deliver(.access(fixture.remote, access(.read(PeripheralFixture.valueHandle, offset: 0), 1)))
        fixture.deliver(.access(fixture.remote, access(.write(write, isCommand: false), 2)))
        fixture.manager.delegate = nil
        fixture.deliver(.access(fixture.remote, access(.read(PeripheralFixture.valueHandle, offset: 0), 3)))
        fixture.deliver(.access(fixture.remote, access(.read(0x0099, offset: 0), 4)))
        fixture.deliver(.access(fixture.remote, access(.write(write, isCommand: true), 5)))
        #expect(
            fixture.takeCalls() == [
                .answer(1, link, .failure(.requestNotSupported)),
                .answer(2, link, .failure(.requestNotSupported)),
                .answer(3, link, .failure(.unlikelyError)), .answer(4, link, .failure(.unlikelyError)),
            ]
        )
    }

    // MARK: Subscriptions

    @Test("Subscribing and unsubscribing are reported once each, after the list has changed")
    func subscribingIsReportedOnceAfterTheListHasChanged() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        #expect(fixture.characteristic.subscribedCentrals == [])
        fixture.subscribe()
        fixture.subscribe()
        let central = fixture.recorder.centrals[0]
        #expect(fixture.characteristic.subscribedCentrals == [central])
        fixture.deliver(
            .mtuChanged(RemoteCentral(link: fixture.remote.link, identifier: fixture.remote.identifier, mtu: 23))
        )
        #expect(central.maximumUpdateValueLength == 20)
        #expect(CBCentral(identifier: UUID(), mtu: 517).maximumUpdateValueLength == 512)
        fixture.deliver(.configured(fixture.remote, PeripheralFixture.valueHandle, []))
        fixture.subscribe()
        fixture.deliver(.disconnected(fixture.remote))
        #expect(fixture.takeTold() == ["subscribed 1", "unsubscribed 0", "subscribed 1", "unsubscribed 0"])
        #expect(fixture.recorder.centrals[1] === central)
    }

    @Test("A value is sent to subscribers only, to the named ones or to all")
    func valueIsSentToSubscribersOnly() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let handle = PeripheralFixture.valueHandle
        #expect(fixture.manager.updateValue(Data([1]), for: fixture.characteristic, onSubscribedCentrals: nil))
        #expect(fixture.takeCalls().isEmpty)
        fixture.subscribe()
        let second = RemoteCentral(link: .placeholder(2), identifier: UUID(), mtu: 23)
        fixture.subscribe(second)
        let stranger = CBCentral(identifier: UUID(), mtu: 23)
        fixture.manager.updateValue(Data([2]), for: fixture.characteristic, onSubscribedCentrals: nil)
        fixture.manager.updateValue(
            Data([3]),
            for: fixture.characteristic,
            onSubscribedCentrals: [stranger, fixture.recorder.centrals[1]]
        )
        fixture.manager.updateValue(Data([4]), for: fixture.characteristic, onSubscribedCentrals: [])
        #expect(
            fixture.takeCalls() == [
                .update([2], handle, [fixture.remote.link, second.link]),
                .update([3], handle, [second.link]),
            ]
        )
        let other = CBMutableCharacteristic(
            type: CBUUID(string: "2A37"),
            properties: .notify,
            value: nil,
            permissions: []
        )
        #expect(!fixture.manager.updateValue(Data(), for: other, onSubscribedCentrals: nil))
    }

    @Test("A full queue refuses values, then reports room once; no value is lost or out of order")
    func fullQueueRefusesValuesAndReportsRoomOnce() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        fixture.subscribe()
        _ = fixture.takeTold()
        var sent: [UInt8] = []
        while fixture.manager.updateValue(
            Data([UInt8(sent.count)]),
            for: fixture.characteristic,
            onSubscribedCentrals: nil
        ) {
            sent.append(UInt8(sent.count))
        }
        #expect(sent.count == CBPeripheralManager.updateLimit)
        let calls = fixture.takeCalls()
        #expect(calls == sent.map { .update([$0], PeripheralFixture.valueHandle, [fixture.remote.link]) })
        for call in calls { fixture.answer(call, Result<Void, BackendError>.success(())) }
        #expect(fixture.takeTold() == ["ready"])
    }

    // MARK: Connections and power

    @Test("Latency and channels are requested from the host")
    func latencyAndChannelsAreRequestedFromTheHost() throws {
        let fixture = PeripheralFixture()
        let central = CBCentral(identifier: UUID(), mtu: 23)
        fixture.manager.setDesiredConnectionLatency(.high, for: central)
        fixture.manager.publishL2CAPChannel(withEncryption: true)
        fixture.manager.unpublishL2CAPChannel(0x0080)
        #expect(
            fixture.takeCalls() == [
                .latency(.high, central.identifier), .publishChannel(true), .unpublishChannel(0x0080),
            ]
        )
        fixture.answer(.publishChannel(true), Result<CBL2CAPPSM, BackendError>.success(0x0081))
        fixture.answer(.unpublishChannel(0x0080), Result<Void, BackendError>.failure(.core(.invalidParameters)))
        let streams = ChannelStreams(input: InputStream(data: Data()), output: OutputStream.toMemory())
        fixture.deliver(.channelOpened(fixture.remote, 0x0081, .success(streams)))
        #expect(fixture.takeTold() == ["published 129", "unpublished 128", "channel 129"])
    }

    @Test("Switched off: advertising and subscriptions end; below that services as well")
    func switchingOffEndsAdvertising() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        fixture.subscribe()
        fixture.manager.startAdvertising(nil)
        _ = fixture.takeCalls()
        fixture.deliver(.stateChanged(.poweredOff))
        #expect(!fixture.manager.isAdvertising)
        #expect(fixture.characteristic.subscribedCentrals == [])
        #expect(fixture.takeCalls() == [.stopAdvertising, .unpublishAllChannels])
        fixture.deliver(.stateChanged(.poweredOn))
        fixture.deliver(.stateChanged(.resetting))
        #expect(fixture.takeCalls() == [.unpublishAllChannels, .remove(0x0010)])
        fixture.deliver(.stateChanged(.poweredOn))
        try fixture.publish()
        #expect(fixture.service.characteristics?.count == 1)
    }

    @Test("The host ends with the manager")
    func hostEndsWithTheManager() {
        let backend = ScriptedPeripheralBackend()
        do { _ = CBPeripheralManager(delegate: nil, queue: nil, backend: backend) }
        #expect(backend.takeCalls() == [.stop])
    }
}
