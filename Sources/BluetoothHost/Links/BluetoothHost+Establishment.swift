import BluetoothTypes

// A controller may report a connection as soon as it has sent the request for it. The connection is established when
// the peer has answered. Without an answer within six connection events, the link ends with Connection Failed to be
// Established (Vol 6, Part B, 4.5 and 4.5.2).
extension BluetoothHost {
    /// The number of connection intervals after which the peer of a link that has not ended must have been heard: six,
    /// and one for the start of the connection.
    private static let establishmentIntervals = 7

    /// Whether the peer of a link has been heard. A link that has ended counts as established.
    package func isEstablished(_ identifier: LinkIdentifier) -> Bool {
        links[identifier]?.isEstablished ?? true
    }

    /// Calls `observer` on the loop once the peer of a link has been heard, or the link has lasted so long that it must
    /// have been. If the link ends before that, `observer` is released without a call.
    package func observeEstablishment(of identifier: LinkIdentifier, _ observer: @escaping @Sendable () -> Void) {
        guard let link = links[identifier] else { return }
        guard !link.isEstablished else {
            deliver(.action(observer))
            return endInput()
        }
        link.observers.establishment.append(observer)
        // Not all answers of the peer are reported to the host.
        run(after: link.control.parameters.interval * BluetoothHost.establishmentIntervals) { [weak self] in
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                host.establish(link)
                host.endInput()
            }
        }
    }

    /// Marks a link whose peer has been heard.
    func establish(_ link: Link) {
        guard !link.isEstablished else { return }
        link.isEstablished = true
        let observers = link.observers.establishment
        link.observers.establishment = []
        for observer in observers { deliver(.action(observer)) }
    }
}
