import ESPHomeProtocol
import Foundation
import GatewayCore

extension GatewayStatus {
    /// The status as JSON in one line, with sorted keys.
    var json: String {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        }
    }

    /// The status as lines for people.
    var text: String {
        let isWaiting = servesClients ? "not listening yet" : "clients are not served"
        var lines = [port.map { "listening on port \($0)" } ?? isWaiting]
        for adapter in adapters {
            let state =
                if let failure = adapter.failure {
                    "failed: \(failure.printable())"
                } else {
                    adapter.isOpen ? (adapter.isScanning ? "open, scanning" : "open") : "not open"
                }
            let kernelName = adapter.kernelName == adapter.name ? nil : adapter.kernelName
            let place = [kernelName, adapter.address].compactMap(\.self).joined(separator: " ")
            let name = adapter.name + (place.isEmpty ? "" : " (\(place))")
            let capacity = adapter.connectionCapacity.map { " of at most \($0)" } ?? ""
            lines.append("adapter \(name): \(state), \(adapter.connectionCount) connections\(capacity)")
        }
        for client in clients {
            let counts = "\(client.advertisementCount) sent, \(client.droppedAdvertisementCount) dropped"
            let interest = client.receivesAdvertisements ? "receives advertisements" : "no subscription"
            lines.append("client \(client.address) (\(client.information)): \(interest), \(counts)")
        }
        lines.append("connections: \(connections.count) of \(connectionLimit)")
        for connection in connections {
            let state = connection.isConnected ? "connected" : "connecting"
            lines.append("  \(connection.address): \(state) for \(connection.client)")
        }
        if let broker {
            let state = broker.isConnected ? "connected" : "not connected"
            let counts =
                "\(broker.deliveredCount) delivered, \(broker.waitingCount) waiting, \(broker.droppedCount) dropped"
            lines.append("broker \(broker.address): \(state), \(counts)")
            if let failure = broker.storeFailure {
                lines.append("  messages cannot be stored: \(failure.printable())")
            }
        }
        lines.append("advertisements received: \(advertisementCount)")
        for (reason, count) in closedClientCounts.sorted(by: { $0.key < $1.key }) {
            lines.append("clients closed, \(reason): \(count)")
        }
        return lines.joined(separator: "\n")
    }
}
