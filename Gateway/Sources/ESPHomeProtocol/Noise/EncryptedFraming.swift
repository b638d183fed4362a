import Foundation
import NIOCore

/// Frames of encrypted sessions: 0x01, the length in 16 bits, and that many bytes.
enum EncryptedFraming {
    /// The first byte of a frame.
    static let indicator: UInt8 = 0x01

    /// Takes the content of the next frame from `buffer`; nil if it is incomplete, which leaves the buffer as it was.
    static func decode(from buffer: inout ByteBuffer) throws(ProtocolError) -> [UInt8]? {
        guard let indicator = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else { return nil }
        guard indicator == Self.indicator else { throw .wrongIndicator(indicator) }
        guard let length = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt16.self) else { return nil }
        guard length <= FrameLimits.maximumLength else { throw .oversizedFrame(Int(length)) }
        guard buffer.readableBytes >= 3 + Int(length) else { return nil }
        buffer.moveReaderIndex(forwardBy: 3)
        return buffer.readBytes(length: Int(length))
    }

    /// Appends a frame to `buffer`.
    ///
    /// - Parameter content: at most 65,535 bytes.
    static func encode(_ content: some Collection<UInt8>, into buffer: inout ByteBuffer) {
        buffer.writeInteger(indicator)
        buffer.writeInteger(UInt16(content.count))
        buffer.writeBytes(content)
    }
}

/// The ciphers of an encrypted session. A decrypted frame holds the type and the length of the payload in 16 bits each,
/// and the payload.
struct SessionCiphers {
    private static let headerLength = 4

    var decrypting: NoiseCipher
    var encrypting: NoiseCipher

    mutating func decrypt(_ content: [UInt8]) throws(ProtocolError) -> Message {
        guard let plaintext = decrypting.decrypt(content) else { throw .failedDecryption }
        var buffer = ByteBuffer(bytes: plaintext)
        guard
            let type = buffer.readInteger(as: UInt16.self), let length = buffer.readInteger(as: UInt16.self),
            Int(length) == buffer.readableBytes
        else { throw .malformedFrame }
        return Message(MessageType(rawValue: type), payload: buffer)
    }

    mutating func encrypt(_ message: Message) -> Data {
        var plaintext: [UInt8] = []
        plaintext.reserveCapacity(message.payload.readableBytes + Self.headerLength)
        let (type, length) = (message.type.rawValue, UInt16(message.payload.readableBytes))
        plaintext.append(UInt8(type >> 8))
        plaintext.append(UInt8(type & 0xFF))
        plaintext.append(UInt8(length >> 8))
        plaintext.append(UInt8(length & 0xFF))
        plaintext.append(contentsOf: message.payload.readableBytesView)
        return encrypting.encrypt(plaintext)
    }
}
