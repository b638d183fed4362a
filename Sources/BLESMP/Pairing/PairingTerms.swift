import BluetoothTypes

/// The role in a pairing: the initiator, the central, sends the Pairing Request; the responder answers it.
enum PairingRole: Hashable, Sendable {
    case initiator
    case responder
}

/// The role, addresses and parameters of this device in a pairing, as they were when the pairing began.
struct PairingTerms: Sendable {
    let role: PairingRole
    let ownAddress: DeviceAddress
    let peerAddress: DeviceAddress
    /// The address under which the owner knows the peer; nil if it knows none.
    let peerIdentity: DeviceAddress?
    let parameters: PairingParameters
    let identity: LocalIdentity

    /// The keys that this device can distribute.
    private var ownKeys: DistributedKeys {
        identity.resolvingKey == nil ? [.encryption, .signing] : .overLink
    }

    var request: PairingRequest {
        PairingRequest(
            features: PairingFeatures(
                ioCapability: parameters.ioCapability,
                hasOutOfBandData: parameters.hasOutOfBandData(
                    forSecureConnections: parameters.supportsSecureConnections
                ),
                authenticationRequirements: parameters.authenticationRequirements,
                maximumKeySize: parameters.offeredKeySize,
                initiatorKeys: parameters.bonds ? ownKeys : [],
                responderKeys: parameters.bonds ? .overLink : []
            )
        )
    }

    func response(to request: PairingRequest) -> PairingResponse {
        let asked = request.features.authenticationRequirements
        let isSecure = parameters.supportsSecureConnections && asked.contains(.secureConnections)
        var keys: DistributedKeys = parameters.bonds && asked.bonds ? .overLink : []
        if isSecure { keys.remove(.encryption) }
        return PairingResponse(
            features: PairingFeatures(
                ioCapability: parameters.ioCapability,
                hasOutOfBandData: parameters.hasOutOfBandData(forSecureConnections: isSecure),
                authenticationRequirements: parameters.authenticationRequirements,
                maximumKeySize: parameters.offeredKeySize,
                initiatorKeys: request.features.initiatorKeys.intersection(keys),
                responderKeys: request.features.responderKeys.intersection(keys).intersection(ownKeys)
            )
        )
    }
}

extension PairingParameters {
    /// Whether LE Secure Connections is supported. A temporary key is for LE legacy pairing and has no meaning in LE
    /// Secure Connections. So a device that has one, and does not require LE Secure Connections, offers only legacy
    /// pairing.
    var supportsSecureConnections: Bool {
        requiresSecureConnections || offersSecureConnections && temporaryKey == nil
    }

    /// The key of out-of-band LE legacy pairing, which either side may have generated.
    var temporaryKey: UInt128? {
        if case .temporaryKey(let key) = peerOutOfBandData { return key }
        if case .temporaryKey(let key) = ownOutOfBandData { return key }
        return nil
    }

    func hasOutOfBandData(forSecureConnections isSecure: Bool) -> Bool {
        guard isSecure else { return temporaryKey != nil }
        guard case .secureConnections = peerOutOfBandData else { return false }
        return true
    }

    var authenticationRequirements: AuthenticationRequirements {
        var requirements: AuthenticationRequirements = bonds ? .bonding : []
        if requiresAuthentication || ioCapability != .noInputNoOutput { requirements.insert(.authentication) }
        if supportsSecureConnections { requirements.insert(.secureConnections) }
        if usesKeypressNotifications { requirements.insert(.keypress) }
        return requirements
    }

    var offeredKeySize: UInt8 {
        min(max(maximumKeySize, PairingFeatures.keySizes.lowerBound), PairingFeatures.keySizes.upperBound)
    }
}
