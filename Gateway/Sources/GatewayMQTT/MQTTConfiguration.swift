import GatewayCore
import Logging

/// How readings are published.
package struct MQTTConfiguration: Sendable {
    /// The broker.
    package var broker: BrokerAddress
    /// The password of the broker's user.
    package var password: String?
    /// A file with the certificates of the authorities that may sign the broker's; nil for the system's.
    package var authorityPath: String?
    /// A file with the gateway's certificate; nil for none.
    package var certificatePath: String?
    /// A file with the private key of the certificate.
    package var privateKeyPath: String?
    /// The first part of all topics.
    package var topicPrefix = "ble"
    /// The first part of the topics of Home Assistant's discovery; nil for no discovery.
    package var discoveryPrefix: String? = "homeassistant"
    /// The topic before the addresses of sensors, if readings are published with the keys of Theengs Gateway; nil for
    /// the gateway's own format. The announcements for Home Assistant know the gateway's own format only.
    package var theengsTopic: String?
    /// The name of the gateway.
    package var gateway: String
    /// The file in which messages wait for the broker; nil to keep them in memory only.
    package var storePath: String?
    /// The greatest number of messages that wait for the broker.
    package var storeLimit = 100_000
    /// The greatest age in days of a message that waited for the broker; an older one is dropped.
    package var storeDays = 7
    /// Receives what happens to the connection.
    package var events = EventLog()
    /// Receives messages about the connection.
    package var logger: Logger

    /// Creates a configuration with default values.
    package init(broker: BrokerAddress, gateway: String, logger: Logger) {
        self.broker = broker
        self.gateway = gateway
        self.logger = logger
    }
}

/// The reason why nothing can be published.
package struct MQTTError: Error, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
