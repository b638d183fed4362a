import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothHost
import BluetoothTypes
import CoreBluetooth
import Testing

@testable import BLE
@testable import BLEExamples

@Suite("Walkthrough")
struct WalkthroughTests {
    static let outcomes: [WalkthroughCentral.Step: String] = [
        .readIncluded: "Data = 1",
        .read: "Data = character 1",
        .write: "done",
        .writeWithoutResponse: "Data = test",
        .writeReadOnly: "Error writing value: Writing is not permitted.",
        .writeLong: "done",
        .readLong: "300 bytes, as written",
        .subscribeInVain: "Error changing notification state: The request is not supported.",
        .subscribe: "notifying ? YES",
        .receive: "some bytes",
        .readInFull: "512 bytes",
        .unsubscribe: "notifying ? NO",
    ]

    @Test("Each step has its expected outcome", .timeLimit(.minutes(10)))
    func eachStepHasItsExpectedOutcome() async throws {
        try await Stage(.walkthrough).perform { end in
            let central = try #require(end.screen as? WalkthroughCentral)
            #expect(central.outcomes == Self.outcomes)
            #expect(central.peripheral?.services == nil, "what was discovered belongs to the connection that ended")
        }
    }

    /// Connects a central with a small ATT_MTU to the app's peripheral.
    private func meet(
        _ body: @Sendable (RemotePeripheral, [RemoteCharacteristic]) async throws -> Void
    ) async throws {
        let air = "virtual:\(UUID().uuidString)"
        let app = Performance(
            Part(expected: ["Start Advertising"]) { WalkthroughPeripheral(terminal: $0, options: $1) },
            options: [CBPeripheralManagerOptionAdapterKey: air]
        )
        await app.begin()
        _ = await app.allLines
        var configuration = Adapter.Configuration()
        configuration.mtu = 23
        let adapter = try await Adapter.open(AdapterSpecification(parsing: air), configuration: configuration)
        for try await advertisement in adapter.central.scan(ScanOptions(name: "Walkthrough")) {
            let peer = try await adapter.central.connect(to: advertisement.address)
            let services = try await peer.discoverAll()
            let service = try #require(services.first { $0.uuid == "3655296F-96CE-44D4-912D-CD83F06E7E7E" })
            try await body(peer, service.characteristics)
            break
        }
        await adapter.close()
        await app.end()
    }

    @Test(
        "Reading can begin anywhere in a value and at its end, but not beyond",
        .timeLimit(.minutes(10)),
        arguments: [(0, "character 1"), (10, "1"), (11, ""), (12, nil)] as [(UInt16, String?)]
    )
    func readingCanBeginAnywhereInAValueAndNotBeyond(offset: UInt16, rest: String?) async throws {
        try await meet { peer, characteristics in
            let read = ReadPart(handle: characteristics[0].valueHandle, offset: offset)
            do throws(HostError) {
                let part = try await peer.host.perform(read, on: peer.link)
                #expect(rest.map { Array($0.utf8) } == part)
            } catch {
                guard case .client(.attribute(let code, _, _)) = error else { throw error }
                #expect(code == .invalidOffset)
                #expect(rest == nil)
            }
        }
    }

    @Test("A notification is truncated to the link's length, and the rest can be read", .timeLimit(.minutes(10)))
    func longNotificationIsTruncatedAndTheRestCanBeRead() async throws {
        try await meet { peer, characteristics in
            let whole = Array(WalkthroughPeripheral.longValue)
            let subscription = try await peer.subscribe(to: characteristics[1])
            var received: [UInt8]?
            for try await notification in subscription {
                received = notification.value
                break
            }
            #expect(received == Array(whole.prefix(20)))
            #expect(try await peer.read(characteristics[1].valueHandle) == whole)
        }
    }

    @Test("Writes that belong together are performed together", .timeLimit(.minutes(10)))
    func writesThatBelongTogetherArePerformedTogether() async throws {
        try await meet { peer, characteristics in
            let handle = characteristics[0].valueHandle
            let value = (0..<200).map { UInt8($0) }
            try await peer.writeReliably([
                .init(Array("first".utf8), to: handle), .init(value, to: handle),
            ])
            #expect(try await peer.read(handle) == value)
        }
    }
}

/// Reads a part of a value from any offset (Vol 3, Part F, 3.4.4.5).
private struct ReadPart: ClientProcedure {
    var outcome: Result<Output, ClientError>?
    let handle: AttributeHandle
    let offset: UInt16

    mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[UInt8]> {
        ReadBlobRequest(handle: handle, offset: offset).encode(into: &buffer)
        return .send(.readBlobRequest)
    }

    mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[UInt8]> {
        guard let response = try? ReadBlobResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.readBlobRequest)))
        }
        return .finished(.success([UInt8](copying: response.value)))
    }

    mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[UInt8]> {
        .finished(.failure(.attribute(error.error, handle: error.handle, request: .readBlobRequest)))
    }
}
