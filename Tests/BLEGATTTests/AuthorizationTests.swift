import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

@Suite("Authorization and signatures")
struct AuthorizationTests {
    private static func characteristic(_ permissions: AttributePermissions) -> CharacteristicDefinition {
        CharacteristicDefinition(
            uuid: "B001",
            properties: [.read, .write, .authenticatedSignedWrites],
            permissions: permissions,
            value: .stored([1])
        )
    }

    @Test("The app is asked once per connection, and its consent holds until the end")
    func appIsAskedOncePerConnectionAndItsConsentHolds() throws {
        let fixture = try ServerFixture([Self.characteristic([.readAuthorized, .writeAuthorized])])
        let handle = fixture.handle(0)
        let value = fixture.service.characteristics[0].valueHandle
        fixture.session.asksForAuthorization = true
        guard case .authorize(let first) = fixture.send([0x0A] + handle).action else {
            Issue.record("the app was not asked")
            return
        }
        #expect(first.handle == value && !first.isWrite)
        #expect(fixture.authorize(first.identifier + 1, true).0 == .nothing)
        #expect(fixture.complete(first.identifier, .success([])).0 == .nothing, "that is no answer to this question")
        #expect(fixture.authorize(first.identifier, false).1 == [0x01, 0x0A] + handle + [0x08])
        #expect(fixture.authorize(first.identifier, true).0 == .nothing)
        guard case .authorize(let second) = fixture.send([0x12] + handle + [7]).action else {
            Issue.record("a refusal does not hold for ever")
            return
        }
        #expect(second.isWrite)
        #expect(fixture.authorize(second.identifier, true).1 == [0x13])
        #expect(fixture.send([0x0A] + handle).response == [0x0B, 7])
    }

    @Test("Access that needs authorization is refused if nobody can give it")
    func accessIsRefusedIfNobodyCanAuthorizeIt() throws {
        let fixture = try ServerFixture([Self.characteristic(.readAuthorized)])
        let handle = fixture.handle(0)
        #expect(fixture.send([0x0A] + handle).response == [0x01, 0x0A] + handle + [0x08])
    }

    @Test("The link's security is checked before the app's consent")
    func securityIsCheckedBeforeTheConsentOfTheApp() throws {
        let fixture = try ServerFixture([Self.characteristic([.readEncrypted, .readAuthorized])])
        let handle = fixture.handle(0)
        fixture.session.asksForAuthorization = true
        #expect(fixture.send([0x0A] + handle).response == [0x01, 0x0A] + handle + [0x05])
    }

    @Test("Find By Type Value does not reveal a value that its client may not read")
    func findByTypeValueRevealsNothing() throws {
        let fixture = try ServerFixture([Self.characteristic(.readEncrypted)])
        let guess: [UInt8] = [0x06, 0x01, 0x00, 0xFF, 0xFF, 0x01, 0xB0, 1]
        #expect(fixture.send(guess).response == [0x01, 0x06, 0x01, 0x00, 0x0A])
        fixture.session.security = LinkSecurity(isEncrypted: true, keySize: 16)
        let handle = fixture.handle(0)
        #expect(fixture.send(guess).response == [0x07] + handle + handle)
    }

    @Test("A signed write that is not permitted is not verified")
    func signedWriteThatIsNotPermittedIsNotVerified() throws {
        let fixture = try ServerFixture([Self.characteristic([.read])])
        for handle in [fixture.handle(0), [0xFF, 0xFF]] {
            #expect(fixture.send([0xD2] + handle + [7] + [UInt8](repeating: 1, count: 12)).action == .nothing)
        }
    }

    @Test(
        "A signed write is verified only for a value whose characteristic has the property for it",
        arguments: [true, false]
    )
    func signedWriteNeedsTheProperty(hasProperty: Bool) throws {
        var definition = Self.characteristic([.read, .write, .writeSigned])
        definition.properties = hasProperty ? [.write, .notify, .authenticatedSignedWrites] : [.write, .notify]
        let fixture = try ServerFixture([definition])
        let signature = [UInt8](repeating: 1, count: 12)
        let action = fixture.send([0xD2] + fixture.handle(0) + [1, 0] + signature).action
        if case .verify = action { #expect(hasProperty) } else { #expect(!hasProperty && action == .nothing) }
        let configuration = try fixture.configurationHandle(0)
        #expect(fixture.send([0xD2] + configuration + [1, 0] + signature).action == .nothing)
    }

    @Test("A signed write is given to the owner, and written once it is verified")
    func signedWriteIsWrittenOnceItIsVerified() throws {
        let fixture = try ServerFixture([Self.characteristic([.read, .writeSigned])])
        let handle = fixture.handle(0)
        let signature: [UInt8] = [9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
        guard case .verify(let write) = fixture.send([0xD2] + handle + [7, 8] + signature).action else {
            Issue.record("the signature was not to be verified")
            return
        }
        #expect(write.message == [0xD2] + handle + [7, 8] && write.signature == signature)
        let value = fixture.service.characteristics[0].valueHandle
        #expect(fixture.server.value(of: value) == [1], "nothing is written before")
        #expect(fixture.session.receiveVerified(write, .unauthenticated) == .nothing)
        #expect(fixture.server.value(of: value) == [7, 8])
        #expect(
            fixture.events == [.written(.init(handle: value, offset: 0, value: [7, 8]), isCommand: true)]
        )
    }

    @Test("A signed write that is too short is ignored", arguments: 1..<15)
    func signedWriteThatIsTooShortIsIgnored(length: Int) throws {
        let fixture = try ServerFixture([Self.characteristic(.writeSigned)])
        let pdu = [0xD2] + fixture.handle(0) + Array(repeating: 0, count: 12)
        #expect(fixture.send(Array(pdu.prefix(length))).action == .nothing)
        #expect(fixture.send(pdu).action != .nothing)
    }

    @Test(
        "A signature permits signed writes, and neither replaces encryption nor can be omitted",
        arguments: [
            ([.writeSigned], nil, LinkSecurity(), 0x05), ([.writeSigned], nil, LinkSecurity(hasKey: true), 0x05),
            ([.writeSigned], nil, LinkSecurity(hasKey: true, isIdentityUnverified: true), 0x05),
            ([.writeSigned, .writeAuthenticated], nil, LinkSecurity(hasKey: true), 0x05),
            ([.writeSigned, .writeEncrypted], nil, LinkSecurity(hasKey: true), 0x0F),
            ([.writeSigned], .unauthenticated, LinkSecurity(), 0),
            ([.writeSigned], nil, LinkSecurity(isEncrypted: true, keySize: 16), 0),
            ([.writeSigned, .writeAuthenticated], .unauthenticated, LinkSecurity(), 0x05),
            ([.writeSigned, .writeAuthenticated], .authenticated, LinkSecurity(), 0),
            (
                [.writeSigned, .writeAuthenticated], nil,
                LinkSecurity(isEncrypted: true, isAuthenticated: true, keySize: 16), 0
            ),
            ([.writeSigned, .writeAuthenticated], nil, LinkSecurity(isEncrypted: true, keySize: 16), 0x05),
            ([.writeSigned, .writeEncrypted], .authenticated, LinkSecurity(), 0x05),
            ([.write, .writeEncrypted], .authenticated, LinkSecurity(hasKey: true), 0x0F),
            ([.write], .unauthenticated, LinkSecurity(), 0), ([.read], .authenticated, LinkSecurity(), 0x03),
        ] as [(AttributePermissions, SignatureStrength?, LinkSecurity, UInt8)]
    )
    func signaturePermitsSignedWritesAndDoesNotReplaceEncryption(
        permissions: AttributePermissions,
        signature: SignatureStrength?,
        security: LinkSecurity,
        error: UInt8
    ) throws {
        let fixture = try ServerFixture([Self.characteristic(permissions)])
        fixture.session.security = security
        let handle = fixture.handle(0)
        let value = fixture.service.characteristics[0].valueHandle
        if let signature {
            let pdu = [0xD2] + handle + [7] + Array(repeating: 0, count: 12)
            let action = fixture.send(pdu).action
            if case .verify(let write) = action {
                #expect(fixture.session.receiveVerified(write, signature) == .nothing)
            } else {
                #expect(action == .nothing && error != 0)
            }
            #expect(fixture.server.value(of: value) == (error == 0 ? [7] : [1]))
        } else {
            let expected = error == 0 ? [0x13] : [0x01, 0x12] + handle + [error]
            #expect(fixture.send([0x12] + handle + [7]).response == expected)
        }
    }
}
