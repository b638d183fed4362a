import BLEATT
import BLEByteCoding
import BLECryptography
import BLEGATT
import BLESMP
import BluetoothTypes

extension BluetoothHost {
    private var toolbox: Toolbox<SwiftCryptography> { Toolbox(SwiftCryptography()) }

    // MARK: As the server

    /// Performs a signed write once its counter is stored, if its signature is correct and its counter was not used
    /// before (Vol 3, Part H, 2.4.5). Until then, requests and commands of the client wait.
    ///
    /// Other signed writes are ignored (Vol 3, Part F, 3.4.5.4).
    func verify(_ write: SignedWrite, on link: Link) {
        // Secure Connections Only mode has no LE security mode 2.
        guard !link.security.policy.isSecureConnectionsOnly,
            let bond = record(for: link)?.bond, let key = bond.peerSigningKey, let counter = write.counter,
            link.security.policy.accepts(key, of: bond),
            counter >= key.nextCounter, counter < .max,
            toolbox.signature(of: write.message, counter: counter, key: key.value) == write.signature
        else {
            metrics.malformed.increment()
            return logger.debug(
                "signed write of \(link.peer) dropped: its signature or counter is invalid, or the policy does not accept it"
            )
        }
        let number = link.att.signedWrites.append(write, key.isAuthenticated ? .authenticated : .unauthenticated)
        let change = BondChange.counterUsed(next: counter + 1, .signedWrite(number, link.identifier))
        perform(bonds.update(link.identity, change))
    }

    /// Performs the signed writes whose counters are stored, and handles the PDUs that the client sent after them.
    func counterWasStored(_ isStored: Bool, of number: UInt64, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        link.att.signedWrites.counterWasStored(isStored, of: number)
        let phase = beginReceiving()
        while links[identifier] != nil {
            var buffer = sender.takeBuffer()
            guard let action = link.att.handleNextHeld(into: &buffer) else {
                sender.recycle(buffer)
                break
            }
            performServerEffects(of: link)
            perform(action, consume buffer, on: link)
        }
        turn.phase = phase
        endInput()
    }

    // MARK: As the client

    /// Writes without a response, with a signature if the link is not encrypted (Vol 3, Part G, 4.9.2). Waits until the
    /// link's outbound queue has room.
    ///
    /// On an encrypted link it is an ordinary write without response (Vol 3, Part C, 10.2.2). If sign counters must be
    /// saved first, calls that are made during that time are sent before it. Cancelling the task ends the wait.
    package nonisolated(nonsending) func writeSigned(
        _ value: [UInt8],
        to handle: AttributeHandle,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        // While counters are saved, the call is in no lane, and its link may end.
        try await wait(for: .lanes) { host, call in
            host.submitSigned(WriteCall(value: value, handle: handle, link: identifier, caller: .task(call)), for: call)
        }
    }

    /// Signs a write and submits it, or first has counters saved.
    private func submitSigned(_ write: WriteCall, for call: CallToken) {
        do throws(HostError) {
            let link = try link(write.link)
            guard !link.session.security.isEncrypted else { return submit(write) }
            try checkSigning(of: write, on: link)
            switch bonds.takeSignCounter(for: link.identity) {
            case .available(let key, let counter):
                var signed = write
                signed.signature = WriteCall.Signature(key: key, counter: counter)
                submit(signed)
            case .noKey:
                throw .notSupported("there is no signing key: the devices are not bonded, or distributed none")
            case .usedUp: throw .notSupported("the signing key is used up; pair again")
            case .noneReserved:
                spawn { [identity = link.identity] host in await host.reserveCounters(of: identity, write, for: call) }
            }
        } catch {
            end(call, CallOutcome.failure(error))
        }
    }

    /// Throws an error if a write cannot be signed.
    private func checkSigning(of write: borrowing WriteCall, on link: Link) throws(HostError) {
        guard !link.security.policy.isSecureConnectionsOnly else {
            throw .notSupported("Secure Connections Only mode has no signed writes; encrypt the link")
        }
        try link.att.checkLength(of: write.value, isSigned: true)
        if let bond = record(for: link)?.bond, let key = bond.ownSigningKey,
            !link.security.policy.accepts(key, of: bond)
        {
            throw .notSupported("the policy does not accept the bond, which is too weak; pair again")
        }
    }

    /// Has sign counters saved, so that they are used once only, also after a restart. Then signs and submits a write,
    /// unless its call was cancelled before.
    private func reserveCounters(of identity: DeviceAddress, _ write: WriteCall, for call: CallToken) async {
        let outcome = await CallContinuation.wait { continuation in
            let saving = calls.begin(continuation)
            perform(bonds.reserveSignCounters(for: identity, notifying: .call(saving)))
        }
        guard calls.isWaiting(call) else { return }
        if case .failure = outcome {
            end(call, CallOutcome.failure(.notSupported("the sign counter cannot be saved")))
        } else {
            submitSigned(write, for: call)
        }
    }

    /// Writes a Signed Write Command (Vol 3, Part H, 2.4.5).
    func sign(
        _ value: [UInt8],
        to handle: AttributeHandle,
        _ signature: WriteCall.Signature,
        into buffer: inout PacketBuffer
    ) {
        buffer.append(ATTOpcode.signedWriteCommand.rawValue)
        buffer.append(handle.rawValue)
        buffer.append(value)
        let message = [UInt8](copying: buffer.bytes)
        buffer.append(toolbox.signature(of: message, counter: signature.counter, key: signature.key.value))
    }
}

extension SecurityPolicy {
    /// Whether a signing key of a bond is used: whether the bond has the protection that the policy requires.
    fileprivate func accepts(_ key: SigningKey, of bond: Bond) -> Bool {
        // A bond without a key for encryption is one of LE legacy pairing, and shows no key size.
        bond.strength.map { accepts($0) }
            ?? (!requiresSecureConnections && (key.isAuthenticated || !requiresAuthentication))
    }
}

extension SignedWrite {
    /// The counter at the start of the signature, least significant byte first.
    fileprivate var counter: UInt32? {
        guard signature.count == SignedWriteCommand.signatureLength else { return nil }
        return signature.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}
