import GatewayFleet
import NIOCore
import NIOEmbedded
import Testing

@testable import GatewayWeb

struct FleetPageTests {
    private func response(_ path: String, _ status: FleetStatus) throws -> WebResponse? {
        try FleetPage { status }.response(path: path, on: EmbeddedEventLoop())?.wait()
    }

    @Test func metricsHaveTheCounters() throws {
        var status = FleetStatus()
        status.messages.received = 12
        status.messages.late = 3
        status.messages.missing = 4
        status.gatewayCount = 5
        status.silentGatewayCount = 1
        status.isConnected = true
        let found = try #require(try response("/metrics", status))
        let text = String(buffer: found.body)
        #expect(found.status == .ok)
        for line in [
            "ble_gateway_fleet_messages_received_total 12",
            "ble_gateway_fleet_messages_unused_total{reason=\"late\"} 3",
            "ble_gateway_fleet_messages_missing 4", "ble_gateway_fleet_gateways{state=\"known\"} 5",
            "ble_gateway_fleet_gateways{state=\"silent\"} 1", "ble_gateway_mqtt_connected 1",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
    }

    @Test func metricsTellFailuresOfTheDisk() throws {
        func metrics(_ status: FleetStatus) throws -> String {
            String(buffer: try #require(try response("/metrics", status)).body)
        }
        var text = try metrics(FleetStatus())
        #expect(text.contains("\nble_gateway_fleet_store_failed 0\n"))
        #expect(text.contains("\nble_gateway_fleet_output_failed 0\n"))
        var status = FleetStatus()
        status.outputFailure = "No space left on device"
        text = try metrics(status)
        #expect(text.contains("\nble_gateway_fleet_store_failed 0\n"))
        #expect(text.contains("\nble_gateway_fleet_output_failed 1\n"))
    }

    @Test func healthFailsIfMessagesCannotBeStored() throws {
        #expect(try response("/health", FleetStatus())?.status == .ok)
        var status = FleetStatus()
        status.storeFailure = "No space left on device"
        let found = try #require(try response("/health", status))
        #expect(found.status == .serviceUnavailable)
        #expect(
            String(buffer: found.body)
                == "{\"status\": \"failing\", \"reasons\": [\"messages cannot be stored: No space left on device\"]}\n"
        )
    }

    @Test func healthFailsIfLinesCannotBeWritten() throws {
        var status = FleetStatus()
        status.storeFailure = "a"
        status.outputFailure = "b"
        let found = try #require(try response("/health", status))
        #expect(found.status == .serviceUnavailable)
        let reasons = "[\"messages cannot be stored: a\", \"lines cannot be written: b\"]"
        #expect(String(buffer: found.body) == "{\"status\": \"failing\", \"reasons\": \(reasons)}\n")
    }

    @Test func nothingElseIsServed() throws {
        #expect(try response("/", FleetStatus()) == nil)
    }
}
