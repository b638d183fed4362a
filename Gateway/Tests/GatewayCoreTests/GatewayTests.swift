import BLE
import ESPHomeMessages
import ESPHomeProtocol
import GatewayCore
import NIOCore
import ServiceLifecycle
import Synchronization
import Testing

/// A service that ends at once.
private struct EndingService: Service {
    func run() async throws {}
}

struct GatewayTests {
    @Test func defaultPortIsThatOfTheNativeAPI() {
        #expect(GatewayConfiguration().port == 6053)
    }

    @Test func gatewayThatEndsBeforeAnAdapterIsOpenDoesNotServe() async throws {
        let hasServed = Atomic(false)
        var configuration = GatewayConfiguration(name: "test")
        configuration.host = "127.0.0.1"
        configuration.port = 0
        // Port 1 of this machine has no listener.
        configuration.adapters = [.tcp(host: "127.0.0.1", port: 1)]
        configuration.whenServing = { _ in hasServed.store(true, ordering: .relaxed) }
        let gateway = Gateway(configuration: configuration, adapters: [])
        let services = [
            ServiceGroupConfiguration.ServiceConfiguration(
                service: EndingService(),
                successTerminationBehavior: .gracefullyShutdownGroup
            ), .init(service: gateway),
        ]
        try await ServiceGroup(configuration: .init(services: services, logger: configuration.logger)).run()
        let served = hasServed.load(ordering: .relaxed)
        #expect(!served)
    }

    // MARK: Scanning

    @Test func advertisementsHaveTheScanResponse() async throws {
        try await withGateway { world in
            let client = try await world.client()
            try await client.send(.subscribeAdvertisementsRequest, [8, 1])
            let device = world.devices[0]
            while true {
                let batch = try await client.next(
                    .rawAdvertisementsResponse,
                    as: ESPHomeBluetoothLERawAdvertisementsResponse.self
                )
                #expect(batch.advertisements.count <= 16)
                let found = batch.advertisements.first { advertisement in
                    advertisement.address == device.address.value
                        && Array(advertisement.data) == device.advertisingData + device.scanResponseData
                }
                if let found {
                    #expect(found.addressType == 1)
                    break
                }
            }
        }
    }

    @Test func scannerStateIsReportedToSubscribers() async throws {
        try await withGateway { world in
            let client = try await world.client()
            try await client.send(.subscribeAdvertisementsRequest, [8, 1])
            _ = try await client.next(.scannerStateResponse, as: ESPHomeBluetoothScannerStateResponse.self) {
                $0.state == .running && $0.mode == .active && $0.configuredMode == .active
            }
            try await client.send(.scannerSetModeRequest)
            _ = try await client.next(.scannerStateResponse, as: ESPHomeBluetoothScannerStateResponse.self) {
                $0.mode == .passive && $0.configuredMode == .active
            }
        }
    }

    @Test func configuredModeReturnsAfterTheLastSubscriber() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let other = try await world.client()
            for each in [client, other] { try await each.send(.subscribeAdvertisementsRequest, [8, 1]) }
            // A response to a ping shows that the requests before it were handled.
            func unsubscribe(_ client: APIClient) async throws {
                try await client.send(.unsubscribeAdvertisementsRequest)
                try await client.send(.pingRequest)
                _ = try await client.next(.pingResponse)
            }
            try await other.send(.pingRequest)
            _ = try await other.next(.pingResponse)
            try await client.send(.scannerSetModeRequest)
            try await unsubscribe(client)
            #expect(await world.gateway.status.scanMode == .passive)
            try await unsubscribe(other)
            #expect(await world.gateway.status.scanMode == .active)
            // Nobody receives advertisements.
            try await client.send(.scannerSetModeRequest)
            try await unsubscribe(client)
            #expect(await world.gateway.status.scanMode == .active)
        }
    }

    // MARK: Connections

    @Test func valuesAreReadWrittenAndNotified() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let device = world.devices[0]
            let address = device.address.value
            try await client.connect(address)
            #expect(try await client.read(address, device.value) == [7])
            try await client.write(address, device.value, [1, 2, 3], withResponse: true)
            _ = try await client.next(.writeResponse, as: ESPHomeBluetoothGATTWriteResponse.self)
            try await client.write(address, device.value, [4], withResponse: false)
            #expect(try await client.read(address, device.value) == [4])

            try await client.notify(address, device.notified)
            _ = try await client.next(.notifyResponse, as: ESPHomeBluetoothGATTNotifyResponse.self)
            for number in UInt8(0)..<100 { try await device.notify([number]) }
            for number in UInt8(0)..<100 {
                let value = try await client.next(
                    .notifyDataResponse,
                    as: ESPHomeBluetoothGATTNotifyDataResponse.self
                )
                #expect(Array(value.data) == [number])
                #expect(value.handle == UInt32(device.notified))
            }
        }
    }

    @Test func servicesAreSentWithValueHandles() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let device = world.devices[0]
            try await client.connect(device.address.value)
            var request = ESPHomeBluetoothGATTGetServicesRequest()
            request.address = device.address.value
            try await client.send(.getServicesRequest, request)
            let response = try await client.next(
                .getServicesResponse,
                as: ESPHomeBluetoothGATTGetServicesResponse.self
            ) { $0.services[0].uuid == [0x9F3D_0001_5C3A_4F8E, 0x9A52_0D4A_1E6C_7B11] }
            let characteristics = response.services[0].characteristics
            #expect(characteristics.map(\.handle) == [UInt32(device.value), UInt32(device.notified)])
            #expect(characteristics[0].shortUuid == 0x2A6E)
            #expect(characteristics[0].uuid.isEmpty)
            #expect(characteristics[1].descriptors.map(\.shortUuid) == [0x2902])
            _ = try await client.next(.getServicesDoneResponse)
        }
    }

    @Test func refusedOperationsHaveTheAttributeError() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let address = world.devices[0].address.value
            try await client.connect(address)
            try await client.sendRead(address, 0xFFFF)
            let error = try await client.next(.errorResponse, as: ESPHomeBluetoothGATTErrorResponse.self)
            #expect(error.error == 1)
            #expect(error.handle == 0xFFFF)
            try await client.sendRead(world.devices[1].address.value, 3)
            let other = try await client.next(.errorResponse, as: ESPHomeBluetoothGATTErrorResponse.self)
            #expect(other.error == -1)
        }
    }

    @Test func deviceOfAnotherClientIsRefused() async throws {
        try await withGateway { world in
            let first = try await world.client()
            let second = try await world.client()
            let address = world.devices[0].address.value
            try await first.connect(address)
            let response = try await second.requestConnection(address)
            #expect(!response.connected)
            #expect(response.error == 145)
            #expect(try await first.read(address, world.devices[0].value) == [7])
        }
    }

    @Test func slotsAreReportedAndFreedWhenTheClientGoes() async throws {
        try await withGateway(connectionLimit: 1) { world in
            let observer = try await world.client()
            try await observer.send(.subscribeConnectionsFreeRequest)
            _ = try await observer.slots { $0.free == 1 && $0.limit == 1 && $0.allocated.isEmpty }
            let client = try await world.client()
            let address = world.devices[0].address.value
            try await client.connect(address)
            _ = try await observer.slots { $0.free == 0 && $0.allocated == [address] }
            let refused = try await observer.requestConnection(world.devices[1].address.value)
            #expect(refused.error == 17)
            try await client.close()
            _ = try await observer.slots { $0.free == 1 }
            try await observer.connect(world.devices[1].address.value)
        }
    }

    @Test func disconnectCancelsAnAttempt() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let absent: UInt64 = 0xC0DE_0000_FFFF
            try await client.send(.deviceRequest, APIClient.request(absent, .connectV3WithoutCache))
            try await client.send(.deviceRequest, APIClient.request(absent, .disconnect))
            let response = try await client.next(
                .deviceConnectionResponse,
                as: ESPHomeBluetoothDeviceConnectionResponse.self
            )
            #expect(response.address == absent)
            #expect(!response.connected)
            #expect(response.error == 0x100)
        }
    }

    @Test func endOfTheLinkIsReportedWithItsReason() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let device = world.devices[0]
            try await client.connect(device.address.value)
            await device.adapter.close()
            let response = try await client.next(
                .deviceConnectionResponse,
                as: ESPHomeBluetoothDeviceConnectionResponse.self
            )
            #expect(!response.connected)
            #expect(response.error != 0)
        }
    }

    @Test func deviceIsConnectedAgainDirectlyAfterItsDisconnection() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let address = world.devices[0].address.value
            for _ in 0..<5 {
                try await client.connect(address)
                try await client.send(.deviceRequest, APIClient.request(address, .disconnect))
                _ = try await client.connectionResponse { !$0.connected }
            }
        }
    }

    /// A client takes the end of the connection as the answer to its request, so a later connection would belong to
    /// nobody.
    @Test func endAnswersTheRequestToConnectADeviceThatDisconnects() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let observer = try await world.client()
            let address = world.devices[0].address.value
            try await observer.send(.subscribeConnectionsFreeRequest)
            try await client.connect(address)
            _ = try await observer.slots { $0.free == 19 }
            try await client.send(
                .deviceRequest,
                together: [APIClient.request(address, .disconnect), APIClient.request(address, .connectV3WithCache)]
            )
            _ = try await client.connectionResponse { !$0.connected }
            _ = try await observer.slots { $0.free == 20 }
            try await observer.connect(address)
            #expect(await world.gateway.status.connections.count == 1)
        }
    }

    @Test func clientThatComesBackConnectsItsDeviceAgain() async throws {
        try await withGateway { world in
            let address = world.devices[0].address.value
            for _ in 0..<10 {
                let client = try await world.client()
                try await client.connect(address)
                let next = try await world.client()
                try await client.close()
                // The gateway may not have noticed yet that the client has gone.
                while try await !next.requestConnection(address).connected {}
                #expect(try await next.read(address, world.devices[0].value) == [7])
                try await next.send(.deviceRequest, APIClient.request(address, .disconnect))
                _ = try await next.connectionResponse { !$0.connected }
                try await next.close()
            }
        }
    }

    @Test func deviceInUseIsNotUnpairedByOtherClients() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let other = try await world.client()
            let address = world.devices[0].address.value
            try await client.connect(address)
            try await other.send(.deviceRequest, APIClient.request(address, .unpair))
            let unpairing = try await other.next(
                .unpairingResponse,
                as: ESPHomeBluetoothDeviceUnpairingResponse.self
            )
            #expect(!unpairing.success)
            #expect(unpairing.error == 145)
            try await other.send(.deviceRequest, APIClient.request(address, .clearCache))
            let clearing = try await other.next(
                .clearCacheResponse,
                as: ESPHomeBluetoothDeviceClearCacheResponse.self
            )
            #expect(!clearing.success)
            #expect(try await client.read(address, world.devices[0].value) == [7])
        }
    }

    @Test func unpairingTellsWhetherThereWasABond() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let address = world.devices[0].address.value
            try await client.send(.deviceRequest, APIClient.request(address, .unpair))
            let response = try await client.next(
                .unpairingResponse,
                as: ESPHomeBluetoothDeviceUnpairingResponse.self
            )
            #expect(!response.success)
            #expect(response.error == 6)
        }
    }

    // MARK: Clients

    @Test(arguments: [[1, 0, 0], [0, 1, 73, 0xFF], [0x47, 0x45, 0x54], [0, 0xFF, 0xFF, 0x7F, 1]] as [[UInt8]])
    func clientThatBreaksTheProtocolIsDisconnectedAlone(bytes: [UInt8]) async throws {
        try await withGateway { world in
            let good = try await world.client()
            let bad = try await APIClient(port: world.port, greets: false)
            try await bad.send(bytes: ByteBuffer(bytes: bytes))
            _ = await bad.closed()
            try await good.send(.pingRequest)
            _ = try await good.next(.pingResponse)
            #expect(await world.gateway.status.closedClientCounts.values.reduce(0, +) == 1)
        }
    }

    @Test func clientsBeyondTheLimitAreRefused() async throws {
        try await withGateway(clientLimit: 1) { world in
            let client = try await world.client()
            let other = try await APIClient(port: world.port, greets: false)
            try await other.send(.helloRequest)
            #expect(await other.closed().isEmpty)
            try await client.send(.pingRequest)
            _ = try await client.next(.pingResponse)
            #expect(await world.gateway.status.closedClientCounts == ["too_many_clients": 1])
        }
    }

    @Test func clientsAreAskedToDisconnectWhenTheGatewayStops() async throws {
        let client = try await withGateway { world in
            let client = try await world.client()
            try await client.connect(world.devices[0].address.value)
            return client
        }
        #expect(await client.closed().contains(.disconnectRequest))
    }

    // MARK: Adapters

    @Test func slotsAreFreeOnlyWhileAnAdapterCanBeUsed() async throws {
        try await withGateway { world in
            let client = try await world.client()
            try await client.send(.subscribeConnectionsFreeRequest)
            _ = try await client.slots { $0.free == 20 }
            await world.adapter.close()
            _ = try await client.slots { $0.free == 0 && $0.limit == 20 }
            let refused = try await client.requestConnection(world.devices[0].address.value)
            #expect(refused.error == 17)
        }
    }

    @Test func adapterThatCannotBeOpenedIsReported() async throws {
        try await withGateway(otherAdapters: [.unix(path: "/nowhere/controller")]) { world in
            let client = try await world.client()
            try await client.connect(world.devices[0].address.value)
            while await world.gateway.status.adapters[1].failure?.contains("/nowhere") != true { await Task.yield() }
            let status = await world.gateway.status
            #expect(status.adapters.map(\.isOpen) == [true, false])
            #expect(status.connections.map(\.isConnected) == [true])
        }
    }

    @Test func connectionsAreSharedByAdapters() async throws {
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            while await world.gateway.status.adapters.contains(where: { !$0.isOpen }) { await Task.yield() }
            for device in world.devices { try await client.connect(device.address.value) }
            #expect(await world.gateway.status.adapters.map(\.connectionCount) == [1, 1])
        }
    }
}
