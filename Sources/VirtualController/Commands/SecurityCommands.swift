import BluetoothTypes
import HCI

extension CommandTable {
    /// Encryption of links, and P-256 keys (Vol 4, Part E, 7.8.24 to 7.8.26, 7.8.36 and 7.8.37).
    mutating func addSecurity() {
        begin(LEEnableEncryption.self, needs: .encryption) { controller, command in
            guard let end = controller.end(command.connectionHandle) else {
                return .refused(.unknownConnectionIdentifier)
            }
            guard end.role == .central, !end.isEncrypting else { return .refused(.commandDisallowed) }
            return .begun { end.begin(.encryption(command)) }
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
            // The key pair is the one that the host has asked for last (7.8.37).
            guard controller.keyPair != nil else { return .refused(.commandDisallowed) }
            return .begun { controller.schedule { $0.tellSharedKey(with: command.remotePublicKey) } }
        }
    }
}

extension VirtualController {
    fileprivate func tellPublicKey() {
        let pair = KeyPair(random: nextRandom)
        keyPair = pair
        let (x, y) = pair.publicKey
        tellLE(LEReadLocalP256PublicKeyComplete(keyXCoordinate: x.rawSpan, keyYCoordinate: y.rawSpan))
    }

    fileprivate func tellSharedKey(with peer: P256PublicKey) {
        if let key = keyPair?.sharedKey(with: peer) {
            tellLE(LEGenerateDHKeyComplete(dhKey: key.rawSpan))
        } else {
            let none = [UInt8](repeating: 0xFF, count: 32)
            tellLE(LEGenerateDHKeyComplete(status: .invalidHCICommandParameters, dhKey: none.rawSpan))
        }
    }
}

extension LinkEnd {
    /// Whether encryption is being started or changed, or will be.
    fileprivate var isEncrypting: Bool {
        ([procedure].compactMap { $0 } + waiting).contains { if case .encryption = $0 { true } else { false } }
    }
}
