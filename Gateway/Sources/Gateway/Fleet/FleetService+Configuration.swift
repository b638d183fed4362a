import Foundation
import GatewayFleet
import GatewayMQTT

extension FleetService {
    /// What the service does, and where.
    struct Configuration: Sendable {
        /// The broker.
        var connection: MQTTConfiguration
        /// The name of the session that the broker keeps.
        var session: String
        /// The topics of the gateways.
        var topics: FleetTopics
        /// The topics on which lines are published; nil for none.
        var publishing: FleetTopics?
        /// The time in which receptions of a transmission are collected, and limits.
        var window = FleetWindow.Configuration()
        /// Where lines are written.
        var descriptor: Int32 = STDOUT_FILENO
    }
}
