import BLE
import Foundation
import Testing

@testable import BLETool

@Suite("ble channel between two virtual adapters", .timeLimit(.minutes(10)))
final class ChannelTransferTests {
    private let folder = FileManager.default.temporaryDirectory.path + "/channel-\(UUID().uuidString)"

    init() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func transfer(
        on channel: L2CAPChannel,
        from input: String,
        to output: String,
        closesAtEnd: Bool
    ) throws -> ChannelTransfer {
        ChannelTransfer(
            channel,
            ChannelFiles(input: try ByteInput(input), output: try ByteOutput(output)),
            closesAtEnd: closesAtEnd,
            ChannelTeller(asJSON: false)
        )
    }

    @Test("The side that closes the channel at the end of its input first sends all of it")
    func wholeInputIsSentBeforeTheChannelIsClosed() async throws {
        let (source, target) = (folder + "/source", folder + "/target")
        let content = Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
        try content.write(to: URL(fileURLWithPath: source))
        let air = AdapterSpecification.virtual(name: folder)
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        let listening = try await Adapter.open(air, configuration: configuration)
        let opening = try await Adapter.open(air, configuration: configuration)
        let listener = try await listening.peripheral.publishChannel()
        let advertising = try await listening.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(20))
        )
        let peer = try await opening.central.connect(to: try await listening.information.identityAddress)
        await advertising.stop()
        let opened = try await peer.openChannel(psm: listener.psm)
        var channels = listener.makeAsyncIterator()
        let accepted = try #require(await channels.next())

        let receiver = try transfer(on: opened, from: "/dev/null", to: target, closesAtEnd: false)
        let sender = try transfer(on: accepted, from: source, to: "/dev/null", closesAtEnd: true)
        async let received: Void = receiver.run()
        try await sender.run()
        // The command closes the adapter now. What it has not sent is lost.
        await listening.close()
        try await received
        #expect(await opened.ending() == .byPeer)
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == content)
        await opening.close()
    }
}
