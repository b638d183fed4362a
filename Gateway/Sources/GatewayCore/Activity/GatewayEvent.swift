import Foundation

/// Something that happened in a gateway, for people that look for a cause.
public struct GatewayEvent: Sendable, Equatable {
    /// What happened.
    public enum Kind: String, Sendable, CaseIterable {
        /// An adapter was opened.
        case adapterOpened = "adapter_opened"
        /// An adapter could not be opened.
        case adapterFailed = "adapter_failed"
        /// An adapter was closed, for example because it was unplugged.
        case adapterClosed = "adapter_closed"
        /// The controller was reset.
        case adapterReset = "adapter_reset"
        /// A scan without packets was started again.
        case scanRestarted = "scan_restarted"
        /// A client of the native API has greeted.
        case clientConnected = "client_connected"
        /// A client was disconnected, perhaps before it had greeted.
        case clientDisconnected = "client_disconnected"
        /// A device was connected, for a client or for commands.
        case deviceConnected = "device_connected"
        /// A device could not be connected.
        case deviceFailed = "device_failed"
        /// The connection to a device has ended.
        case deviceDisconnected = "device_disconnected"
        /// The broker was connected.
        case brokerConnected = "broker_connected"
        /// The connection to the broker was lost, or could not be made.
        case brokerLost = "broker_lost"
    }

    /// The number of the event; each new event and each repetition has a greater one.
    public var number: UInt64
    /// The system's time of the last occurrence.
    public var time: Date
    /// What happened.
    public var kind: Kind
    /// The adapter, the client's network address, the device's address or the broker's address.
    public var subject: String
    /// The reason, or more about the subject; nil for nothing.
    public var detail: String?
    /// How often it happened.
    public var count: Int
}
