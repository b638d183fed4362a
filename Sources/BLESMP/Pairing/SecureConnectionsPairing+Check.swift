import BluetoothTypes

/// Authentication stage 2 (Vol 3, Part H, 2.3.5.6.5): each side proves that it has computed the same keys from the same
/// exchange.
struct KeyCheck: Sendable {
    let longTermKey: UInt128
    /// The check value of this device.
    let own: UInt128
    /// The expected check value of the peer.
    let peer: UInt128
}

extension SecureConnectionsPairing {
    /// Computes the keys and exchanges the checks. In numeric comparison, the user compares first; a delayed consent is
    /// asked for here.
    mutating func beginStage2(
        of exchange: Exchange,
        ownNonce: UInt128,
        peerNonce: UInt128,
        passkey: UInt32?,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        let isInitiator = agreement.terms.role == .initiator
        let (initiatorNonce, responderNonce) = isInitiator ? (ownNonce, peerNonce) : (peerNonce, ownNonce)
        let check = keyCheck(
            of: exchange,
            ownNonce: ownNonce,
            peerNonce: peerNonce,
            passkey: passkey,
            by: context.toolbox
        )
        if agreement.delaysConsent {
            context.ask(.consent(agreement.model, agreement.strength))
            state = .comparing(check, peerCheck: nil)
            return
        }
        guard agreement.model == .numericComparison else { return begin(check, in: &context) }
        let (initiatorKey, responderKey) = isInitiator ? (ownKey, exchange.peerKey) : (exchange.peerKey, ownKey)
        context.ask(
            .compare(context.toolbox.g2(u: initiatorKey.x, v: responderKey.x, x: initiatorNonce, y: responderNonce))
        )
        state = .comparing(check, peerCheck: nil)
    }

    /// Takes the user's confirmation that the numbers are the same, or the delayed consent.
    mutating func acceptNumber(
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) -> UInt128? {
        guard case .comparing(let check, let peerCheck) = state else { return nil }
        begin(check, in: &context)
        guard let peerCheck else { return nil }
        return try receive(check: peerCheck, against: check, in: &context)
    }

    var isComparing: Bool {
        if case .comparing = state { true } else { false }
    }

    /// Takes the peer's check. The responder then sends its own.
    func receive(
        check: UInt128,
        against expected: KeyCheck,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) throws(PairingFailedReason) -> UInt128 {
        guard check == expected.peer else { throw .dhKeyCheckFailed }
        if agreement.terms.role == .responder { context.send(PairingDHKeyCheck(value: expected.own)) }
        return expected.longTermKey
    }

    private mutating func begin(
        _ check: KeyCheck,
        in context: inout PairingContext<some SecurityFunctions, some RandomNumberGenerator>
    ) {
        if agreement.terms.role == .initiator { context.send(PairingDHKeyCheck(value: check.own)) }
        state = .checking(check)
    }

    private func keyCheck(
        of exchange: Exchange,
        ownNonce: UInt128,
        peerNonce: UInt128,
        passkey: UInt32?,
        by toolbox: Toolbox<some SecurityFunctions>
    ) -> KeyCheck {
        let isInitiator = agreement.terms.role == .initiator
        let (ownAddress, peerAddress) = (agreement.terms.ownAddress, agreement.terms.peerAddress)
        let keys = toolbox.f5(
            w: exchange.sharedKey,
            n1: isInitiator ? ownNonce : peerNonce,
            n2: isInitiator ? peerNonce : ownNonce,
            a1: agreement.initiatorAddress,
            a2: agreement.responderAddress
        )
        // Each side proves that it knows the other's passkey or out-of-band data.
        let proved = passkey.map { UInt128($0) } ?? agreement.peerOutOfBandData?.random ?? 0
        let asked = passkey.map { UInt128($0) } ?? agreement.ownOutOfBandSecret?.random ?? 0
        return KeyCheck(
            longTermKey: keys.longTermKey,
            own: toolbox.f6(
                w: keys.macKey,
                n1: ownNonce,
                n2: peerNonce,
                r: proved,
                ioCapability: agreement.ownFeatures.ioCapabilityBytes,
                a1: ownAddress,
                a2: peerAddress
            ),
            peer: toolbox.f6(
                w: keys.macKey,
                n1: peerNonce,
                n2: ownNonce,
                r: asked,
                ioCapability: agreement.peerFeatures.ioCapabilityBytes,
                a1: peerAddress,
                a2: ownAddress
            )
        )
    }
}
