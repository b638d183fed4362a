extension AssociationModel {
    /// Selects the model for two devices, as seen from `role` (Vol 3, Part H, 2.3.5.1, tables 2.6 to 2.8).
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

    fileprivate init(
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
            // If both could show the passkey, the initiator does.
            self = role == .initiator ? .passkeyShownHere : .passkeyTypedHere
        } else if initiator.isKeyboard, responder.isDisplay {
            self = role == .initiator ? .passkeyTypedHere : .passkeyShownHere
        } else {
            self = .justWorks
        }
    }

    /// Whether the model protects against a man in the middle.
    var isAuthenticated: Bool { self != .justWorks }

    /// Whether the peer may send keypress notifications.
    var isTypedByPeer: Bool { self == .passkeyShownHere || self == .passkeyTypedOnBoth }
}

extension IOCapability {
    /// Whether two devices with these capabilities can protect a pairing against an attacker between them, without
    /// out-of-band data.
    package func canAuthenticate(with other: IOCapability, isSecureConnections: Bool) -> Bool {
        AssociationModel(initiator: self, responder: other, isSecureConnections: isSecureConnections, role: .initiator)
            .isAuthenticated
    }

    /// Whether the device can show six digits.
    fileprivate var isDisplay: Bool {
        switch self {
        case .displayOnly, .displayYesNo, .keyboardDisplay: true
        case .keyboardOnly, .noInputNoOutput: false
        }
    }

    /// Whether the device can input six digits.
    fileprivate var isKeyboard: Bool { self == .keyboardOnly || self == .keyboardDisplay }

    /// Whether the device can show six digits and input yes or no.
    fileprivate var comparesNumbers: Bool { self == .displayYesNo || self == .keyboardDisplay }
}
