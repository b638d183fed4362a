import BLE
import Testing

/// Accepts each pairing.
private struct Consent: PairingDelegate {
    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        switch inquiry.question {
        case .consent, .showPasskey, .compare: .accept
        case .enterPasskey: .refuse
        }
    }
}

/// A lamp whose brightness is read, written and notified.
private actor Lamp {
    static let service: BluetoothUUID = "9F3D0001-5C3A-4F8E-9A52-0D4A1E6C7B11"
    static let brightness: BluetoothUUID = "9F3D0002-5C3A-4F8E-9A52-0D4A1E6C7B11"
    static let maximum: UInt8 = 100

    private var value: UInt8 = 0
    private let peripheral: Peripheral
    private var handle: AttributeHandle?

    init(_ peripheral: Peripheral) {
        self.peripheral = peripheral
    }

    func start() async throws -> AdvertisingSet {
        let brightness = CharacteristicDefinition(
            uuid: Lamp.brightness,
            properties: [.read, .write, .notify],
            permissions: [.read, .writeEncrypted],
            value: .handled
        )
        let services = try await peripheral.publish(
            [ServiceDefinition(uuid: Lamp.service, characteristics: [brightness])]
        ) { [weak self] client, access in
            guard let self else { throw ATTErrorCode.unlikelyError }
            return try await handle(access, of: client)
        }
        handle = services[0].characteristics[0].valueHandle
        return try await peripheral.startAdvertising(
            AdvertisementConfiguration(
                interval: .milliseconds(20),
                advertisingData: AdvertisingData([.serviceUUIDs([Lamp.service], isComplete: true)])
            )
        )
    }

    private func handle(_ access: AccessRequest.Kind, of client: ClientID) async throws -> [UInt8] {
        switch access {
        case .read(_, let offset): return Array([value].dropFirst(offset))
        case .execute: throw ATTErrorCode.requestNotSupported
        case .write(let write, _):
            guard write.value.count == 1 else { throw ATTErrorCode.invalidAttributeValueLength }
            guard write.value[0] <= Lamp.maximum else { throw ATTErrorCode.outOfRange }
            value = write.value[0]
            return []
        }
    }

    func notify() async throws {
        guard let handle else { return }
        try await peripheral.notify([value], of: handle)
    }
}

@Suite("A program that imports only BLE")
struct ImportTests {
    @Test("Each type that the public declarations mention has a name in the program")
    func typesHaveNames() {
        let identifiers = Set(exportedTypes.map { ObjectIdentifier($0) })
        // A client is identified by its link, so two names have one type.
        #expect(identifiers.count == exportedTypes.count - 1)
    }

    @Test("A central finds, reads, writes and subscribes to a peripheral's value, and gets its errors")
    func centralUsesPeripheral() async throws {
        var configuration = Adapter.Configuration()
        configuration.deviceName = "lamp"
        configuration.logger = Logger(label: "lamp")
        configuration.pairingDelegate = Consent()
        var policy = SecurityPolicy()
        policy.justWorks = .always
        configuration.security = policy
        let air = AdapterSpecification.virtual(name: "import of BLE")
        let server = try await Adapter.open(air, configuration: configuration)
        let lamp = Lamp(server.peripheral)
        let advertising = try await lamp.start()

        let phone = try await Adapter.open(air)
        var found: Advertisement?
        for try await advertisement in phone.central.scan(ScanOptions(serviceUUIDs: [Lamp.service])) {
            found = advertisement
            break
        }
        let address: DeviceAddress = try #require(found?.address)
        let parameters = ConnectionParameters(interval: .milliseconds(10)...(.milliseconds(20)))
        let peer: RemotePeripheral = try await phone.central.connect(to: address, parameters: parameters)
        let brightness: RemoteCharacteristic = try await peer.characteristic(Lamp.brightness, in: Lamp.service)
        #expect(try await peer.read(brightness) == [0])

        let strength: KeyStrength = try await peer.pair()
        #expect(strength.isSecureConnections)
        try await peer.write([7], to: brightness)
        #expect(try await peer.read(brightness) == [7])
        do throws(BLEError) {
            try await peer.write([101], to: brightness)
            Issue.record("the lamp accepts any brightness")
        } catch {
            guard case .attribute(ATTErrorCode.outOfRange, brightness.valueHandle) = error else { throw error }
        }
        do throws(BLEError) {
            _ = try await peer.characteristic("2A19", in: "180F")
            Issue.record("the lamp has a battery")
        } catch {
            guard case .notFound(MissingAttribute.service("180F"), peer: address) = error else { throw error }
        }

        let values = try await peer.subscribe(to: brightness)
        try await lamp.notify()
        for try await value in values {
            #expect(value.value == [7])
            break
        }
        await values.cancel()

        let link: LinkInformation = try await peer.linkInformation
        #expect(link.parameters.interval <= .milliseconds(20))
        await peer.disconnect()
        let reason: DisconnectionReason = try await peer.disconnection()
        #expect(reason == .controller(HCIErrorCode.connectionTerminatedByLocalHost))
        await advertising.stop()
        await phone.close()
        await server.close()
    }

    @Test("Bytes pass over a channel in both directions")
    func channelCarriesBytes() async throws {
        let air = AdapterSpecification.virtual(name: "channel of BLE")
        let server = try await Adapter.open(air)
        let phone = try await Adapter.open(air)
        let listener: ChannelListener = try await server.peripheral.publishChannel(
            configuration: L2CAPChannel.Configuration(mtu: 1000),
            security: ChannelSecurity()
        )
        let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
        let peer = try await phone.central.connect(to: server.information.identityAddress)
        let near: L2CAPChannel = try await peer.openChannel(psm: listener.psm)
        var channels = listener.makeAsyncIterator()
        let far = try #require(await channels.next())
        try await near.write([1, 2, 3])
        var received = far.makeAsyncIterator()
        #expect(try await received.next() == [1, 2, 3])
        await far.close()
        let end: ChannelEnd? = await near.ending()
        #expect(end == .byPeer)
        await advertising.stop()
        await phone.close()
        await server.close()
    }
}
