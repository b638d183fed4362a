/// What one transmission of a tag said, and which gateways received it.
public struct CombinedObservation: Hashable, Sendable {
    /// The reception by one gateway.
    public struct Receiver: Hashable, Sendable {
        /// The name of the gateway.
        public var gateway: String
        /// The signal strength in dBm; nil if it is not known.
        public var rssi: Int?
        /// The time, by the gateway's clock.
        public var time: String
        /// The number of the message; nil if the gateway does not number them.
        public var number: FleetMessage.Number?

        /// Creates a reception.
        public init(gateway: String, rssi: Int?, time: String, number: FleetMessage.Number? = nil) {
            self.gateway = gateway
            self.rssi = rssi
            self.time = time
            self.number = number
        }

        fileprivate var json: String {
            var text = "{\"gateway\": \"\(gateway)\""
            if let number { text += ", \"boot\": \"\(number.bootDigits)\", \"sequence\": \(number.sequence)" }
            if let rssi { text += ", \"rssi\": \(rssi)" }
            return text + ", \"time\": \"\(time)\"}"
        }
    }

    /// The tag's address, of 48 bits.
    public var address: UInt64
    /// The format of the advertisement.
    public var format: String
    /// The number of the packet, if the format has one.
    public var counter: UInt64?
    /// The readings, as an object of JSON.
    public var readings: String
    /// The time of the message that arrived first, by the clock of its gateway.
    public var time: String
    /// The receptions, the strongest first.
    public var receivers: [Receiver]
    /// What the caller gave with the messages.
    public var tokens: [UInt64]

    /// The observation as one line of JSON, without its line break.
    public var json: String { json(elected: nil) }

    /// The observation as one line of JSON, without its line break.
    ///
    /// - Parameter elected: the gateway that should connect to the tag; nil for none.
    public func json(elected: String?) -> String {
        var text =
            "{\"time\": \"\(time)\", \"address\": \"\(FleetTopics.text(of: address))\", \"format\": \"\(format)\""
        if let counter { text += ", \"counter\": \(counter)" }
        text += ", \"readings\": \(readings), \"receivers\": ["
        text += receivers.map(\.json).joined(separator: ", ")
        text += "]"
        if let best = receivers.first { text += ", \"best\": \"\(best.gateway)\"" }
        if let elected { text += ", \"connect\": \"\(elected)\"" }
        return text + "}"
    }
}
