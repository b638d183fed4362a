import BluetoothHost
import Foundation
import Synchronization

/// A central's request to read or write a value that the app answers for.
open class CBATTRequest: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// The central that sent the request.
    public let central: CBCentral
    /// The characteristic whose value is read or written.
    public let characteristic: CBCharacteristic
    /// The offset in the value at which reading or writing begins, in bytes.
    public let offset: Int
    let access: Access
    private let guardedValue: Mutex<Data?>

    init(
        central: CBCentral,
        characteristic: CBCharacteristic,
        offset: Int,
        value: Data?,
        access: Access
    ) {
        self.central = central
        self.characteristic = characteristic
        self.offset = offset
        self.access = access
        guardedValue = Mutex(value)
    }

    /// The value to write; for a read, the value from ``offset`` on, which the app sets.
    open var value: Data? {
        get { guardedValue.withLock { $0 } }
        set { guardedValue.withLock { $0 = newValue } }
    }

    open override var description: String {
        "<\(nameAndAddress), central = \(central), characteristic = \(characteristic), offset = \(offset)>"
    }

    /// One access of the Attribute Protocol. It has one answer, even if several requests represent it.
    final class Access: Sendable {
        enum Kind: Sendable {
            case read
            case write
            /// A Write Command, which has no response.
            case command
        }

        /// The link on which the access arrived. Each link numbers its accesses separately.
        let link: LinkIdentifier
        let identifier: UInt64
        let kind: Kind
        private let isAnswered: Mutex<Bool>

        init(on link: LinkIdentifier, identifier: UInt64, kind: Kind) {
            self.link = link
            self.identifier = identifier
            self.kind = kind
            isAnswered = Mutex(kind == .command)
        }

        /// Returns whether the access still needs an answer, and notes that it has one from then on.
        func takeAnswer() -> Bool {
            isAnswered.withLock { isAnswered in
                defer { isAnswered = true }
                return !isAnswered
            }
        }
    }
}
