import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import NIOCore
import NIOEmbedded
import Testing

@testable import GatewayWeb

struct StatusPageTests {
    private static let status = try! JSONDecoder().decode(
        GatewayStatus.self,
        from: Data(
            #"""
            {"servesClients": true, "port": 6053, "connectionLimit": 20, "advertisementCount": 12,
             "adapters": [
                 {"name": "hci0", "isOpen": true, "isScanning": true, "connectionCount": 1},
                 {"name": "hci1", "isOpen": false, "isScanning": false, "connectionCount": 0,
                  "failure": "no \u001B[2J\"device"}],
             "clients": [{"address": "10.0.0.2", "information": "<b>", "receivesAdvertisements": true,
                          "advertisementCount": 24, "droppedAdvertisementCount": 3}],
             "connections": [{"address": "C0:DE:00:00:00:01", "isConnected": true, "client": "10.0.0.2"}],
             "forwardedAdvertisementCount": 24, "droppedAdvertisementCount": 3, "scanMode": "passive",
             "closedClientCounts": {}, "broker": {"address": "mqtt://a:1883", "isConnected": true, "waitingCount": 4,
                                                  "deliveredCount": 5, "droppedCount": 6}}
            """#.utf8
        )
    )

    private func page(_ status: GatewayStatus = status, _ events: EventLog = EventLog()) -> StatusPage {
        StatusPage(
            StatusPage.Source(
                name: "Hall",
                status: { status },
                devices: ReceivedDevices(),
                events: events,
                registry: MetricsRegistry()
            )
        )
    }

    private func text(_ response: WebResponse) -> String { String(buffer: response.body) }

    @Test(arguments: ["/", "/style.css", "/script.js", "/icon.svg"])
    func filesAreServedAndExecuteNothingInline(path: String) throws {
        let response = try #require(page().response(path: path, on: EmbeddedEventLoop())).wait()
        let text = text(response)
        #expect(response.status == .ok && !text.isEmpty)
        #expect(!text.contains("innerHTML") && !text.contains("insertAdjacentHTML") && !text.contains("eval("))
        guard path == "/" else { return }
        // All that the page loads is its own: there is no address with a scheme, no inline script and no inline style.
        #expect(!text.contains("://") && !text.contains(" style=") && !text.contains("<style"))
        #expect(text.firstMatch(of: #/ on[a-z]+=/#) == nil)
        #expect(text.contains("<script src=\"script.js\" defer></script>"))
        for name in ["style.css", "script.js", "icon.svg"] { #expect(PageFile.all["/\(name)"] != nil) }
    }

    @Test func onlyNumbersAreServedUnderAnyHost() {
        for path in ["/metrics", "/health"] { #expect(page().acceptsAnyHost(path: path)) }
        for path in ["/", "/api/status.json", "/api/recent.json", "/missing"] {
            #expect(!page().acceptsAnyHost(path: path))
        }
    }

    @Test func healthNamesWhatIsWrong() async {
        let response = await page().make(.health)
        #expect(response.status == .serviceUnavailable)
        #expect(
            text(response)
                == "{\"status\": \"failing\", \"reasons\": [\"adapter hci1: no \\\\u{1B}[2J\\\"device\"]}\n"
        )
        var status = Self.status
        status.adapters.removeLast()
        let healthy = await page(status).make(.health)
        #expect(healthy.status == .ok && text(healthy) == "{\"status\": \"ok\", \"reasons\": []}\n")
        status.port = nil
        #expect(await page(status).make(.health).status == .serviceUnavailable)
        status.adapters = []
        status.servesClients = false
        #expect(await page(status).make(.health).status == .serviceUnavailable)
    }

    @Test func metricsHaveTheStatus() async {
        let events = EventLog()
        events.record(.adapterOpened, "hci0")
        events.record(.deviceFailed, "C0:DE:00:00:00:01", "timed out")
        let lines = text(await page(Self.status, events).make(.metrics)).split(separator: "\n")
        for line in [
            "ble_gateway_advertisements_received_total 12", "ble_gateway_advertisements_forwarded_total 24",
            "ble_gateway_advertisements_dropped_total 3", "ble_gateway_adapter_open{adapter=\"hci0\"} 1",
            "ble_gateway_adapter_open{adapter=\"hci1\"} 0", "ble_gateway_adapter_scanning{adapter=\"hci0\"} 1",
            "ble_gateway_adapter_opens_total{adapter=\"hci0\"} 1", "ble_gateway_scan_mode{mode=\"passive\"} 1",
            "ble_gateway_scan_mode{mode=\"active\"} 0", "ble_gateway_connections{state=\"connected\"} 1",
            "ble_gateway_connection_slots 20", "ble_gateway_connection_attempts_total{outcome=\"failed\"} 1",
            "ble_gateway_mqtt_waiting_messages 4", "ble_gateway_mqtt_delivered_total 5",
            "ble_gateway_mqtt_dropped_total 6",
        ] {
            #expect(lines.contains(line[...]), "\(line)")
        }
    }

    @Test(arguments: [StatusPage.Document.status, .recent])
    func dataIsOneObject(document: StatusPage.Document) async throws {
        let response = await page().make(document)
        let object = try JSONSerialization.jsonObject(with: Data(text(response).utf8)) as? [String: Any]
        #expect(object?["name"] as? String == "Hall")
        #expect((object?["adapters"] as? [[String: Any]])?[1]["failure"] as? String == "no \\u{1B}[2J\"device")
        #expect((object?["connections"] as? [Any])?.count == 1)
    }
}
