import BLEL2CAP
import BluetoothTypes
import Testing

@Suite("The registry of SPSMs")
struct SPSMRegistryTests {
    @Test("All 128 dynamic SPSMs are assigned in turn, and a released one comes last")
    func all128DynamicSPSMsAreAssignedInTurn() throws {
        var registry = SPSMRegistry()
        var given: [UInt16] = []
        for _ in 0x80...0xFF { given.append(try registry.register(SPSMRegistry.Service()).rawValue) }
        #expect(given == Array(0x80...0xFF))
        #expect(throws: SPSMRegistry.RegistrationError.noDynamicSPSMLeft) {
            try registry.register(SPSMRegistry.Service())
        }
        registry.unregister(SPSM(rawValue: 0x90))
        registry.unregister(SPSM(rawValue: 0x8F))
        #expect(try registry.register(SPSMRegistry.Service()).rawValue == 0x8F)
        #expect(try registry.register(SPSMRegistry.Service()).rawValue == 0x90)
        registry.unregister(SPSM(rawValue: 0x8F))
        registry.unregister(SPSM(rawValue: 0x91))
        #expect(try registry.register(SPSMRegistry.Service()).rawValue == 0x91)
    }

    @Test("A service is registered once, with a valid SPSM and valid lengths")
    func serviceIsRegisteredOnceWithValidSPSMAndLengths() throws {
        var registry = SPSMRegistry()
        let service = SPSMRegistry.Service(configuration: .init(mtu: 23, mps: 65533))
        try registry.register(service, at: .objectTransfer)
        #expect(registry[.objectTransfer] == service)
        #expect(throws: SPSMRegistry.RegistrationError.alreadyRegistered(.objectTransfer)) {
            try registry.register(service, at: .objectTransfer)
        }
        for value: UInt16 in [0x0000, 0x0100, 0x1001] {
            #expect(throws: SPSMRegistry.RegistrationError.invalidSPSM(SPSM(rawValue: value))) {
                try registry.register(service, at: SPSM(rawValue: value))
            }
        }
        for (mtu, mps) in [(22, 23), (23, 22), (23, 65534)] as [(UInt16, UInt16)] {
            let wrong = SPSMRegistry.Service(configuration: .init(mtu: mtu, mps: mps))
            #expect(throws: SPSMRegistry.RegistrationError.invalidConfiguration) { try registry.register(wrong) }
        }
        #expect(registry.unregister(.objectTransfer) == service)
        #expect(registry.unregister(.objectTransfer) == nil)
    }

    @Test(
        "A link's missing security is reported as the specification requires",
        arguments: [
            (LinkSecurity(), .init(), nil),
            (LinkSecurity(), .init(needsEncryption: true), .insufficientAuthentication),
            (LinkSecurity(hasKey: true), .init(needsEncryption: true), .insufficientEncryption),
            (LinkSecurity(isEncrypted: true, keySize: 7), .init(needsEncryption: true), nil),
            (
                LinkSecurity(isEncrypted: true, keySize: 7), .init(needsEncryption: true, minimumKeySize: 16),
                .encryptionKeySizeTooShort
            ),
            (
                LinkSecurity(isEncrypted: true, keySize: 16), .init(needsAuthentication: true),
                .insufficientAuthentication
            ),
            (
                LinkSecurity(isEncrypted: true, isAuthenticated: true, keySize: 16), .init(needsAuthentication: true),
                nil
            ),
            (
                LinkSecurity(isEncrypted: true, isAuthenticated: true, keySize: 16),
                .init(needsSecureConnections: true),
                .insufficientAuthentication
            ),
            (
                LinkSecurity(isEncrypted: true, isAuthenticated: true, isSecureConnections: true, keySize: 15),
                .init(needsSecureConnections: true), .encryptionKeySizeTooShort
            ),
            (
                LinkSecurity(isEncrypted: true, isAuthenticated: true, isSecureConnections: true, keySize: 16),
                .init(needsSecureConnections: true), nil
            ),
            (LinkSecurity(isIdentityUnverified: true), .init(), .insufficientAuthentication),
            (LinkSecurity(isKeyTooShort: true), .init(), nil),
            (LinkSecurity(isKeyTooShort: true), .init(needsEncryption: true), .encryptionKeySizeTooShort),
            (LinkSecurity(), .init(needsAuthorization: true), .insufficientAuthorization),
            (LinkSecurity(isAuthorized: true), .init(needsAuthorization: true), nil),
        ] as [(LinkSecurity, SPSMRegistry.SecurityRequirements, CreditBasedConnectionResult?)]
    )
    func missingSecurityIsReportedAsSpecified(
        link: LinkSecurity,
        requirements: SPSMRegistry.SecurityRequirements,
        refusal: CreditBasedConnectionResult?
    ) {
        #expect(requirements.refusal(for: link) == refusal)
    }
}
