import BLE
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLETool

@Suite("Finding a device")
struct FindTests {
    @Test func deviceOnLECodedIsFoundWithTheOption() throws {
        try World.run { world in
            let advertiser = try await world.device("tag").openAdapter()
            let advertising = try await advertiser.peripheral.startAdvertising(
                AdvertisementConfiguration(
                    isConnectable: false,
                    isScannable: false,
                    advertisingData: AdvertisingData([.completeLocalName("Tag")]),
                    phys: .coded()
                )
            )
            defer { withExtendedLifetime(advertising) {} }
            let scanner = try await world.device("ble").openAdapter()
            let finding = try FindOptions.parse(["--coded"])
            let options = Target.name("Tag").scanOptions(finding)
            for try await advertisement in scanner.central.scan(options) {
                #expect(advertisement.localName == "Tag" && advertisement.primaryPHY == .leCoded)
                break
            }
        }
    }

    @Test func scanUsesLECodedOnlyWithTheOption() throws {
        let usual = try FindOptions.parse([])
        #expect(Target.address(1).scanOptions(usual).phys == .le1M)
        let finding = try FindOptions.parse(["--coded"])
        for target in [Target.address(1), .name("Tag"), .service("180F")] {
            #expect(target.scanOptions(finding).phys == [.le1M, .leCoded])
        }
        #expect(try Scan.parse(["--coded"]).finding.coded)
        #expect(try Read.parse(["Tag", "2A19", "--coded"]).peer.finding.coded)
        #expect(try Sync.parse(["Tag", "--coded"]).finding.coded)
        #expect(
            Read.problem(with: ["F0:12:34:56:78:9A", "2A19", "--address-type", "random", "--coded"])
                == "--coded looks for the device, so it excludes --address-type"
        )
    }

    @Test func errorSaysWhetherTheDeviceWasSeen() {
        let (tag, time) = (Target.name("Tag"), Seconds(.seconds(15)))
        let advice = "--coded also finds devices on LE Coded"
        #expect("\(ToolError.notSeen(tag, time, scansCoded: false))".hasSuffix(advice))
        #expect(!"\(ToolError.notSeen(tag, time, scansCoded: true))".contains("--coded"))
        #expect("\(ToolError.notSeen(.address(1), time, scansCoded: false))".hasSuffix(advice))
        let unconnectable = "\(ToolError.notConnectable(tag, time))"
        #expect(unconnectable.hasPrefix("\"Tag\" was seen, but accepted no connections in 15 s"))
    }
}
