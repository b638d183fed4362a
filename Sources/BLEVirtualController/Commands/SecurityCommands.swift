import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes

extension CommandTable {
    /// Adds the commands for encryption, authenticated payloads and P-256 keys (Vol 4, Part E, 7.3.93, 7.3.94, 7.8.24
    /// to 7.8.26, 7.8.36 and 7.8.37).
    mutating func addSecurity() {
        addAuthenticatedPayload()
        begin(LEEnableEncryption.self, needs: .encryption) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            guard end.role == .central, !end.isEncrypting else { return .refused(.commandDisallowed) }
            return end.answer(beginning: .encryption(command))
        }
        answer(LELongTermKeyRequestReply.self, needs: .encryption) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard end.answerKey(command.longTermKey) else { return .failure(.commandDisallowed) }
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        answer(LELongTermKeyRequestNegativeReply.self, needs: .encryption) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard end.refuseKeyRequest() else { return .failure(.commandDisallowed) }
            return .success(.init(connectionHandle: command.connectionHandle))
        }
        begin(LEReadLocalP256PublicKey.self, needs: .encryption) { controller, _ in
            .begun { controller.schedule { $0.tellPublicKey() } }
        }
        begin(LEGenerateDHKey.self, needs: .encryption) { controller, command in
            // The private key belongs to the last public key that the host has requested (7.8.37).
            guard controller.privateKey != nil else { return .refused(.commandDisallowed) }
            return .begun { controller.schedule { $0.tellSharedKey(with: command.remotePublicKey) } }
        }
    }

    private mutating func addAuthenticatedPayload() {
        answer(ReadAuthenticatedPayloadTimeout.self, needs: [.encryption, .ping]) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            return .success(
                .init(
                    connectionHandle: command.connectionHandle,
                    authenticatedPayloadTimeout: end.authenticatedPayload.timeout
                )
            )
        }
        answer(WriteAuthenticatedPayloadTimeout.self, needs: [.encryption, .ping]) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .failure(.unknownConnectionIdentifier)
            }
            guard end.setAuthenticatedPayloadTimeout(command.authenticatedPayloadTimeout) else {
                return .failure(.invalidHCICommandParameters)
            }
            return .success(.init(connectionHandle: command.connectionHandle))
        }
    }
}

extension VirtualController {
    fileprivate func tellPublicKey() {
        let (privateKey, publicKey) = makeKeyPair()
        self.privateKey = privateKey
        tellLE(
            LEReadLocalP256PublicKeyComplete(
                keyXCoordinate: publicKey.x.bytes.rawSpan,
                keyYCoordinate: publicKey.y.bytes.rawSpan
            )
        )
    }

    private func makeKeyPair() -> (P256PrivateKey, BLESMP.P256PublicKey) {
        while true {
            let octets = (0..<32).map { _ in UInt8(truncatingIfNeeded: nextRandom()) }
            // Nearly every 32-byte number is a private key.
            if let privateKey = UInt256Bytes(leastSignificantFirst: octets).map(P256PrivateKey.init),
                let publicKey = SwiftCryptography().publicKey(of: privateKey)
            {
                return (privateKey, publicKey)
            }
        }
    }

    fileprivate func tellSharedKey(with peer: BLEHCI.P256PublicKey) {
        if let privateKey, let x = UInt256Bytes(leastSignificantFirst: peer.x),
            let y = UInt256Bytes(leastSignificantFirst: peer.y),
            let key = SwiftCryptography().sharedKey(privateKey, with: BLESMP.P256PublicKey(x: x, y: y))
        {
            tellLE(LEGenerateDHKeyComplete(dhKey: key.value.bytes.rawSpan))
        } else {
            let none = [UInt8](repeating: 0xFF, count: 32)
            tellLE(LEGenerateDHKeyComplete(status: .invalidHCICommandParameters, dhKey: none.rawSpan))
        }
    }
}

extension LinkEnd {
    /// Whether encryption is being started or changed, or such a procedure waits.
    fileprivate var isEncrypting: Bool {
        ([procedure].compactMap { $0 } + waiting).contains { if case .encryption = $0 { true } else { false } }
    }
}
