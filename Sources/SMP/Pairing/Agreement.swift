import BluetoothTypes

/// What two devices have agreed on by a Pairing Request and its response (Vol 3, Part H, 2.3).
struct Agreement: Sendable {
    let terms: PairingTerms
    let request: PairingRequest
    let response: PairingResponse
    let model: AssociationModel
    let strength: KeyStrength

    /// - Throws: why this device does not agree.
    init(terms: PairingTerms, request: PairingRequest, response: PairingResponse) throws(PairingFailedReason) {
        self.terms = terms
        self.request = request
        self.response = response
        let parameters = terms.parameters
        let (asked, answered) = (request.features, response.features)

        // The responder may take from what is to be distributed, but not add to it (3.6.1).
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

    /// Whether both sides keep what they are given.
    var isBonded: Bool {
        request.features.authenticationRequirements.bonds && response.features.authenticationRequirements.bonds
    }

    /// Whether both sides want to be told of keys that are pressed.
    var usesKeypressNotifications: Bool {
        request.features.authenticationRequirements.intersection(response.features.authenticationRequirements)
            .contains(.keypress)
    }

    /// What this device distributes.
    var ownKeys: DistributedKeys { distributed(by: terms.role) }
    /// What the peer distributes.
    var peerKeys: DistributedKeys { distributed(by: terms.role == .initiator ? .responder : .initiator) }

    private func distributed(by role: PairingRole) -> DistributedKeys {
        let keys = role == .initiator ? response.features.initiatorKeys : response.features.responderKeys
        return keys.intersection(strength.isSecureConnections ? [.identity, .signing] : .overLink)
    }

    /// The key with its octets beyond the agreed size cleared (2.3.4).
    func shortened(_ key: UInt128) -> UInt128 {
        let excess = 128 - 8 * UInt128(strength.keySize)
        return (key << excess) >> excess
    }

    /// A key with what it is worth by this agreement, which encryption is started with at once.
    func key(_ value: UInt128) -> LongTermKey {
        LongTermKey(value: shortened(value), strength: strength)
    }
}

// MARK: Out of band data of LE Secure Connections

extension Agreement {
    /// What this device has of the peer.
    var peerOutOfBandData: (confirm: UInt128, random: UInt128)? {
        guard model == .outOfBand, ownFeatures.hasOutOfBandData,
            case .secureConnections(let confirm, let random) = terms.parameters.peerOutOfBandData
        else { return nil }
        return (confirm, random)
    }

    /// Whether the peer says that it has what this device has handed over.
    var peerHasOutOfBandData: Bool { model == .outOfBand && peerFeatures.hasOutOfBandData }

    /// What belongs to the data that the peer has of this device.
    var ownOutOfBandSecret: (privateKey: P256PrivateKey, random: UInt128)? {
        guard peerHasOutOfBandData,
            case .secureConnections(let privateKey, let random) = terms.parameters.ownOutOfBandData
        else { return nil }
        return (privateKey, random)
    }
}
