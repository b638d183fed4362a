import BluetoothTypes

/// The terms that two devices have negotiated by a Pairing Request and its response (Vol 3, Part H, 2.3).
struct Agreement: Sendable {
    let terms: PairingTerms
    let request: PairingRequest
    let response: PairingResponse
    let model: AssociationModel
    let strength: KeyStrength

    /// - Throws: the reason why this device does not agree.
    init(terms: PairingTerms, request: PairingRequest, response: PairingResponse) throws(PairingFailedReason) {
        self.terms = terms
        self.request = request
        self.response = response
        let parameters = terms.parameters
        let (asked, answered) = (request.features, response.features)

        // The responder may remove keys from the request, but not add any (3.6.1).
        guard
            answered.initiatorKeys.intersection(.defined).isSubset(of: asked.initiatorKeys),
            answered.responderKeys.intersection(.defined).isSubset(of: asked.responderKeys)
        else { throw .invalidParameters }

        let isSecure = asked.authenticationRequirements.intersection(answered.authenticationRequirements)
            .contains(.secureConnections)
        if parameters.requiresSecureConnections, !isSecure { throw .authenticationRequirements }

        model = AssociationModel(
            request: asked,
            response: answered,
            isSecureConnections: isSecure,
            role: terms.role
        )
        strength = KeyStrength(
            isAuthenticated: model.isAuthenticated,
            isSecureConnections: isSecure,
            keySize: min(asked.maximumKeySize, answered.maximumKeySize)
        )
        if strength.keySize < parameters.minimumKeySize { throw .encryptionKeySize }
        if parameters.requiresAuthentication, !strength.isAuthenticated { throw .authenticationRequirements }
        if model == .outOfBand {
            guard isSecure ? !peerHasOutOfBandData || ownOutOfBandSecret != nil : parameters.temporaryKey != nil else {
                throw .outOfBandNotAvailable
            }
        }
    }

    var ownFeatures: PairingFeatures { terms.role == .initiator ? request.features : response.features }
    var peerFeatures: PairingFeatures { terms.role == .initiator ? response.features : request.features }

    var initiatorAddress: DeviceAddress { terms.role == .initiator ? terms.ownAddress : terms.peerAddress }
    var responderAddress: DeviceAddress { terms.role == .initiator ? terms.peerAddress : terms.ownAddress }

    /// Whether both sides store the keys.
    var isBonded: Bool {
        request.features.authenticationRequirements.bonds && response.features.authenticationRequirements.bonds
    }

    /// Whether both sides support keypress notifications.
    var usesKeypressNotifications: Bool {
        request.features.authenticationRequirements.intersection(response.features.authenticationRequirements)
            .contains(.keypress)
    }

    /// Whether the peer may type its passkey, and send keypress notifications, while this device waits for consent.
    ///
    /// In LE legacy pairing, the responder can begin as soon as it has sent its Pairing Response (3.5.8). In LE Secure
    /// Connections, passkey entry follows the public keys.
    var mayReceiveKeypressBeforePhase2: Bool {
        terms.role == .initiator && !strength.isSecureConnections && model.isTypedByPeer
    }

    /// Whether the consent is asked for when the nonces have been exchanged.
    var delaysConsent: Bool {
        model == .justWorks && strength.isSecureConnections && terms.parameters.delaysJustWorksConsent
    }

    /// The keys that this device distributes.
    var ownKeys: DistributedKeys { distributed(by: terms.role) }
    /// The keys that the peer distributes.
    var peerKeys: DistributedKeys { distributed(by: terms.role == .initiator ? .responder : .initiator) }

    private func distributed(by role: PairingRole) -> DistributedKeys {
        let keys = role == .initiator ? response.features.initiatorKeys : response.features.responderKeys
        return keys.intersection(strength.isSecureConnections ? [.identity, .signing] : .overLink)
    }

    /// The key with its bytes beyond the negotiated size cleared (2.3.4).
    func shortened(_ key: UInt128) -> UInt128 {
        let excess = 128 - 8 * UInt128(strength.keySize)
        return (key << excess) >> excess
    }

    /// A key with the negotiated strength, for encryption that starts at once.
    func key(_ value: UInt128) -> LongTermKey {
        LongTermKey(value: shortened(value), strength: strength)
    }
}

// MARK: Out-of-band data of LE Secure Connections

extension Agreement {
    /// The out-of-band data that this device has of the peer.
    var peerOutOfBandData: (confirm: UInt128, random: UInt128)? {
        guard model == .outOfBand, ownFeatures.hasOutOfBandData,
            case .secureConnections(let confirm, let random) = terms.parameters.peerOutOfBandData
        else { return nil }
        return (confirm, random)
    }

    /// Whether the peer reports that it has this device's out-of-band data.
    var peerHasOutOfBandData: Bool { model == .outOfBand && peerFeatures.hasOutOfBandData }

    /// The secret that belongs to the out-of-band data that the peer has of this device.
    var ownOutOfBandSecret: (privateKey: P256PrivateKey, random: UInt128)? {
        guard peerHasOutOfBandData,
            case .secureConnections(let privateKey, let random) = terms.parameters.ownOutOfBandData
        else { return nil }
        return (privateKey, random)
    }
}
