import BluetoothTypes

/// The services of a host that peers reach over credit-based channels, each with its SPSM.
///
/// One registry serves all links of a host.
public struct SPSMRegistry: Sendable {
    /// What a link must be for a service's channels (Vol 3, Part C, 10.3.2).
    public struct SecurityRequirements: Hashable, Sendable {
        public var needsEncryption: Bool
        /// Whether the key must be authenticated against a person in the middle; this needs encryption as well.
        public var needsAuthentication: Bool
        /// Whether the key must be an authenticated one of LE Secure Connections, of 16 bytes (LE security mode 1, level 4);
        /// this needs encryption and authentication as well.
        public var needsSecureConnections: Bool
        /// Whether the app's consent for the peer is needed.
        public var needsAuthorization: Bool
        /// Of an encrypted link, in octets: 7 to 16.
        public var minimumKeySize: UInt8

        public init(
            needsEncryption: Bool = false,
            needsAuthentication: Bool = false,
            needsSecureConnections: Bool = false,
            needsAuthorization: Bool = false,
            minimumKeySize: UInt8 = 7
        ) {
            self.needsEncryption = needsEncryption
            self.needsAuthentication = needsAuthentication
            self.needsSecureConnections = needsSecureConnections
            self.needsAuthorization = needsAuthorization
            self.minimumKeySize = minimumKeySize
        }

        /// What a link lacks, as the response says it; nil where nothing.
        ///
        /// A peer that claims a bonded device's address gets no channel before it has verified its identity by encryption.
        public func refusal(for security: LinkSecurity) -> CreditBasedConnectionResult? {
            let needsAuthentication = needsAuthentication || needsSecureConnections
            let needsKey = needsEncryption || needsAuthentication || security.isIdentityUnverified
            if needsKey, !security.isEncrypted || security.isIdentityUnverified {
                return security.hasKey ? .insufficientEncryption : .insufficientAuthentication
            }
            if needsAuthentication, !security.isAuthenticated { return .insufficientAuthentication }
            if needsSecureConnections, !security.isSecureConnections { return .insufficientAuthentication }
            let minimumKeySize = needsSecureConnections ? 16 : minimumKeySize
            if needsKey, security.keySize < minimumKeySize { return .encryptionKeySizeTooShort }
            if needsAuthorization, !security.isAuthorized { return .insufficientAuthorization }
            return nil
        }
    }

    /// How channels to one service are made.
    public struct Service: Equatable, Sendable {
        public var configuration: CreditBasedChannel.Configuration
        public var security: SecurityRequirements

        public init(
            configuration: CreditBasedChannel.Configuration = .init(),
            security: SecurityRequirements = .init()
        ) {
            self.configuration = configuration
            self.security = security
        }
    }

    /// A service cannot be registered.
    public enum RegistrationError: Error, Equatable, Sendable {
        /// The SPSM lies in neither range.
        case invalidSPSM(SPSM)
        case alreadyRegistered(SPSM)
        /// Every dynamic SPSM has a service.
        case noDynamicSPSMLeft
        /// The configuration's MTU or MPS is out of range.
        case invalidConfiguration
    }

    private var services: [SPSM: Service] = [:]
    private var nextDynamic = SPSM.dynamicRange.lowerBound

    public init() {}

    /// Whether a service's channels need encryption.
    public var hasProtectedServices: Bool {
        services.values.contains {
            $0.security.needsEncryption || $0.security.needsAuthentication || $0.security.needsSecureConnections
        }
    }

    /// The service with an SPSM, if there is one.
    public subscript(spsm: SPSM) -> Service? { services[spsm] }

    /// Registers a service under an SPSM of its own choice.
    public mutating func register(_ service: Service, at spsm: SPSM) throws(RegistrationError) {
        guard spsm.isValid else { throw .invalidSPSM(spsm) }
        guard service.configuration.isValid else { throw .invalidConfiguration }
        guard services[spsm] == nil else { throw .alreadyRegistered(spsm) }
        services[spsm] = service
    }

    /// Registers a service under a dynamic SPSM and returns it.
    ///
    /// One that was given back is used again only after all others, so that a peer which remembers it does not reach
    /// another service soon.
    public mutating func register(_ service: Service) throws(RegistrationError) -> SPSM {
        guard service.configuration.isValid else { throw .invalidConfiguration }
        for _ in SPSM.dynamicRange {
            let spsm = SPSM(rawValue: nextDynamic)
            nextDynamic = nextDynamic == SPSM.dynamicRange.upperBound ? SPSM.dynamicRange.lowerBound : nextDynamic + 1
            if services[spsm] == nil {
                services[spsm] = service
                return spsm
            }
        }
        throw .noDynamicSPSMLeft
    }

    /// Takes a service back: no more channels are made to it; those that there are stay.
    ///
    /// - Returns: the service, or nil where none had the SPSM.
    @discardableResult
    public mutating func unregister(_ spsm: SPSM) -> Service? {
        services.removeValue(forKey: spsm)
    }
}
