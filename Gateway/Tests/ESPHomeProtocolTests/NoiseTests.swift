import Crypto
import NIOCore
import Testing

@testable import ESPHomeProtocol

/// A handshake with fixed keys, as the Python package `noiseprotocol` performs it.
enum NoiseVectors {
    static let key = NoiseKey(bytes: Array(0..<32))!
    static let responderKey = try! Curve25519.KeyAgreement.PrivateKey(
        rawRepresentation: [UInt8](repeating: 0x22, count: 32)
    )
    static let request = bytes(
        "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13d1bc1a38b6793685dc7e2ffdf8ea0933"
    )
    static let response = bytes(
        "0faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf2678570f207336b95933b321b1ae86673f689f5c9f"
    )
    static let clientPing = bytes("082a88d4457b72646ca1ef304be34f8ffac1f659")
    static let clientDeviceInformation = bytes("43103a2b813051ee2cbd7dc7cfd8ab2faf2271e0")
    static let serverPong = bytes("d9423bf48bdea62bb10bbd87a7fb5ecc26721050")
    static let serverValue = bytes("475b27a48990e4f83170f4bfae367f4e22412ca2079ba138d3")

    static func bytes(_ digits: String) -> [UInt8] {
        let digits = Array(digits)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...($0 + 1)]), radix: 16)! }
    }
}

struct NoiseTests {
    @Test func handshakeAndMessagesHaveExactBytes() throws {
        let responder = NoiseResponder(key: NoiseVectors.key, ephemeralKey: NoiseVectors.responderKey)
        let result = try responder.respond(to: NoiseVectors.request)
        #expect(result.response == NoiseVectors.response)
        var ciphers = SessionCiphers(decrypting: result.decrypting, encrypting: result.encrypting)
        #expect(try ciphers.decrypt(NoiseVectors.clientPing) == Message(.pingRequest))
        #expect(try ciphers.decrypt(NoiseVectors.clientDeviceInformation) == Message(.deviceInfoRequest))
        #expect(Array(ciphers.encrypt(Message(.pingResponse))) == NoiseVectors.serverPong)
        let value = Message.value(.readResponse, address: 1, handle: 10, value: [])
        #expect(Array(value.payload.readableBytesView) == [8, 1, 16, 10])
        #expect(
            Array(ciphers.encrypt(Message(.readResponse, payload: ByteBuffer(bytes: [8, 1, 16, 10, 26]))))
                == NoiseVectors.serverValue
        )
    }

    @Test func anotherKeyIsRefused() {
        let responder = NoiseResponder(key: NoiseKey(bytes: [UInt8](repeating: 1, count: 32))!)
        #expect(throws: ProtocolError.wrongKey) { try responder.respond(to: NoiseVectors.request) }
    }

    @Test(arguments: 0..<48)
    func changedOrShortRequestIsRefused(index: Int) {
        let responder = NoiseResponder(key: NoiseVectors.key)
        var changed = NoiseVectors.request
        changed[index] ^= 0x40
        #expect(throws: ProtocolError.self) { try responder.respond(to: changed) }
        #expect(throws: ProtocolError.self) { try responder.respond(to: Array(NoiseVectors.request.prefix(index))) }
    }

    @Test func messageOutOfOrderIsRefused() throws {
        let responder = NoiseResponder(key: NoiseVectors.key, ephemeralKey: NoiseVectors.responderKey)
        let result = try responder.respond(to: NoiseVectors.request)
        var ciphers = SessionCiphers(decrypting: result.decrypting, encrypting: result.encrypting)
        #expect(throws: ProtocolError.failedDecryption) { try ciphers.decrypt(NoiseVectors.clientDeviceInformation) }
    }

    @Test(arguments: [[], [1], [0, 7, 0], [0, 7, 0, 1], [0, 7, 0, 0, 0]] as [[UInt8]])
    func wrongHeaderIsRefused(plaintext: [UInt8]) throws {
        let cipher = NoiseCipher(key: [UInt8](repeating: 3, count: 32))
        var sender = cipher
        var ciphers = SessionCiphers(decrypting: cipher, encrypting: cipher)
        let content = Array(sender.encrypt(plaintext))
        #expect(throws: ProtocolError.malformedFrame) { try ciphers.decrypt(content) }
    }
}
