import Dispatch
import Foundation
import Synchronization

/// Whether a manager can be used.
public enum CBManagerState: Int, Sendable {
    /// Not known yet: the first callback says it.
    case unknown = 0
    /// The controller failed and is being brought up again; all links are gone.
    case resetting = 1
    /// There is no controller, or it has no Bluetooth LE.
    case unsupported = 2
    /// The process may not use the controller.
    case unauthorized = 3
    case poweredOff = 4
    /// The controller can be used.
    case poweredOn = 5
}

/// Whether the user lets the app use Bluetooth.
public enum CBManagerAuthorization: Int, Sendable {
    case notDetermined = 0
    case restricted = 1
    case denied = 2
    case allowedAlways = 3
}

/// What both managers have in common.
open class CBManager: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// Where the delegate is called: one call at a time, whatever queue the app gave.
    let deliveryQueue: DispatchQueue
    private let guardedState = Mutex(CBManagerState.unknown)
    /// Told of each new state, once what belonged to the one before it is gone.
    let states = Broadcast<CBManagerState>()

    init(deliveringOn queue: DispatchQueue?) {
        deliveryQueue = DispatchQueue(label: "CoreBluetooth.delivery", target: queue ?? .main)
    }

    /// Whether the manager can be used: `unknown` until its delegate was first told.
    open var state: CBManagerState { guardedState.withLock { $0 } }

    /// Always `allowedAlways`: Linux asks no user. Who may not open the controller sees ``state`` `unauthorized`.
    open class var authorization: CBManagerAuthorization { .allowedAlways }

    @available(*, deprecated, message: "Use the class property")
    open var authorization: CBManagerAuthorization { .allowedAlways }

    /// Takes a new state and gives the one before it.
    func setState(_ state: CBManagerState) -> CBManagerState {
        guardedState.withLock { current in
            defer { current = state }
            return current
        }
    }

    /// Whether commands are taken; says what is wrong where not.
    func acceptsCommands(_ command: String = #function) -> Bool {
        guard state != .poweredOn else { return true }
        ProgrammerError.report("\(self) can only accept \(command) while in the powered on state")
        return false
    }

    open override var description: String { "<\(nameAndAddress), state = \(state)>" }
}
