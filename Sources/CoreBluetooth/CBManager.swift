import Dispatch
import Foundation
import Synchronization

/// Whether a manager can be used.
public enum CBManagerState: Int, Sendable {
    /// Not known yet. The first callback reports the state.
    case unknown = 0
    /// The controller failed and is being initialized again. All links have ended.
    case resetting = 1
    /// There is no controller, or it has no Bluetooth LE.
    case unsupported = 2
    /// The process may not use the controller.
    case unauthorized = 3
    /// The controller is blocked by rfkill, or is down and used by the raw channel.
    case poweredOff = 4
    /// The controller can be used.
    case poweredOn = 5
}

/// Whether the user lets the app use Bluetooth.
public enum CBManagerAuthorization: Int, Sendable {
    /// Never the case on Linux; see ``CBManager/authorization-swift.type.property``.
    case notDetermined = 0
    /// Never the case on Linux; see ``CBManager/authorization-swift.type.property``.
    case restricted = 1
    /// Never the case on Linux; see ``CBManager/authorization-swift.type.property``.
    case denied = 2
    /// The app may use Bluetooth. This is the only value on Linux.
    case allowedAlways = 3
}

/// The base class of both managers.
open class CBManager: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// The queue on which the delegate is called: one call at a time, even if the app's queue is concurrent.
    let deliveryQueue: DispatchQueue
    private let guardedState = Mutex(CBManagerState.unknown)
    /// The new states, each sent after the connections of the previous state are discarded.
    let states = Broadcast<CBManagerState>()

    init(deliveringOn queue: DispatchQueue?) {
        deliveryQueue = DispatchQueue(label: "CoreBluetooth.delivery", target: queue ?? .main)
    }

    /// Whether the manager can be used: `unknown` until the first call of the delegate.
    open var state: CBManagerState { guardedState.withLock { $0 } }

    /// Always `allowedAlways`, because Linux asks no user. If the process may not open the controller, ``state`` is
    /// `unauthorized`.
    open class var authorization: CBManagerAuthorization { .allowedAlways }

    /// Always `allowedAlways`, like the class property.
    @available(*, deprecated, message: "Use the class property")
    open var authorization: CBManagerAuthorization { .allowedAlways }

    /// Sets a new state and returns the previous one.
    func setState(_ state: CBManagerState) -> CBManagerState {
        guardedState.withLock { current in
            defer { current = state }
            return current
        }
    }

    /// Returns whether the manager accepts commands. If not, reports the misuse.
    func acceptsCommands(_ command: String = #function) -> Bool {
        guard state != .poweredOn else { return true }
        ProgrammerError.report("\(self) can only accept \(command) while in the powered on state")
        return false
    }

    open override var description: String { "<\(nameAndAddress), state = \(state)>" }
}
