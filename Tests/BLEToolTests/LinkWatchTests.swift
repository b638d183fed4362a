import BLE
import BLEVirtualController
import BluetoothTesting
import Testing

@testable import BLETool

@Suite("ble link")
struct LinkWatchTests {
    @Test("A change right after the state was shown is shown", arguments: [false, true])
    func changeAfterTheStateIsShown(asJSON: Bool) throws {
        let lines = PrintedLines()
        try World.run { world in
            let device = world.device("ble") { $0.minimumTransmitPower = -20 }
            let other = world.device("lamp", at: Position(x: 3, y: 0)) { $0.minimumTransmitPower = -20 }
            let lamp = try await other.openAdapter()
            let advertising = try await lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            defer { withExtendedLifetime(advertising) {} }
            let ble = try await device.openAdapter()
            let peer = try await ble.central.connect(to: other.address)
            let watch = LinkWatch(peer: peer, reportsPower: true, pathLoss: nil, asJSON: asJSON) { line in
                lines.append(line)
                if lines.all.count == 1 { device.setTransmitPower(-6) }
            }
            try await watch.run(whenShown: { #expect(lines.all.count == 1) }, while: { false })
        }
        #expect(lines.all.count == 2)
        let (state, change) = (lines.all.first ?? "", lines.all.last ?? "")
        if asJSON {
            #expect(state.hasPrefix(#"{"event":"link""#))
            #expect(change.hasPrefix(#"{"event":"transmitPowerChanged","device":"own""#))
        } else {
            #expect(state.contains("own power 0 dBm"))
            #expect(change.hasPrefix("own power -6 dBm"))
        }
    }
}
