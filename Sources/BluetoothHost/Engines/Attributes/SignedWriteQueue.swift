import BLEATT
import BLEGATT
import BluetoothTypes
import DequeModule

/// The signed writes of a client that wait until their counters are stored, and the PDUs behind them.
///
/// ## Overview
///
/// A signed write is carried out once its counter can never be accepted again, even after a crash. That takes a write
/// to the disk. The requests and commands behind it wait as well, so the server handles all of them in the order in
/// which the client sent them.
///
/// Signed writes that directly follow each other are verified as they arrive, so one write to the disk can store the
/// counters of several. A signed write behind another PDU waits with that PDU and is verified in its turn. Therefore
/// all verified writes here are older than all PDUs.
///
/// ## Bounds
///
/// At most ``limit`` verified writes and ``limit`` commands wait. Further ones are dropped, which the specification
/// allows (Vol 3, Part F, 3.3.2). A request is never dropped here: a client has at most one.
struct SignedWriteQueue {
    /// A signed write whose signature is right.
    private struct VerifiedWrite {
        let number: UInt64
        let write: SignedWrite
        let strength: SignatureStrength
        /// Whether the counter is stored; nil while that is not known.
        var isStored: Bool?
    }

    /// A request or a command behind the signed writes.
    struct HeldPDU {
        let bytes: [UInt8]
        /// The security of the link when the PDU arrived.
        let security: LinkSecurity
        /// Whether the server has forgotten the client since. Another device may be the client now, so it gets an error
        /// instead of the response.
        var isOfForgottenClient = false

        fileprivate var isRequest: Bool { bytes.first.flatMap(ATTOpcode.init(rawValue:))?.kind == .request }
    }

    /// What the server handles next.
    enum Element {
        case write(SignedWrite, SignatureStrength)
        case pdu(HeldPDU)
    }

    /// Maximum number of verified writes that wait, and of commands behind them.
    static let limit = 64

    private var writes = Deque<VerifiedWrite>()
    private var pdus = Deque<HeldPDU>()
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { writes.isEmpty && pdus.isEmpty }

    /// The number of writes and PDUs that wait.
    var count: Int { writes.count + pdus.count }

    /// Whether PDUs wait and nothing makes the server handle them.
    var isStuck: Bool { writes.isEmpty ? !pdus.isEmpty : writes[0].isStored != nil }

    /// Whether a PDU that has arrived can be handled at once: it is a signed write directly behind others.
    func canVerifyAtOnce(_ opcode: ATTOpcode) -> Bool {
        opcode == .signedWriteCommand && pdus.isEmpty
    }

    /// Whether there is room for another verified write.
    var hasRoomForWrite: Bool { writes.count < SignedWriteQueue.limit }

    /// Adds a signed write whose counter is being stored.
    ///
    /// - Returns: the number of the write, for ``counterWasStored(_:of:)``.
    mutating func append(_ write: SignedWrite, _ strength: SignatureStrength) -> UInt64 {
        lastNumber += 1
        writes.append(VerifiedWrite(number: lastNumber, write: write, strength: strength))
        return lastNumber
    }

    /// Adds a request or a command behind the signed writes.
    ///
    /// - Returns: false if there is no room for another command.
    mutating func append(_ pdu: HeldPDU, isRequest: Bool) -> Bool {
        guard isRequest || pdus.count < SignedWriteQueue.limit else { return false }
        pdus.append(pdu)
        return true
    }

    /// Records whether the counter of a write is stored. If it cannot be stored, the write is not performed.
    mutating func counterWasStored(_ isStored: Bool, of number: UInt64) {
        guard let index = writes.firstIndex(where: { $0.number == number }) else { return }
        writes[index].isStored = isStored
    }

    /// Drops the commands behind the signed writes, because another device may be the client now. A request stays, so
    /// that it is answered. Verified writes stay as well, because the signature of each identifies its client.
    mutating func forgetClient() {
        pdus.removeAll { !$0.isRequest }
        for index in pdus.indices { pdus[index].isOfForgottenClient = true }
    }

    /// Removes and returns the oldest element that can be handled now; nil if there is none.
    mutating func popFirst() -> Element? {
        while let first = writes.first {
            guard let isStored = first.isStored else { return nil }
            writes.removeFirst()
            if isStored { return .write(first.write, first.strength) }
        }
        return pdus.popFirst().map { .pdu($0) }
    }
}
