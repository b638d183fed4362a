import BLEByteCoding
import BluetoothTypes

// Other receive lengths for open channels (Vol 3, Part A, 4.27).
extension CreditBasedChannels {
    /// A Reconfigure Request that waits until the peer has so few credits that the longer MPS fits.
    struct HeldReconfiguration {
        let request: CreditBasedReconfigureRequest
        /// The time until which it waits; nil until the owner has asked for commands.
        var deadline: Instant?
    }

    /// Requests other receive lengths for channels of the enhanced variant. They apply once the peer has agreed, which
    /// ``Event/reconfigurationFinished(_:_:)`` reports.
    ///
    /// The peer may use the credits that it has for K-frames of a longer MPS. If these would exceed sixteen times the
    /// capacity, the request waits until the peer has used some of its credits and the SDUs were read, for at most 30
    /// s.
    public mutating func reconfigure(
        _ identifiers: ChannelIdentifierList,
        mtu: UInt16,
        mps: UInt16
    ) throws(ReconfigurationError) {
        guard !identifiers.isEmpty, !identifiers.hasDuplicates else { throw .invalidChannels }
        guard CreditBasedChannel.Variant.enhanced.allows(mtu: mtu, mps: mps) else { throw .invalidParameters }
        for identifier in identifiers {
            guard let index = index(of: identifier), channels[index].isOpen else { throw .notOpen(identifier) }
            guard channels[index].variant == .enhanced else { throw .notEnhanced(identifier) }
            guard mtu >= channels[index].mtu else { throw .reductionOfMTUNotAllowed }
            guard identifiers.count == 1 || mps >= channels[index].mps else { throw .reductionOfMPSNotAllowed }
            guard !channels[index].isReconfiguring else { throw .pending }
        }
        for identifier in identifiers {
            guard let index = index(of: identifier) else { continue }
            channels[index].isReconfiguring = true
            channels[index].inbound.prepareReconfiguration(mps: mps)
        }
        let request = CreditBasedReconfigureRequest(mtu: mtu, mps: mps, destinations: identifiers)
        heldReconfigurations.append(HeldReconfiguration(request: request))
    }

    /// Whether a Reconfigure Request is not sent yet.
    public var holdsReconfiguration: Bool { !heldReconfigurations.isEmpty }

    /// Removes and returns the oldest Reconfigure Request that can be sent. The time of the others begins.
    ///
    /// Channels that have ended are left out, because the peer would refuse the whole request. A request is dropped if
    /// all its channels have ended.
    mutating func takeReconfiguration(at now: Instant) -> CreditBasedReconfigureRequest? {
        var position = 0
        while position < heldReconfigurations.count {
            var request = heldReconfigurations[position].request
            var destinations = ChannelIdentifierList()
            var areCreditsAffordable = true
            for identifier in request.destinations {
                guard let index = index(of: identifier), channels[index].isOpen, channels[index].isReconfiguring else {
                    continue
                }
                destinations.append(identifier)
                if !channels[index].inbound.areCreditsAffordable { areCreditsAffordable = false }
            }
            request.destinations = destinations
            if destinations.isEmpty {
                heldReconfigurations.remove(at: position)
            } else if areCreditsAffordable {
                heldReconfigurations.remove(at: position)
                return request
            } else {
                let deadline = heldReconfigurations[position].deadline
                heldReconfigurations[position].deadline = deadline ?? now + SignalingChannel.responseTimeout
                position += 1
            }
        }
        return nil
    }

    /// Ends the Reconfigure Requests that have waited too long.
    mutating func endHeldReconfigurations(at now: Instant) {
        let isOverdue = { (held: HeldReconfiguration) in held.deadline.map { $0 <= now } ?? false }
        while let position = heldReconfigurations.firstIndex(where: isOverdue) {
            finish(heldReconfigurations.remove(at: position).request, .timedOut)
        }
    }

    mutating func finish(_ request: CreditBasedReconfigureRequest, _ outcome: ReconfigurationOutcome) {
        for identifier in request.destinations {
            guard let index = index(of: identifier), channels[index].isReconfiguring else { continue }
            channels[index].isReconfiguring = false
            if outcome == .answered(.successful) {
                channels[index].inbound.reconfigure(mtu: request.mtu, mps: request.mps)
            } else {
                channels[index].inbound.cancelReconfiguration()
            }
        }
        events.append(.reconfigurationFinished(request.destinations, outcome))
    }
}
