import BLE
import Foundation
import Testing

@testable import BLETool

@Suite("ble iso between two virtual adapters", .timeLimit(.minutes(10)))
struct StreamTransferTests {
    /// Opens a stream with parameters of the central, and transfers a file on the side of the peripheral.
    private func transferAtPeripheral(
        _ file: StreamFile,
        central parameters: ConnectedGroupParameters
    ) async throws {
        let air = AdapterSpecification.virtual(name: "stream \(UUID().uuidString)")
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        configuration.usesConnectedStreams = true
        let listening = try await Adapter.open(air, configuration: configuration)
        let opening = try await Adapter.open(air, configuration: configuration)
        let requests = try await listening.peripheral.streamRequests()
        let advertising = try await listening.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(20))
        )
        let peer = try await opening.central.connect(to: try await listening.information.identityAddress)
        await advertising.stop()
        async let opened = opening.central.openStreams(to: [peer], parameters)
        var offers = requests.makeAsyncIterator()
        let offer = try #require(await offers.next())
        let stream = try await offer.accept()
        // Released streams are closed.
        let streams = try await opened
        defer { withExtendedLifetime(streams) {} }
        var failure: (any Error)?
        do {
            let teller = StreamTeller(asJSON: false)
            try await StreamTransfer(stream, teller, partLength: 100, patience: .milliseconds(100)).run(file)
        } catch {
            failure = error
        }
        await opening.close()
        await listening.close()
        if let failure { throw failure }
    }

    @Test("A side that receives while the other one receives too fails, and does not wait for ever")
    func twoReceiversFail() async throws {
        var parameters = ConnectedGroupParameters()
        (parameters.maximumSDUToPeripheral, parameters.maximumSDUToCentral) = (0, 100)
        let file = StreamFile.receive(try ByteOutput("/dev/null"))
        await #expect(throws: ToolError.sameDirections) {
            try await transferAtPeripheral(file, central: parameters)
        }
    }

    @Test("A side that sends while the other one sends too fails")
    func twoSendersFail() async throws {
        var parameters = ConnectedGroupParameters()
        (parameters.maximumSDUToPeripheral, parameters.maximumSDUToCentral) = (100, 0)
        let file = StreamFile.send(try ByteInput("/dev/null"))
        await #expect(throws: ToolError.sameDirections) {
            try await transferAtPeripheral(file, central: parameters)
        }
    }
}
