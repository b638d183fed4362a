import BLEATT
import BLESMP
import BluetoothTypes

// Requests of the client that a server has refused because the link is not secure enough.
extension BluetoothHost {
    /// Returns the security that a server's refusal requires; nil if the link has it, or if the refusal has another
    /// reason.
    private func requirement(of error: ATTErrorCode, on link: Link) -> RequiredSecurity? {
        let required: RequiredSecurity
        switch (error, link.security.strength) {
        case (.insufficientAuthentication, nil), (.insufficientEncryption, nil): required = .encryption
        // If an authenticated key is not enough, the server requires LE Secure Connections.
        case (.insufficientAuthentication, let strength):
            required = RequiredSecurity(
                isAuthenticated: true,
                isSecureConnections: strength?.isAuthenticated ?? false
            )
        case (.encryptionKeySizeTooShort, _): required = RequiredSecurity(keySizeInBytes: 16)
        default: return nil
        }
        if let strength = link.security.strength, required.isMet(by: strength) { return nil }
        return required
    }

    /// Begins to make a link as secure as a server requires. The client then sends the request again.
    ///
    /// - Returns: false if the policy does not allow that, or the refusal has another reason.
    func elevateSecurity(of link: Link, after error: ATTErrorCode) -> Bool {
        let identifier = link.identifier
        guard links[identifier] != nil, link.security.policy.securesOnDemand,
            let required = requirement(of: error, on: link)
        else { return false }
        // The packets that could be sent after the refusal are sent first.
        loop.execute { [weak self] in
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                host.require(SecurityRequirement(.elevation(error), required, for: .demand), of: link)
                host.endInput()
            }
        }
        return true
    }

    /// Sends the refused request again, or ends its procedure.
    ///
    /// - Parameters:
    ///   - result: whether the link is as secure as the server requires.
    ///   - error: the server's refusal.
    func securityElevated(
        _ result: Result<KeyStrength, HostError>,
        _ error: ATTErrorCode,
        on identifier: LinkIdentifier
    ) {
        guard let link = links[identifier] else { return }
        let failure: HostError? = if case .failure(let failure) = result { failure } else { nil }
        securityElevatedForEnhancedBearers(failure, error, of: link)
        // Another refusal has a requirement of its own.
        guard link.att.bearer.awaitedRequest == nil, [error, nil].contains(link.client.refusalInElevation) else {
            return pumpLanes(of: link)
        }
        var buffer = sender.takeBuffer()
        let opcode = link.att.securityElevated(failure, after: error, into: &buffer)
        performClientEffects(of: link)
        link.att.elevationFailureWasTaken()
        advanceClient(of: link, opcode, consume buffer)
        if opcode == nil { pumpClient(of: link) }
        pumpLanes(of: link)
    }
}
