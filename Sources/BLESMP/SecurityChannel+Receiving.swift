import BLEByteCoding
import BluetoothTypes

/// The time that a pairing waits after the last PDU that was sent for it (Vol 3, Part H, 3.4).
let pairingTimeout = Duration.seconds(30)
/// The time from the beginning of a pairing in which keypress notifications of the peer restart the timeout. Without
/// this limit, a peer could keep a pairing open for any time.
let typingTimeLimit = Duration.seconds(300)

extension SecurityChannel {
    /// Takes a PDU of the Security Manager's channel.
    public mutating func receive(
        _ pdu: RawSpan,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        if case .closed = phase { return [] }
        let overdue = advance(to: now)
        guard overdue.isEmpty else { return overdue }
        // A command with a reserved code is ignored (3.3). A PDU without a code is not a command, and Pairing Failed
        // could not answer it, so it is ignored as well. A command of wrong length is answered with Invalid Parameters
        // (3.5.5).
        guard let code = pdu[checked: 0], CommandCode(rawValue: code) != nil else { return [] }
        guard code != CommandCode.pairingFailed.rawValue else {
            // A malformed Pairing Failed ends the pairing as well. It is never answered.
            let command = try? PairingFailed(decoding: pdu)
            return receiveFailed(command?.reason ?? .unspecifiedReason)
        }
        let command: SecurityManagerPDU
        do throws(PacketDecodingError) {
            command = try SecurityManagerPDU(decoding: pdu)
        } catch {
            return refuse(.invalidParameters)
        }
        switch phase {
        case .pairing:
            return pair(at: now, random: &random) { (pairing, context) throws(PairingFailure) in
                do throws(PairingFailedReason) {
                    try pairing.receive(command, in: &context)
                } catch {
                    throw .ended(error)
                }
            }
        case .idle, .asked, .asking:
            return receiveOutsidePairing(command, at: now, random: &random)
        case .closed:
            return []
        }
    }

    private mutating func receiveFailed(_ reason: PairingFailedReason) -> [PairingStep] {
        switch phase {
        case .asking, .pairing: end(.endedByPeer(reason))
        case .idle, .asked, .closed: []
        }
    }

    private mutating func receiveOutsidePairing(
        _ command: SecurityManagerPDU,
        at now: Instant,
        random: inout some RandomNumberGenerator
    ) -> [PairingStep] {
        switch (role, command) {
        case (.peripheral, .pairingRequest(let request)):
            var context = PairingContext(toolbox: toolbox, random: random)
            defer { random = context.random }
            do throws(PairingFailedReason) {
                phase = .pairing(
                    try Pairing(terms, request: request, in: &context),
                    deadline: now + pairingTimeout,
                    typingEnd: now + typingTimeLimit
                )
                return context.steps
            } catch {
                return end(.ended(error), telling: error)
            }
        case (.central, .securityRequest(let request)):
            let requirements = request.authenticationRequirements
            phase = .asked
            return [
                .securityRequested(
                    SecurityRequirements(
                        bonds: requirements.bonds,
                        isAuthenticated: requirements.contains(.authentication),
                        isSecureConnections: requirements.contains(.secureConnections)
                    )
                )
            ]
        case (.central, .pairingRequest), (.peripheral, .securityRequest):
            // Only the other role sends these (3.5.1 and 3.6.7).
            return refuse(.commandNotSupported)
        default:
            // A late command of an ended pairing. The peer knows of the end or will receive it.
            return []
        }
    }

    /// Rejects an invalid command and ends the pairing, if there is one.
    private mutating func refuse(_ reason: PairingFailedReason) -> [PairingStep] {
        isPairing ? end(.ended(reason), telling: reason) : [.send(failing: reason)]
    }

    // MARK: Pairing

    /// The terms of a pairing that begins now.
    var terms: PairingTerms {
        PairingTerms(
            role: role == .central ? .initiator : .responder,
            ownAddress: ownAddress,
            peerAddress: peerAddress,
            peerIdentity: peerIdentity,
            parameters: parameters,
            identity: identity
        )
    }

    /// Applies a change to the current pairing, if there is one.
    mutating func pair<Generator: RandomNumberGenerator>(
        at now: Instant,
        random: inout Generator,
        _ change: (inout Pairing, inout PairingContext<Functions, Generator>) throws(PairingFailure) -> Void
    ) -> [PairingStep] {
        let overdue = advance(to: now)
        guard overdue.isEmpty else { return overdue }
        guard case .pairing(var pairing, var deadline, let typingEnd) = phase else { return [] }
        var context = PairingContext(toolbox: toolbox, random: random)
        defer { random = context.random }
        do throws(PairingFailure) {
            try change(&pairing, &context)
        } catch .ended(let reason) {
            return end(.ended(reason), telling: reason)
        } catch {
            return end(error, telling: .unspecifiedReason)
        }
        if let outcome = pairing.outcome {
            phase = .idle
            return context.steps + [.completed(outcome)]
        }
        if context.hasSent {
            deadline = now + pairingTimeout
        } else if context.hasReportedKeypress {
            deadline = max(deadline, min(now + pairingTimeout, typingEnd))
        }
        phase = .pairing(pairing, deadline: deadline, typingEnd: typingEnd)
        return context.steps
    }

    /// Ends the pairing and drops its state.
    ///
    /// - Parameter reason: the reason to send to the peer; nil if the peer knows already.
    mutating func end(_ failure: PairingFailure, telling reason: PairingFailedReason? = nil) -> [PairingStep] {
        phase = .idle
        guard let reason else { return [.failed(failure)] }
        return [.send(failing: reason), .failed(failure)]
    }
}

extension PairingStep {
    /// Sends a Pairing Failed.
    static func send(failing reason: PairingFailedReason) -> PairingStep {
        .send(PacketBuffer.bytes { PairingFailed(reason: reason).encode(into: &$0) })
    }
}
