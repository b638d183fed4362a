import GatewayCore

/// The metrics of a gateway. No label has a value that a device or a client chooses.
enum GatewayMetrics {
    static func families(
        _ status: GatewayStatus,
        _ devices: ReceivedDevices.Snapshot,
        _ deviceCounts: (sensors: Int, others: Int),
        _ events: EventLog
    ) -> [MetricFamily] {
        var families = [
            MetricFamily(
                "ble_gateway_build_info",
                .gauge,
                "Always 1; the version of the gateway is a label.",
                label: "version",
                [(Gateway.version, 1)]
            )
        ]
        families += traffic(status)
        families += adapters(status, events)
        families += connections(status, events)
        families += sensors(devices, deviceCounts)
        if let broker = status.broker { families += self.broker(broker, events) }
        return families
    }

    private static func traffic(_ status: GatewayStatus) -> [MetricFamily] {
        [
            MetricFamily(
                "ble_gateway_advertisements_received_total",
                .counter,
                "Advertisements received from all adapters.",
                Double(status.advertisementCount)
            ),
            MetricFamily(
                "ble_gateway_advertisements_forwarded_total",
                .counter,
                "Advertisements sent to clients; one that two clients receive counts twice.",
                Double(status.forwardedAdvertisementCount)
            ),
            MetricFamily(
                "ble_gateway_advertisements_dropped_total",
                .counter,
                "Advertisements that clients were too slow to receive.",
                Double(status.droppedAdvertisementCount)
            ),
            MetricFamily(
                "ble_gateway_clients",
                .gauge,
                "Clients of the native API that are connected.",
                Double(status.clients.count)
            ),
        ]
    }

    private static func adapters(_ status: GatewayStatus, _ events: EventLog) -> [MetricFamily] {
        func perAdapter(
            _ name: String,
            _ kind: MetricFamily.Kind,
            _ help: String,
            _ value: (GatewayStatus.AdapterStatus) -> Double
        ) -> MetricFamily {
            // Labels are cut, so two long names can give the same label; the first adapter is shown.
            var labels: Set<Substring> = []
            let adapters = status.adapters.filter {
                labels.insert($0.name.prefix(Exposition.labelValueLimit)).inserted
            }
            return MetricFamily(name, kind, help, label: "adapter", adapters.map { ($0.name, value($0)) })
        }
        func count(_ kind: GatewayEvent.Kind) -> (GatewayStatus.AdapterStatus) -> Double {
            { Double(events.count(of: kind, adapter: $0.name)) }
        }
        return [
            perAdapter("ble_gateway_adapter_open", .gauge, "Whether the adapter can be used.") { $0.isOpen ? 1 : 0 },
            perAdapter("ble_gateway_adapter_scanning", .gauge, "Whether the adapter scans.") { $0.isScanning ? 1 : 0 },
            perAdapter("ble_gateway_adapter_connections", .gauge, "Connections through the adapter.") {
                Double($0.connectionCount)
            },
            perAdapter(
                "ble_gateway_adapter_opens_total",
                .counter,
                "Times that the adapter was opened.",
                count(.adapterOpened)
            ),
            perAdapter(
                "ble_gateway_adapter_failures_total",
                .counter,
                "Times that the adapter could not be opened.",
                count(.adapterFailed)
            ),
            perAdapter(
                "ble_gateway_adapter_resets_total",
                .counter,
                "Times that the controller was reset.",
                count(.adapterReset)
            ),
            perAdapter(
                "ble_gateway_adapter_scan_restarts_total",
                .counter,
                "Times that a scan without packets was started again.",
                count(.scanRestarted)
            ),
            MetricFamily(
                "ble_gateway_scan_mode",
                .gauge,
                "1 for the mode in which adapters scan, 0 for the others.",
                label: "mode",
                ScanMode.allCases.map { ($0.rawValue, $0 == status.scanMode ? 1 : 0) }
            ),
        ]
    }

    private static func connections(_ status: GatewayStatus, _ events: EventLog) -> [MetricFamily] {
        let connectedCount = status.connections.count(where: \.isConnected)
        return [
            MetricFamily(
                "ble_gateway_connections",
                .gauge,
                "Connections to devices by state.",
                label: "state",
                [
                    ("connected", Double(connectedCount)),
                    ("connecting", Double(status.connections.count - connectedCount)),
                ]
            ),
            MetricFamily(
                "ble_gateway_connection_slots",
                .gauge,
                "Connections to devices that are allowed at one time.",
                Double(status.connectionLimit)
            ),
            MetricFamily(
                "ble_gateway_connection_attempts_total",
                .counter,
                "Attempts to connect to devices by outcome.",
                label: "outcome",
                [
                    ("connected", Double(events.count(of: .deviceConnected))),
                    ("failed", Double(events.count(of: .deviceFailed))),
                ]
            ),
        ]
    }

    private static func sensors(
        _ devices: ReceivedDevices.Snapshot,
        _ counts: (sensors: Int, others: Int)
    ) -> [MetricFamily] {
        let formats = devices.reportCounts.map { ($0.key.rawValue, Double($0.value)) }.sorted { $0.0 < $1.0 }
        return [
            MetricFamily(
                "ble_gateway_sensor_reports_total",
                .counter,
                "Reports of sensors that said something new, by format.",
                label: "format",
                formats
            ),
            MetricFamily(
                "ble_gateway_devices",
                .gauge,
                "Devices on the status page.",
                label: "kind",
                [("sensor", Double(counts.sensors)), ("other", Double(counts.others))]
            ),
            MetricFamily(
                "ble_gateway_devices_forgotten_total",
                .counter,
                "Devices that left the status page because there were too many.",
                Double(devices.forgottenCount)
            ),
        ]
    }

    private static func broker(_ broker: GatewayStatus.BrokerStatus, _ events: EventLog) -> [MetricFamily] {
        [
            MetricFamily(
                "ble_gateway_mqtt_connected",
                .gauge,
                "Whether the broker is connected.",
                broker.isConnected ? 1 : 0
            ),
            MetricFamily(
                "ble_gateway_mqtt_connects_total",
                .counter,
                "Times that the broker was connected.",
                Double(events.count(of: .brokerConnected))
            ),
            MetricFamily(
                "ble_gateway_mqtt_waiting_messages",
                .gauge,
                "Messages that wait for the broker.",
                Double(broker.waitingCount)
            ),
            MetricFamily(
                "ble_gateway_mqtt_delivered_total",
                .counter,
                "Messages that the broker has confirmed.",
                Double(broker.deliveredCount)
            ),
            MetricFamily(
                "ble_gateway_mqtt_dropped_total",
                .counter,
                "Messages that were dropped because too many waited.",
                Double(broker.droppedCount)
            ),
        ]
    }
}
