import BluetoothHost
import Foundation
import Synchronization

/// A central's wish to read or write a value that is the app's.
open class CBATTRequest: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// Who asks.
    public let central: CBCentral
    /// What is asked for.
    public let characteristic: CBCharacteristic
    /// Where in the value reading or writing begins.
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

    /// What is written; or, to be set by the app, what is read from ``offset`` on.
    open var value: Data? {
        get { guardedValue.withLock { $0 } }
        set { guardedValue.withLock { $0 = newValue } }
    }

    open override var description: String {
        "<\(nameAndAddress), central = \(central), characteristic = \(characteristic), offset = \(offset)>"
    }

    /// One access of the Attribute Protocol, which has one answer, however many requests it is shown in.
    final class Access: Sendable {
        enum Kind: Sendable {
            case read
            case write
            /// A Write Command, which has no answer.
            case command
        }

        /// The link that the access came by: each link numbers its accesses by itself.
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

        /// Whether an answer is still to be given; it is, from then on.
        func takeAnswer() -> Bool {
            isAnswered.withLock { isAnswered in
                defer { isAnswered = true }
                return !isAnswered
            }
        }
    }
}
