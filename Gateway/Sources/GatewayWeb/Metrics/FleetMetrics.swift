import GatewayCore
import GatewayFleet

/// The metrics of a fleet's consumer. No label has a value that a device or a gateway chooses.
enum FleetMetrics {
    static func families(_ status: FleetStatus) -> [MetricFamily] {
        [
            MetricFamily(
                "ble_gateway_build_info",
                .gauge,
                "Always 1; the version of the gateway is a label.",
                label: "version",
                [(Gateway.version, 1)]
            )
        ] + messages(status) + tags(status) + output(status)
    }

    private static func messages(_ status: FleetStatus) -> [MetricFamily] {
        let counters = status.messages
        return [
            MetricFamily(
                "ble_gateway_fleet_messages_received_total",
                .counter,
                "Messages of gateways that were decoded.",
                Double(counters.received)
            ),
            MetricFamily(
                "ble_gateway_fleet_messages_unused_total",
                .counter,
                "Messages that are not in an observation, by reason.",
                label: "reason",
                [
                    ("duplicate", Double(counters.duplicates)), ("late", Double(counters.late)),
                    ("malformed", Double(status.malformedCount)), ("too_many_gateways", Double(counters.refused)),
                ]
            ),
            MetricFamily(
                "ble_gateway_fleet_messages_missing",
                .gauge,
                "Numbers that are missing in the sequences of gateways.",
                Double(counters.missing)
            ),
            MetricFamily(
                "ble_gateway_fleet_messages_reordered_total",
                .counter,
                "Messages that came after a later one of their gateway.",
                Double(counters.reordered)
            ),
            MetricFamily(
                "ble_gateway_fleet_restarts_total",
                .counter,
                "Starts of gateways after the first one that was seen.",
                Double(counters.restarts)
            ),
        ]
    }

    private static func tags(_ status: FleetStatus) -> [MetricFamily] {
        [
            MetricFamily(
                "ble_gateway_fleet_gateways",
                .gauge,
                "Gateways that are known; those that are silent for a minute; those that are offline.",
                label: "state",
                [
                    ("known", Double(status.gatewayCount)), ("silent", Double(status.silentGatewayCount)),
                    ("offline", Double(status.offlineGatewayCount)),
                ]
            ),
            MetricFamily(
                "ble_gateway_fleet_tags",
                .gauge,
                "Tags that gateways received in the last minutes.",
                Double(status.tagCount)
            ),
            MetricFamily(
                "ble_gateway_fleet_election_refused_total",
                .counter,
                "Receptions of tags and gateways beyond the limits of the election.",
                Double(status.electionRefusedCount)
            ),
            MetricFamily(
                "ble_gateway_fleet_open_windows",
                .gauge,
                "Transmissions whose receptions are collected.",
                Double(status.openWindowCount)
            ),
            MetricFamily(
                "ble_gateway_fleet_windows_ended_early_total",
                .counter,
                "Windows that ended early because there were too many.",
                Double(status.messages.endedEarly)
            ),
            MetricFamily(
                "ble_gateway_fleet_receivers_dropped_total",
                .counter,
                "Receptions beyond the limit of a transmission.",
                Double(status.messages.receiversDropped)
            ),
        ]
    }

    private static func output(_ status: FleetStatus) -> [MetricFamily] {
        [
            MetricFamily(
                "ble_gateway_fleet_observations_total",
                .counter,
                "Transmissions that were combined.",
                Double(status.messages.observations)
            ),
            MetricFamily(
                "ble_gateway_fleet_lines_total",
                .counter,
                "Lines that were written, and confirmed if they are published.",
                Double(status.lineCount)
            ),
            MetricFamily(
                "ble_gateway_fleet_waiting_lines",
                .gauge,
                "Lines that are not written, or not confirmed.",
                Double(status.waitingLineCount)
            ),
            MetricFamily(
                "ble_gateway_fleet_waiting_messages",
                .gauge,
                "Messages in the journal whose observations are not written.",
                Double(status.waitingMessageCount)
            ),
            MetricFamily(
                "ble_gateway_fleet_store_failed",
                .gauge,
                "Whether messages cannot be stored, and wait at the broker.",
                status.storeFailure == nil ? 0 : 1
            ),
            MetricFamily(
                "ble_gateway_fleet_output_failed",
                .gauge,
                "Whether lines cannot be written, and wait.",
                status.outputFailure == nil ? 0 : 1
            ),
            MetricFamily(
                "ble_gateway_mqtt_connected",
                .gauge,
                "Whether the broker is connected.",
                status.isConnected ? 1 : 0
            ),
            MetricFamily(
                "ble_gateway_mqtt_connects_total",
                .counter,
                "Times that the broker was connected.",
                Double(status.connectCount)
            ),
        ]
    }
}
