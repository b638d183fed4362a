import BluetoothTypes

// Keys, and secrets from which keys are derived, are not part of descriptions and reflections, so they cannot be logged
// by accident. Embedded Swift has no reflection.

#if !hasFeature(Embedded)
    extension LongTermKey: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(self, children: ["value": Redacted(), "strength": strength], displayStyle: .struct)
        }
    }

    extension SigningKey: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: ["value": Redacted(), "isAuthenticated": isAuthenticated, "nextCounter": nextCounter],
                displayStyle: .struct
            )
        }
    }

    extension Bond: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: [
                    "identity": identity,
                    "centralKey": centralKey as Any,
                    "peripheralKey": peripheralKey as Any,
                    "peerIOCapability": peerIOCapability as Any,
                    "identityResolvingKey": Redacted.optional(identityResolvingKey) as Any,
                    "peerSigningKey": peerSigningKey as Any,
                    "ownSigningKey": ownSigningKey as Any,
                ],
                displayStyle: .struct
            )
        }
    }

    extension LocalIdentity: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: ["address": address, "resolvingKey": Redacted.optional(resolvingKey) as Any],
                displayStyle: .struct
            )
        }
    }

    extension OutOfBandData: CustomReflectable {
        public var customMirror: Mirror {
            switch self {
            case .temporaryKey: Mirror(self, children: ["temporaryKey": Redacted()], displayStyle: .enum)
            case .secureConnections: Mirror(self, children: ["secureConnections": Redacted()], displayStyle: .enum)
            }
        }
    }

    extension OwnOutOfBandData: CustomReflectable {
        public var customMirror: Mirror {
            switch self {
            case .temporaryKey: Mirror(self, children: ["temporaryKey": Redacted()], displayStyle: .enum)
            case .secureConnections: Mirror(self, children: ["secureConnections": Redacted()], displayStyle: .enum)
            }
        }
    }

    extension P256PrivateKey: CustomReflectable {
        public var customMirror: Mirror { Mirror(self, children: ["value": Redacted()], displayStyle: .struct) }
    }

    extension DiffieHellmanKey: CustomReflectable {
        public var customMirror: Mirror { Mirror(self, children: ["value": Redacted()], displayStyle: .struct) }
    }

    extension EncryptionInformation: CustomReflectable {
        public var customMirror: Mirror { Mirror(self, children: ["longTermKey": Redacted()], displayStyle: .struct) }
    }

    extension IdentityInformation: CustomReflectable {
        public var customMirror: Mirror { Mirror(self, children: ["resolvingKey": Redacted()], displayStyle: .struct) }
    }

    extension SigningInformation: CustomReflectable {
        public var customMirror: Mirror { Mirror(self, children: ["signatureKey": Redacted()], displayStyle: .struct) }
    }

    extension SecurityChannel: CustomReflectable {
        /// The current pairing is left out: its states hold nonces and keys.
        public var customMirror: Mirror {
            Mirror(
                self,
                children: [
                    "role": role, "ownAddress": ownAddress, "peerAddress": peerAddress,
                    "peerIdentity": peerIdentity as Any, "parameters": parameters, "identity": identity,
                    "isPairing": isPairing,
                ],
                displayStyle: .struct
            )
        }
    }
#endif
