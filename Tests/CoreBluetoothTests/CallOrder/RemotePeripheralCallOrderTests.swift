import BLE
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation
import Testing

/// The order of calls of an app that uses the BLE module, with real threads.
@Suite("Call order of BLE on threads")
struct RemotePeripheralCallOrderTests {
    @Test(.timeLimit(.minutes(5))) func requestForAChannelFollowsSubmittedWrites() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("channel-order-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let capture = directory.appendingPathComponent("phone.btsnoop").path
        let air = AdaptersOnAir("channel order", seed: 7)
        let conditions = LinkConditions(isPaced: true, bufferCount: 1, bufferLength: 27)
        let board = try await air.open("board", controller: { conditions.apply(to: &$0) })
        let phone = try await air.open(
            "phone",
            controller: { conditions.apply(to: &$0) },
            configure: { $0.capturePath = capture }
        )
        let published = try await board.peripheral.publish([Board.definition]) { _, _ in [] }
        let handle = published[0].characteristics[Board.command].valueHandle
        let listener = try await board.peripheral.publishChannel()
        let advertising = try await board.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(20))
        )
        let peer = try await phone.central.connect(to: board.information.identityAddress)

        var expected: [[UInt8]] = []
        for number in 0..<40 {
            let value = [UInt8](number: number)
            try await peer.write(value, to: handle, kind: .withoutResponse)
            expected.append([0x52] + handle.bytes + value)
        }
        let channel = try await peer.openChannel(psm: listener.psm)
        expected.append([AttributeTrace.channelRequest])
        await phone.close()
        await board.close()
        withExtendedLifetime((channel, advertising)) {}

        let trace = try AttributeTrace([UInt8](Data(contentsOf: URL(fileURLWithPath: capture))))
        let sent = trace.sent.compactMap { pdu -> [UInt8]? in
            switch pdu[0] {
            case AttributeTrace.channelRequest: [pdu[0]]
            case 0x52: pdu
            default: nil
            }
        }
        #expect(sent == expected)
    }
}
