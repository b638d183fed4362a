import BluetoothTypes

extension IsochronousEngine {
    /// Ends everything, because the controller was reset or the host is closed.
    mutating func reset(_ error: HostError, _ reason: DisconnectionReason) -> [IsochronousEffect] {
        var effects: [IsochronousEffect] = []
        for stream in streams.values where stream.isReported {
            guard let identifier = stream.information?.identifier else { continue }
            effects.append(.ended(identifier, reason))
            endReasons[identifier] = reason
        }
        for group in groups.values { if let opening = group.opening { effects.append(.failed(opening.number, error)) } }
        effects += waiting.map { .failed($0.number, error) }
        effects += accepted.values.map { .failed($0, error) }
        effects += resetBroadcasts(error, reason)
        let (identifier, accepts, reasons) = (lastIdentifier, acceptsRequests, endReasons)
        self = IsochronousEngine()
        (lastIdentifier, acceptsRequests, endReasons) = (identifier, accepts, reasons)
        return effects
    }
}
