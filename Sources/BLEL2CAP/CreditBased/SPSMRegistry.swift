import BluetoothTypes

/// The services of a host that peers reach over credit-based channels, each with its SPSM.
///
/// One registry serves all links of a host.
public struct SPSMRegistry: Sendable {
    /// The link security that a service's channels require (Vol 3, Part C, 10.3.2).
    public struct SecurityRequirements: Hashable, Sendable {
        /// Whether the link must be encrypted.
        public var needsEncryption: Bool
        /// Whether the key must be authenticated against a man in the middle; this requires encryption as well.
        public var needsAuthentication: Bool
        /// Whether the key must be an authenticated key of LE Secure Connections, of 16 bytes
        /// (LE security mode 1, level 4). This requires encryption and authentication as well.
        public var needsSecureConnections: Bool
        /// Whether the app must authorize the peer.
        public var needsAuthorization: Bool
        /// The minimum key size of an encrypted link, in bytes: 7 to 16.
        public var minimumKeySize: UInt8

        /// Creates requirements. By default, there are none.
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

        /// The result for a link that does not meet the requirements; nil if it does.
        ///
        /// A peer that claims a bonded device's address gets no channel before encryption has verified its identity.
        public func refusal(for security: LinkSecurity) -> CreditBasedConnectionResult? {
            let needsAuthentication = needsAuthentication || needsSecureConnections
            let needsKey = needsEncryption || needsAuthentication || security.isIdentityUnverified
            if needsKey, !security.isEncrypted || security.isIdentityUnverified {
                if security.isKeyTooShort { return .encryptionKeySizeTooShort }
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

    /// The properties of channels to one service.
    public struct Service: Equatable, Sendable {
        /// The lengths and queue capacities that this device uses for each channel to the service.
        public var configuration: CreditBasedChannel.Configuration
        /// The security that a peer's link must have before it gets a channel.
        public var security: SecurityRequirements
        /// The only variant that the service accepts; nil for both.
        public var variant: CreditBasedChannel.Variant?
        /// Maximum number of channels to the service on one link, whichever side opens them; nil for no limit but that
        /// of the link.
        public var channelLimit: Int?
        /// Whether a request for several channels is refused if it looks like one of a Linux that mixes them up.
        ///
        /// Linux 6.1 and 6.12 put the last of several channels at the head of a request, and read the response without
        /// this change of the order. They then send the data of a channel on another one. In such a request, the first
        /// source CID is the highest and the others ascend; those of other hosts rarely do.
        public var refusesMixedSources: Bool

        /// Creates a service. By default, its channels have the default lengths and require no security.
        public init(
            configuration: CreditBasedChannel.Configuration = .init(),
            security: SecurityRequirements = .init(),
            variant: CreditBasedChannel.Variant? = nil,
            channelLimit: Int? = nil,
            refusesMixedSources: Bool = false
        ) {
            self.configuration = configuration
            self.security = security
            self.variant = variant
            self.channelLimit = channelLimit
            self.refusesMixedSources = refusesMixedSources
        }
    }

    /// The reason why a service cannot be registered.
    public enum RegistrationError: Error, Equatable, Sendable {
        /// The SPSM is in neither range.
        case invalidSPSM(SPSM)
        /// Another service has this SPSM.
        case alreadyRegistered(SPSM)
        /// Every dynamic SPSM is in use.
        case noDynamicSPSMLeft
        /// The configuration's MTU or MPS is out of range.
        case invalidConfiguration
    }

    private var services: [SPSM: Service] = [:]
    private var nextDynamic = SPSM.dynamicRange.lowerBound

    /// Creates a registry without services.
    public init() {}

    /// Whether any service's channels need encryption.
    public var hasProtectedServices: Bool {
        services.values.contains {
            $0.security.needsEncryption || $0.security.needsAuthentication || $0.security.needsSecureConnections
        }
    }

    /// The service with an SPSM; nil if there is none.
    public subscript(spsm: SPSM) -> Service? { services[spsm] }

    /// Registers a service under a given SPSM.
    public mutating func register(_ service: Service, at spsm: SPSM) throws(RegistrationError) {
        guard spsm.isValid else { throw .invalidSPSM(spsm) }
        guard service.configuration.isValid else { throw .invalidConfiguration }
        guard services[spsm] == nil else { throw .alreadyRegistered(spsm) }
        services[spsm] = service
    }

    /// Registers a service under a dynamic SPSM and returns it.
    ///
    /// A freed SPSM is reused only after all others. So a peer that remembers it does not soon reach another service.
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

    /// Unregisters a service. No more channels to it are opened; existing channels stay.
    ///
    /// - Returns: the service; nil if none had the SPSM.
    @discardableResult
    public mutating func unregister(_ spsm: SPSM) -> Service? {
        services.removeValue(forKey: spsm)
    }
}
