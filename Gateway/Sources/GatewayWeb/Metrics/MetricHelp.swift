/// The help texts of metrics that are reported through swift-metrics, which has none.
enum MetricHelp {
    static func text(for name: String, label: String) -> String {
        texts[name] ?? "Reported through swift-metrics as \(label)."
    }

    private static let texts: [String: String] = [
        "ble_gateway_clients_closed_total": "Clients of the native API that were disconnected, by reason.",
        "swift_ble_links": "Links of the adapter that has reported last.",
        "swift_ble_acl_credits_available": "Free buffers of the controller that has reported last.",
        "swift_ble_controller_recoveries_total": "Recoveries of controllers.",
        "swift_ble_hci_command_failures_total": "HCI commands that failed.",
        "swift_ble_hci_packets_received_total": "HCI packets received from controllers.",
        "swift_ble_hci_packets_sent_total": "HCI packets sent to controllers.",
        "swift_ble_hci_stray_packets_total": "ACL data, and ends of links, for an unknown connection handle.",
        "swift_ble_malformed_packets_total": "Packets that could not be decoded, or that violated their protocol.",
        "swift_ble_l2cap_unknown_channel_frames_total": "L2CAP frames for channels that are not open.",
        "swift_ble_l2cap_dropped_channel_frames_total": "L2CAP frames for channels that were being opened or closed.",
        "swift_ble_l2cap_overloaded_commands_total":
            "Signaling commands that were dropped because too many answers waited.",
        "swift_ble_unknown_key_requests_total": "Keys that centrals requested and that the host does not have.",
        "swift_ble_unverified_values_total": "Values of bonded servers before their identity was verified.",
        "swift_ble_flooding_pdus_total": "PDUs that were dropped because the peer took no answers.",
        "swift_ble_dropped_write_commands_total": "Write commands that were dropped because a queue was full.",
        "swift_ble_dropped_received_values_total": "Received values that were dropped because a queue was full.",
        "swift_ble_dropped_advertisements_total": "Advertisements that were dropped because a queue was full.",
        "swift_ble_dropped_notifications_total": "Notifications that were not sent to a slow client.",
    ]
}
