import Metrics

/// The metrics of a host, reported through swift-metrics.
struct HostMetrics: Sendable {
    let packetsReceived = Counter(label: "swift_ble_hci_packets_received_total")
    let packetsSent = Counter(label: "swift_ble_hci_packets_sent_total")
    /// Packets that could not be decoded, or that violated their protocol.
    let malformed = Counter(label: "swift_ble_malformed_packets_total")
    /// ACL data, and ends of links, whose connection handle belongs to no link of the host.
    let strayPackets = Counter(label: "swift_ble_hci_stray_packets_total")
    /// Frames for channels that are not open.
    let unknownChannelFrames = Counter(label: "swift_ble_l2cap_unknown_channel_frames_total")
    /// Frames for channels that were being opened or closed.
    let droppedChannelFrames = Counter(label: "swift_ble_l2cap_dropped_channel_frames_total")
    /// Signaling commands that were dropped because too many answers waited to be sent.
    let overloadedCommands = Counter(label: "swift_ble_l2cap_overloaded_commands_total")
    /// Keys that centrals requested and that this host does not have.
    let unknownKeyRequests = Counter(label: "swift_ble_unknown_key_requests_total")
    /// Values that bonded servers sent before their identity was verified.
    let unverifiedValues = Counter(label: "swift_ble_unverified_values_total")
    /// Commands that were dropped because the app's handler, or the store of a signed write's counter, did not keep up.
    let droppedWriteCommands = Counter(label: "swift_ble_dropped_write_commands_total")
    /// Notifications and indications of servers that were dropped because the app's queue did not keep up.
    let droppedReceivedValues = Counter(label: "swift_ble_dropped_received_values_total")
    /// Reports of advertisements that were dropped because the app's queue did not keep up.
    let droppedAdvertisements = Counter(label: "swift_ble_dropped_advertisements_total")
    /// PDUs that were dropped because the peers did not take the answers to earlier ones.
    let floodingPDUs = Counter(label: "swift_ble_flooding_pdus_total")
    /// Values to several clients that were not sent to a slow client.
    let droppedValues = Counter(label: "swift_ble_dropped_notifications_total")
    let recoveries = Counter(label: "swift_ble_controller_recoveries_total")
    let commandFailures = Counter(label: "swift_ble_hci_command_failures_total")
    let links = Gauge(label: "swift_ble_links")
    let aclCredits = Gauge(label: "swift_ble_acl_credits_available")
}
