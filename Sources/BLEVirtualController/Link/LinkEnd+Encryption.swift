import BLECryptography
import BLEHCI
import BluetoothTypes

/// The state of encryption at one end of a link (Vol 6, Part B, 5.1.3).
///
/// # Procedures in progress
/// The peripheral may have started a procedure of its own, such as LL_LENGTH_REQ, before LL_ENC_REQ or LL_PAUSE_ENC_REQ
/// arrived. The central completes it, and encrypts its answer as the link was encrypted when the central sent it. So
/// the peripheral changes its receive key, and sends LL_START_ENC_REQ or LL_PAUSE_ENC_RSP, only after its own procedure
/// has ended. It starts no other procedure until encryption has started. Requests of its host wait until then.
struct Encryption {
    enum State: Hashable {
        case off
        /// As the central: the request has been sent.
        case requested
        /// As the peripheral: the central wants to pause, but a procedure of this side must end first.
        case pauseRequested
        /// The peer is asked to pause, so that the key can be changed, or has been informed that this side pauses.
        case pausing
        /// As the peripheral: the host is asked for the key.
        case awaitingKey
        /// As the peripheral: the host has provided the key, but a procedure of this side must end first.
        case keyGiven
        /// As the peripheral: received packets are decrypted, and the peer's first encrypted packet is awaited.
        case starting
        case on
    }

    var state = State.off
    /// The keys for sent and for received packets.
    var transmitKey: UInt128?
    var receiveKey: UInt128?
    /// Whether the key is being changed. Success is then reported as a key refresh; failure ends the link.
    var isRefresh = false
    /// Whether data and procedures of this side wait, from the request until encryption has started.
    var pausesData = false
    /// The session key diversifier (Vol 6, Part B, 2.4.2.4). The peripheral's half is the most significant.
    var diversifiers: (central: UInt64, peripheral: UInt64) = (0, 0)
    var longTermKey: UInt128 = 0

    var sessionKey: UInt128 {
        SwiftCryptography().encrypt(
            UInt128(diversifiers.peripheral) << 64 | UInt128(diversifiers.central),
            key: longTermKey
        )
    }
}

extension LinkEnd {
    /// As the central: starts encryption, or changes the key.
    func startEncryption(_ command: LEEnableEncryption) {
        pauseData()
        encryption.longTermKey = command.longTermKey
        if encryption.state == .on {
            encryption.isRefresh = true
            encryption.state = .pausing
            send(.pauseEncryptionRequest)
        } else {
            requestEncryption(command)
        }
    }

    private func requestEncryption(_ command: LEEnableEncryption) {
        encryption.state = .requested
        encryption.diversifiers.central = controller.nextRandom()
        send(
            .encryptionRequest(
                random: command.randomNumber,
                diversifier: command.encryptedDiversifier,
                sessionKeyDiversifier: encryption.diversifiers.central
            )
        )
    }

    func receiveEncryption(_ pdu: ControlPDU) {
        switch (pdu, role, encryption.state) {
        case (.pauseEncryptionRequest, .peripheral, .on):
            encryption.isRefresh = true
            pauseData()
            encryption.state = .pauseRequested
            advanceEncryption()
        case (.pauseEncryptionResponse, .central, .pausing):
            encryption.transmitKey = nil
            encryption.receiveKey = nil
            send(.pauseEncryptionResponse)
            if case .encryption(let command)? = procedure { requestEncryption(command) }
        case (.pauseEncryptionResponse, .peripheral, .pausing):
            encryption.transmitKey = nil
            encryption.state = .off
        case (.encryptionRequest(let random, let diversifier, let sessionKeyDiversifier), .peripheral, .off):
            askForKey(random, diversifier, sessionKeyDiversifier)
        case (.encryptionResponse(let sessionKeyDiversifier), .central, .requested):
            encryption.diversifiers.peripheral = sessionKeyDiversifier
        case (.startEncryptionRequest, .central, .requested):
            encryption.transmitKey = encryption.sessionKey
            encryption.receiveKey = encryption.sessionKey
            send(.startEncryptionResponse)
        case (.startEncryptionResponse, .peripheral, .starting):
            encryption.transmitKey = encryption.sessionKey
            send(.startEncryptionResponse)
            hasStarted()
            beginNext()
        case (.startEncryptionResponse, .central, .requested):
            hasStarted()
            finish()
        default: break  // Out of place: a Link Layer that keeps to the procedures does not send it.
        }
    }

    private func askForKey(_ random: UInt64, _ diversifier: UInt16, _ sessionKeyDiversifier: UInt64) {
        guard controller.configuration.features.contains(.encryption) else {
            return send(.reject(.encryption, .unsupportedRemoteFeature))
        }
        pauseData()
        encryption.diversifiers = (sessionKeyDiversifier, controller.nextRandom())
        send(.encryptionResponse(sessionKeyDiversifier: encryption.diversifiers.peripheral))
        guard controller.host.wants(subevent: LELongTermKeyRequest.subeventCode) else { return refuseKey() }
        encryption.state = .awaitingKey
        controller.tellLE(
            LELongTermKeyRequest(connectionHandle: handle, randomNumber: random, encryptedDiversifier: diversifier)
        )
    }

    /// As the peripheral: takes the key from the host. Returns false if the host was not asked.
    func answerKey(_ longTermKey: UInt128) -> Bool {
        guard encryption.state == .awaitingKey else { return false }
        encryption.state = .keyGiven
        encryption.longTermKey = longTermKey
        advanceEncryption()
        return true
    }

    /// As the peripheral: changes the receive key, unless the central must first complete a procedure of this side.
    func advanceEncryption() {
        guard procedure == nil else { return }
        switch encryption.state {
        case .pauseRequested:
            encryption.state = .pausing
            encryption.receiveKey = nil
            send(.pauseEncryptionResponse)
        case .keyGiven:
            encryption.state = .starting
            encryption.receiveKey = encryption.sessionKey
            send(.startEncryptionRequest)
        case .off, .requested, .pausing, .awaitingKey, .starting, .on: break
        }
    }

    /// As the peripheral: the host has no key. Returns false if the host was not asked.
    func refuseKeyRequest() -> Bool {
        guard encryption.state == .awaitingKey else { return false }
        refuseKey()
        return true
    }

    private func refuseKey() {
        encryption.state = .off
        if encryption.isRefresh {
            // A link that was encrypted may not continue without encryption (Vol 6, Part B, 5.1.3.1).
            terminate(.pinOrKeyMissing)
        } else {
            encryption.pausesData = false
            send(.reject(.encryption, .pinOrKeyMissing))
            beginNext()
        }
    }

    private func hasStarted() {
        encryption.state = .on
        encryption.pausesData = false
        if encryption.isRefresh {
            encryption.isRefresh = false
            controller.tell(EncryptionKeyRefreshComplete(connectionHandle: handle))
        } else {
            tellEncryption(.success, .on)
        }
        authenticatedPayload.lastProof = air.now
        watchAuthenticatedPayload()
        link.wake()
    }

    func encryptionWasRejected(_ reason: HCIErrorCode) {
        encryption.state = .off
        encryption.pausesData = false
        tellEncryption(reason, .off)
        finish()
        link.wake()
    }

    private func tellEncryption(_ status: HCIErrorCode, _ state: EncryptionState) {
        if controller.host.wants(code: EncryptionChangeV2.code) {
            controller.tell(
                EncryptionChangeV2(
                    status: status,
                    connectionHandle: handle,
                    encryptionEnabled: state,
                    encryptionKeySize: status == .success ? 16 : 0
                )
            )
        } else {
            controller.tell(EncryptionChange(status: status, connectionHandle: handle, encryptionEnabled: state))
        }
    }
}
