import BLEHCI
import BluetoothTypes

// The requests of centrals for streams, which the app of the peripheral accepts or rejects.
extension IsochronousEngine {
    /// Handles the request of a central for a stream. It replaces an earlier one with the same handle, which has ended.
    ///
    /// - Parameters:
    ///   - link: the connection; nil if it is unknown.
    ///   - isUnverified: whether the central may only claim the identity of a bonded peer.
    mutating func requested(
        _ event: LECISRequest,
        on link: LinkIdentifier?,
        isUnverified: Bool = false,
        number: UInt64
    ) -> [IsochronousEffect] {
        let handle = event.cisConnectionHandle
        requests[handle] = nil
        guard !isUnverified else { return [rejection(of: handle, .connectionRejectedDueToSecurityReasons)] }
        guard acceptsRequests, let link, streams[handle] == nil, requests.count < IsochronousEngine.requestLimit
        else { return [rejection(of: handle)] }
        let request = IsochronousStreamRequest(number: number, link: link, cigID: event.cigID, cisID: event.cisID)
        requests[handle] = request
        return [.requested(request)]
    }

    func rejection(
        of handle: ConnectionHandle,
        _ reason: HCIErrorCode = .connectionRejectedDueToLimitedResources
    ) -> IsochronousEffect {
        .send(CommandRequest(LERejectCISRequest(connectionHandle: handle, reason: reason), .unawaited))
    }

    private func handle(ofRequest number: UInt64) -> ConnectionHandle? {
        requests.first { $0.value.number == number }?.key
    }

    /// Accepts a request.
    ///
    /// - Throws: ``HostError/cancelled`` if the request was answered, or has ended with its connection.
    mutating func accept(_ number: UInt64) throws(HostError) -> [IsochronousEffect] {
        guard let handle = handle(ofRequest: number), let request = requests.removeValue(forKey: handle) else {
            throw .cancelled
        }
        endedHandles.removeAll { $0.handle == handle }
        streams[handle] = Stream(link: request.link, cigID: nil, phase: .creating)
        accepted[handle] = number
        return [.send(CommandRequest(LEAcceptCISRequest(connectionHandle: handle), .isochronous(.accept(handle))))]
    }

    /// Rejects a request. Does nothing if it was answered.
    mutating func reject(_ number: UInt64) -> [IsochronousEffect] {
        guard let handle = handle(ofRequest: number) else { return [] }
        requests[handle] = nil
        return [rejection(of: handle)]
    }

    /// Rejects all requests that the app has not answered, because it accepts none any more.
    mutating func rejectAll() -> [IsochronousEffect] {
        acceptsRequests = false
        defer { requests = [:] }
        return requests.keys.map { rejection(of: $0) }
    }

    mutating func acceptanceFailed(_ handle: ConnectionHandle, _ error: HostError) -> [IsochronousEffect] {
        if streams[handle]?.phase == .creating { forget(handle) }
        return accepted.removeValue(forKey: handle).map { [.failed($0, error)] } ?? []
    }
}
