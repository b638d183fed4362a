extension AssociationModel {
    /// Which model two devices come to (Vol 3, Part H, 2.3.5.1, tables 2.6 to 2.8), as seen from `role`.
    init(
        request: PairingFeatures,
        response: PairingFeatures,
        isSecureConnections: Bool,
        role: PairingRole
    ) {
        let hasOutOfBandData =
            isSecureConnections
            ? request.hasOutOfBandData || response.hasOutOfBandData
            : request.hasOutOfBandData && response.hasOutOfBandData
        let requirements = request.authenticationRequirements.union(response.authenticationRequirements)
        if hasOutOfBandData {
            self = .outOfBand
        } else if !requirements.contains(.authentication) {
            self = .justWorks
        } else {
            self.init(
                initiator: request.ioCapability,
                responder: response.ioCapability,
                isSecureConnections: isSecureConnections,
                role: role
            )
        }
    }

    private init(
        initiator: IOCapability,
        responder: IOCapability,
        isSecureConnections: Bool,
        role: PairingRole
    ) {
        if isSecureConnections, initiator.comparesNumbers, responder.comparesNumbers {
            self = .numericComparison
        } else if initiator == .keyboardOnly, responder == .keyboardOnly {
            self = .passkeyTypedOnBoth
        } else if initiator.isDisplay, responder.isKeyboard {
            // Where both could show the passkey, the initiator does.
            self = role == .initiator ? .passkeyShownHere : .passkeyTypedHere
        } else if initiator.isKeyboard, responder.isDisplay {
            self = role == .initiator ? .passkeyTypedHere : .passkeyShownHere
        } else {
            self = .justWorks
        }
    }

    /// Whether nobody can have stood between.
    var isAuthenticated: Bool { self != .justWorks }

    /// Whether the peer may tell of keys that are pressed.
    var isTypedByPeer: Bool { self == .passkeyShownHere || self == .passkeyTypedOnBoth }
}

extension IOCapability {
    /// Whether it can show six digits.
    fileprivate var isDisplay: Bool {
        switch self {
        case .displayOnly, .displayYesNo, .keyboardDisplay: true
        case .keyboardOnly, .noInputNoOutput: false
        }
    }

    /// Whether it can take six digits in.
    fileprivate var isKeyboard: Bool { self == .keyboardOnly || self == .keyboardDisplay }

    /// Whether it can show six digits and take in a yes or no.
    fileprivate var comparesNumbers: Bool { self == .displayYesNo || self == .keyboardDisplay }
}
