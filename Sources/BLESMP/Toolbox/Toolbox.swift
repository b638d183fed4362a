import BluetoothTypes

/// The cryptographic toolbox (Vol 3, Part H, 2.2): the functions that the Security Manager derives from its ciphers.
///
/// Numbers are in the notation of the specification: the first byte in writing is the most significant.
public struct Toolbox<Functions: SecurityFunctions>: Sendable {
    let functions: Functions

    /// Creates a toolbox from these ciphers.
    public init(_ functions: Functions) {
        self.functions = functions
    }

    // MARK: LE legacy pairing

    /// The confirm value generation function c1 (2.2.3).
    ///
    /// - Parameters:
    ///   - k: the temporary key.
    ///   - r: the random value that is confirmed.
    ///   - preq: the Pairing Request PDU as sent, 7 bytes.
    ///   - pres: the Pairing Response PDU as sent, 7 bytes.
    ///   - ia: the initiating device's address.
    ///   - ra: the responding device's address.
    public func c1(
        k: UInt128,
        r: UInt128,
        preq: [UInt8],
        pres: [UInt8],
        ia: DeviceAddress,
        ra: DeviceAddress
    ) -> UInt128 {
        let pdus = UInt128(leastSignificantFirst: pres) << 56 | UInt128(leastSignificantFirst: preq)
        let p1 = pdus << 16 | (ra.isRandom ? 1 << 8 : 0) | (ia.isRandom ? 1 : 0)
        let p2 = UInt128(ia.value) << 48 | UInt128(ra.value)
        return functions.encrypt(functions.encrypt(r ^ p1, key: k) ^ p2, key: k)
    }

    /// The key generation function s1 (2.2.4), which returns the short term key.
    ///
    /// - Parameters:
    ///   - k: the temporary key.
    ///   - r1: the responder's random value.
    ///   - r2: the initiator's random value.
    public func s1(k: UInt128, r1: UInt128, r2: UInt128) -> UInt128 {
        let half = UInt128(UInt64.max)
        return functions.encrypt((r1 & half) << 64 | r2 & half, key: k)
    }

    // MARK: LE Secure Connections

    /// The confirm value generation function f4 (2.2.6).
    ///
    /// - Parameters:
    ///   - u: the x coordinate of the confirming device's public key.
    ///   - v: the x coordinate of the other device's public key.
    ///   - x: the random value that is confirmed.
    ///   - z: a bit of the passkey in passkey entry (2.3.5.6.3), else 0.
    public func f4(u: UInt256Bytes, v: UInt256Bytes, x: UInt128, z: UInt8) -> UInt128 {
        var message: [UInt8] = []
        message.append(mostSignificantFirst: u)
        message.append(mostSignificantFirst: v)
        message.append(z)
        return functions.authenticationCode(of: message, key: x)
    }

    /// The key generation function f5 (2.2.7), which returns the keys for the DHKey check and for the link.
    ///
    /// - Parameters:
    ///   - w: the Diffie-Hellman key.
    ///   - n1: the initiator's random value.
    ///   - n2: the responder's random value.
    ///   - a1: the initiator's address.
    ///   - a2: the responder's address.
    public func f5(
        w: DiffieHellmanKey,
        n1: UInt128,
        n2: UInt128,
        a1: DeviceAddress,
        a2: DeviceAddress
    ) -> (macKey: UInt128, longTermKey: UInt128) {
        let salt: UInt128 = 0x6C88_8391_AAF5_A538_6037_0BDB_5A60_83BE
        var secret: [UInt8] = []
        secret.append(mostSignificantFirst: w.value)
        let t = functions.authenticationCode(of: secret, key: salt)
        func key(_ counter: UInt8) -> UInt128 {
            let keyID: UInt32 = 0x6274_6C65  // "btle"
            let length: UInt16 = 256
            var message = [counter]
            message.append(mostSignificantFirst: keyID)
            message.append(mostSignificantFirst: n1)
            message.append(mostSignificantFirst: n2)
            message.append(mostSignificantFirst: a1)
            message.append(mostSignificantFirst: a2)
            message.append(mostSignificantFirst: length)
            return functions.authenticationCode(of: message, key: t)
        }
        return (key(0), key(1))
    }

    /// The check value generation function f6 (2.2.8).
    ///
    /// - Parameters:
    ///   - w: the MacKey of ``f5(w:n1:n2:a1:a2:)``.
    ///   - n1: the random value of the device whose check this is.
    ///   - n2: the other device's random value.
    ///   - r: the other device's passkey or out-of-band random value, else 0.
    ///   - ioCapability: 24 bits of the device whose check this is: AuthReq, the OOB data flag and the IO capability,
    ///     from the most significant byte on.
    ///   - a1: the address of the device whose check this is.
    ///   - a2: the other device's address.
    public func f6(
        w: UInt128,
        n1: UInt128,
        n2: UInt128,
        r: UInt128,
        ioCapability: UInt32,
        a1: DeviceAddress,
        a2: DeviceAddress
    ) -> UInt128 {
        var message: [UInt8] = []
        message.append(mostSignificantFirst: n1)
        message.append(mostSignificantFirst: n2)
        message.append(mostSignificantFirst: r)
        message.append(mostSignificantFirst: ioCapability, count: 3)
        message.append(mostSignificantFirst: a1)
        message.append(mostSignificantFirst: a2)
        return functions.authenticationCode(of: message, key: w)
    }

    /// The numeric comparison value generation function g2 (2.2.9), reduced to the six digits that are shown
    /// (2.3.5.6.2).
    ///
    /// - Parameters:
    ///   - u: the x coordinate of the initiator's public key.
    ///   - v: the x coordinate of the responder's public key.
    ///   - x: the initiator's random value.
    ///   - y: the responder's random value.
    /// - Returns: 0 to 999,999.
    public func g2(u: UInt256Bytes, v: UInt256Bytes, x: UInt128, y: UInt128) -> UInt32 {
        var message: [UInt8] = []
        message.append(mostSignificantFirst: u)
        message.append(mostSignificantFirst: v)
        message.append(mostSignificantFirst: y)
        return UInt32(truncatingIfNeeded: functions.authenticationCode(of: message, key: x)) % 1_000_000
    }

    // MARK: Keys of one transport for another

    /// The link key conversion function h6 (2.2.10).
    public func h6(w: UInt128, keyID: UInt32) -> UInt128 {
        var message: [UInt8] = []
        message.append(mostSignificantFirst: keyID)
        return functions.authenticationCode(of: message, key: w)
    }

    /// The link key conversion function h7 (2.2.11).
    public func h7(salt: UInt128, w: UInt128) -> UInt128 {
        var message: [UInt8] = []
        message.append(mostSignificantFirst: w)
        return functions.authenticationCode(of: message, key: salt)
    }

    // MARK: Signing

    /// Signs data (2.4.5).
    ///
    /// - Parameters:
    ///   - message: the message as sent; for a Signed Write Command, the whole PDU before the signature.
    ///   - counter: the SignCounter, different for each message.
    ///   - key: the CSRK.
    /// - Returns: 12 bytes to send after the message: the counter, and the 64 most significant bits of the
    ///   authentication code, each least significant byte first.
    public func signature(of message: [UInt8], counter: UInt32, key: UInt128) -> [UInt8] {
        var counterBytes: [UInt8] = []
        counterBytes.append(mostSignificantFirst: counter)
        // In the signed number, the counter is more significant than the message.
        let code = functions.authenticationCode(of: counterBytes + message.reversed(), key: key)
        var signature: [UInt8] = []
        signature.append(mostSignificantFirst: UInt64(truncatingIfNeeded: code >> 64))
        signature.append(mostSignificantFirst: counter)
        signature.reverse()
        return signature
    }
}
