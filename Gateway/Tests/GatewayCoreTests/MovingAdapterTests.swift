import BLE
import ESPHomeMessages
import ESPHomeProtocol
import Foundation
import GatewayTestSupport
import NIOCore
import Testing

@testable import GatewayCore

/// Adapters that disappear and come back.
@Suite(.timeLimit(.minutes(2)))
struct MovingAdapterTests {
    private static let first: UInt64 = 0x001A_7DDA_7101
    private static let second: UInt64 = 0x001A_7DDA_7102

    /// Runs `body` with a gateway on adapters of a kernel, and a device.
    private func withKernel(
        _ adapters: [AdapterSpecification],
        stateDirectory: String? = nil,
        configure: (inout GatewayConfiguration) -> Void = { _ in },
        _ body: (FakeKernel, Gateway, Device, APIClient) async throws -> Void
    ) async throws {
        let kernel = FakeKernel()
        kernel.plug(Self.first, as: 0)
        kernel.plug(Self.second, as: 1)
        let device = try await Device(1, air: kernel.air)
        var configuration = GatewayConfiguration(name: "test")
        configuration.host = "127.0.0.1"
        configuration.port = 0
        configuration.adapters = adapters
        configuration.stateDirectory = stateDirectory
        configure(&configuration)
        let gateway = Gateway(configuration: configuration, adapters: [], system: kernel)
        let run = Task { try await gateway.run() }
        do {
            await gateway.waitUntilServing()
            let port = try #require(await gateway.status.port)
            let client = try await APIClient(port: port)
            try await client.send(.subscribeAdvertisementsRequest, [8, 1])
            try await client.send(.subscribeConnectionsFreeRequest)
            try await body(kernel, gateway, device, client)
        } catch {
            run.cancel()
            try? await run.value
            throw error
        }
        run.cancel()
        try await run.value
        await device.adapter.close()
    }

    private static func address(_ value: UInt64) -> AdapterSpecification {
        .address(DeviceAddress(value, isRandom: false), channel: .user)
    }

    private func wait(for gateway: Gateway, where condition: (GatewayStatus) -> Bool) async -> GatewayStatus {
        while true {
            let status = await gateway.status
            if condition(status) { return status }
            await Task.yield()
        }
    }

    /// Waits for an advertisement of the device.
    private func receiveAdvertisement(of device: Device, by client: APIClient) async throws {
        _ = try await client.next(
            .rawAdvertisementsResponse,
            as: ESPHomeBluetoothLERawAdvertisementsResponse.self
        ) { batch in
            batch.advertisements.contains { $0.address == device.address.value }
        }
    }

    @Test func adapterNamedByAddressIsFollowedToItsNewNumber() async throws {
        try await withKernel([Self.address(Self.second)]) { kernel, gateway, device, client in
            let status = await wait(for: gateway) { $0.adapters[0].isOpen }
            #expect(status.adapters[0].name == "addr:00:1A:7D:DA:71:02")
            #expect(status.adapters[0].kernelName == "hci1")
            #expect(status.adapters[0].address != nil)
            let address = device.address.value
            try await client.connect(address)

            kernel.unplug(Self.second)
            let end = try await client.connectionResponse { $0.address == address }
            #expect(!end.connected)
            _ = try await client.slots { $0.free == 0 && $0.allocated.isEmpty }
            let gone = await wait(for: gateway) {
                $0.adapters[0].failure?.contains("no adapter has the address") == true
            }
            #expect(gone.adapters[0].failure?.contains("hci0 (00:1A:7D:DA:71:01)") == true)
            #expect(gone.adapters[0].kernelName == nil)
            #expect(gone.connections.isEmpty)

            kernel.plug(Self.second, as: 7)
            let back = await wait(for: gateway) { $0.adapters[0].isOpen }
            #expect(back.adapters[0].kernelName == "hci7")
            #expect(back.adapters[0].failure == nil)
            _ = try await client.slots { $0.free == 20 }
            try await receiveAdvertisement(of: device, by: client)
            try await client.connect(address)
            #expect(try await client.read(address, device.value) == [7])
        }
    }

    @Test func adapterThatChangesItsNumberAtOnceIsFollowed() async throws {
        try await withKernel([Self.address(Self.first)]) { kernel, gateway, device, client in
            for index in [4, 0, 9] {
                kernel.unplug(Self.first)
                kernel.plug(Self.first, as: index)
                _ = await wait(for: gateway) { $0.adapters[0].isOpen && $0.adapters[0].kernelName == "hci\(index)" }
            }
            try await receiveAdvertisement(of: device, by: client)
        }
    }

    @Test func scanOfAnAdapterThatIsBackHasNotFailed() async throws {
        try await withKernel([Self.address(Self.first)]) { kernel, gateway, _, client in
            _ = await wait(for: gateway) { $0.adapters[0].isOpen }
            // Nobody scans.
            try await client.send(.unsubscribeAdvertisementsRequest)
            try await client.send(.pingRequest)
            _ = try await client.next(.pingResponse)
            kernel.unplug(Self.first)
            _ = await wait(for: gateway) { $0.adapters[0].failure?.contains("no adapter has the address") == true }
            kernel.plug(Self.first, as: 0)
            _ = await wait(for: gateway) { $0.adapters[0].isOpen }
            let port = try #require(await gateway.status.port)
            let other = try await APIClient(port: port)
            try await other.send(.subscribeAdvertisementsRequest, [8, 1])
            let report = try await other.next(.scannerStateResponse, as: ESPHomeBluetoothScannerStateResponse.self)
            #expect(report.state == .idle)
        }
    }

    @Test func absenceOfAnAdapterIsAWarningOnce() async throws {
        let (recorder, events) = (LogRecorder(), EventLog())
        // Clients connect when the second adapter is open.
        let adapters = [AdapterSpecification.hci(index: 5, channel: .user), Self.address(Self.first)]
        let configure: (inout GatewayConfiguration) -> Void = { configuration in
            configuration.logger = recorder.logger
            configuration.events = events
        }
        try await withKernel(adapters, configure: configure) { kernel, gateway, _, _ in
            // The gateway tries again after each change.
            while events.count(of: .adapterFailed) < 4 {
                kernel.unplug(Self.second)
                await Task.yield()
                kernel.plug(Self.second, as: 1)
                await Task.yield()
            }
            let failure = try #require(await gateway.status.adapters[0].failure)
            let message = "the adapter cannot be opened: \(failure)"
            #expect(recorder.messages(.warning).count { $0 == message } == 1)
            #expect(recorder.messages(.debug).contains(message))
        }
    }

    @Test func bondOfAnAbsentAdapterIsRemovedWhenTheAdapterIsBack() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("bonds-\(UUID())").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await withKernel([Self.address(Self.first)], stateDirectory: directory) { kernel, gateway, device, client in
            let address = device.address.value
            let status = await wait(for: gateway) { $0.adapters[0].isOpen }
            try await client.connect(address)
            try #require(try await client.pair(address))
            try await client.disconnect(address)
            kernel.unplug(Self.first)
            _ = await wait(for: gateway) { $0.adapters[0].failure?.contains("no adapter has the address") == true }
            #expect(try await client.unpair(address))
            let isBondedAgain = try await client.unpair(address)
            #expect(!isBondedAgain)
            kernel.plug(Self.first, as: 5)
            let back = await wait(for: gateway) { $0.adapters[0].isOpen }
            // The adapter has its saved bonds.
            #expect(back.adapters[0].address == status.adapters[0].address)
            let adapter = try #require(kernel.adapter(Self.first))
            #expect(await adapter.bonds().isEmpty)
        }
    }

    @Test func automaticAdapterIsReplacedByAnotherFreeOne() async throws {
        try await withKernel([.automatic]) { kernel, gateway, device, client in
            _ = await wait(for: gateway) { $0.adapters[0].kernelName == "hci0" }
            kernel.unplug(Self.first)
            _ = await wait(for: gateway) { $0.adapters[0].kernelName == "hci1" }
            try await receiveAdvertisement(of: device, by: client)
            try await client.connect(device.address.value)
        }
    }

    @Test func automaticAdaptersTakeDifferentOnesAndLeaveThoseThatAreNamed() async throws {
        try await withKernel([.automatic, Self.address(Self.first)]) { kernel, gateway, _, _ in
            let status = await wait(for: gateway) { $0.adapters.allSatisfy(\.isOpen) }
            #expect(status.adapters.map(\.kernelName) == ["hci1", "hci0"])
            // The named adapter is left to the other setting when it comes back.
            kernel.unplug(Self.first)
            kernel.unplug(Self.second)
            _ = await wait(for: gateway) { $0.adapters.allSatisfy { !$0.isOpen } }
            kernel.plug(Self.first, as: 3)
            let back = await wait(for: gateway) { $0.adapters[1].isOpen }
            #expect(back.adapters[1].kernelName == "hci3")
            #expect(!back.adapters[0].isOpen)
        }
    }

    @Test func repeatedNameOfAnAdapterHasANumber() async throws {
        let adapters = [AdapterSpecification.automatic, Self.address(Self.first), .automatic, .automatic]
        try await withKernel(adapters) { _, gateway, _, _ in
            let names = await gateway.status.adapters.map(\.name)
            #expect(names == ["auto", "addr:00:1A:7D:DA:71:01", "auto (2)", "auto (3)"])
        }
    }

    @Test func secondAdapterTakesOverScansAndConnections() async throws {
        try await withKernel([Self.address(Self.first), Self.address(Self.second)]) { kernel, gateway, device, client in
            _ = await wait(for: gateway) { $0.adapters.allSatisfy(\.isScanning) }
            for _ in 0..<3 { try await loseAdapter(of: device, kernel, gateway, client) }
        }
    }

    /// Connects to the device, removes the adapter of its connection, connects by the other adapter, and plugs the
    /// first one in again.
    private func loseAdapter(
        of device: Device,
        _ kernel: FakeKernel,
        _ gateway: Gateway,
        _ client: APIClient
    ) async throws {
        let address = device.address.value
        try await client.connect(address)
        let status = await gateway.status
        let used = try #require(status.adapters.firstIndex { $0.connectionCount == 1 })
        let (lost, index) = used == 0 ? (Self.first, 0) : (Self.second, 1)
        kernel.unplug(lost)
        let end = try await client.connectionResponse { $0.address == address }
        #expect(!end.connected)
        // The other adapter still works: the slots are free at once, and so is the device.
        _ = try await client.slots { $0.free == 20 && $0.limit == 20 }
        try await receiveAdvertisement(of: device, by: client)
        try await client.connect(address)
        let after = await gateway.status
        #expect(after.adapters.map(\.connectionCount) == (used == 0 ? [0, 1] : [1, 0]))
        #expect(!after.adapters[used].isOpen)
        try await client.send(.deviceRequest, APIClient.request(address, .disconnect))
        _ = try await client.connectionResponse { $0.address == address && !$0.connected }
        kernel.plug(lost, as: index)
        _ = await wait(for: gateway) { $0.adapters.allSatisfy { $0.isOpen && $0.isScanning } }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct AdapterWatchTests {
    @Test func changeEndsTheWaitBeforeItsTime() async {
        let kernel = FakeKernel()
        let watch = AdapterWatch(kernel)
        let run = Task { await watch.run() }
        let known = await watch.inventory
        let wait = Task { await watch.waitForChange(from: known, atMost: .seconds(3600)) }
        kernel.plug(1, as: 0)
        #expect(await wait.value)
        let last = await watch.inventory
        let isChangedAgain = await watch.waitForChange(from: last, atMost: .zero)
        #expect(!isChangedAgain)
        run.cancel()
        await run.value
    }

    @Test func cancellationEndsTheWaitForTheFirstInventory() async {
        let watch = AdapterWatch(FakeKernel())
        let task = Task { await watch.inventory }
        task.cancel()
        #expect(await task.value == AdapterInventory())
    }
}

struct AdapterChoiceTests {
    typealias Candidate = AdapterChoice.Candidate

    @Test(
        arguments: [
            ([], nil),
            ([Candidate(index: 3, connectionCount: 9)], 3),
            ([Candidate(index: 0, connectionCount: 0), Candidate(index: 1, connectionCount: 0)], 0),
            ([Candidate(index: 0, connectionCount: 1), Candidate(index: 1, connectionCount: 0)], 1),
            // The stronger signal decides, until its adapter has more connections.
            (
                [
                    Candidate(index: 0, connectionCount: 0, rssi: -70),
                    Candidate(index: 1, connectionCount: 1, rssi: -60),
                ], 1
            ),
            (
                [
                    Candidate(index: 0, connectionCount: 0, rssi: -70),
                    Candidate(index: 1, connectionCount: 4, rssi: -60),
                ], 0
            ),
            // An adapter that receives the device comes before one that does not.
            ([Candidate(index: 0, connectionCount: 0), Candidate(index: 1, connectionCount: 9, rssi: -99)], 1),
            // After a failed attempt, another adapter is tried.
            (
                [
                    Candidate(index: 0, connectionCount: 0, rssi: -50, hasFailed: true),
                    Candidate(index: 1, connectionCount: 0, rssi: -90),
                ], 1
            ),
            ([Candidate(index: 0, connectionCount: 0, rssi: -50, hasFailed: true)], 0),
        ] as [([Candidate], Int?)]
    )
    func bestAdapterHasTheStrongestSignalForItsLoad(candidates: [Candidate], expected: Int?) {
        #expect(AdapterChoice.best(of: candidates)?.index == expected)
        #expect(AdapterChoice.best(of: candidates.reversed())?.index == expected)
    }

    @Test func receptionsAreAveragedAndExpire() {
        var table = ReceptionTable()
        let start = NIODeadline.now()
        table.record(1, rssi: -60, at: start, by: 0)
        table.record(1, rssi: -80, at: start, by: 1)
        table.record(1, rssi: -40, at: start + .seconds(1), by: 0)
        #expect(table.rssi(of: 1, by: 0, at: start + .seconds(2)) == -55)
        #expect(table.rssi(of: 1, by: 1, at: start + .seconds(2)) == -80)
        #expect(table.rssi(of: 1, by: 2, at: start) == nil)
        #expect(table.rssi(of: 2, by: 0, at: start) == nil)
        #expect(table.rssi(of: 1, by: 1, at: start + .seconds(30)) == nil)
        table.record(1, rssi: -90, at: start + .seconds(60), by: 0)
        #expect(table.rssi(of: 1, by: 0, at: start + .seconds(60)) == -90)
    }
}
