import BLEATT
import BLEGATT
import BluetoothTypes
import Synchronization

/// The properties of the published characteristics by value handle, for callers on any thread.
///
/// Notifications are submitted from any thread without waiting for the loop. With this table, a wrong handle is found
/// before that.
final class PublishedProperties: Sendable {
    private struct State {
        /// For each value handle the properties with ``PublishedProperties/isPublished``; 0 for other handles.
        var entries: [UInt16] = []
        var isClosed = false
    }

    private static let isPublished: UInt16 = 0x100

    private let state = Mutex(State())

    /// Adds the characteristics of services that have been published.
    ///
    /// - Parameter definitions: the definitions of `services`, in the same order.
    func add(_ services: [PublishedService], _ definitions: [ServiceDefinition]) {
        state.withLock { state in
            for (service, definition) in zip(services, definitions) {
                for (characteristic, definition) in zip(service.characteristics, definition.characteristics) {
                    let index = Int(characteristic.valueHandle.rawValue)
                    let missing = index + 1 - state.entries.count
                    if missing > 0 { state.entries.append(contentsOf: repeatElement(0, count: missing)) }
                    state.entries[index] = UInt16(definition.properties.rawValue) | PublishedProperties.isPublished
                }
            }
        }
    }

    /// Removes the characteristics whose handles lie in a range.
    func remove(_ range: HandleRange) {
        state.withLock { state in
            let end = min(Int(range.end.rawValue) + 1, state.entries.count)
            for index in Int(range.start.rawValue)..<max(Int(range.start.rawValue), end) { state.entries[index] = 0 }
        }
    }

    /// Refuses all handles from now on, because the host was closed.
    func close() {
        state.withLock { $0.isClosed = true }
    }

    /// Checks that the characteristic whose value has this handle is published and has a property.
    func require(_ property: CharacteristicProperties, of handle: AttributeHandle) throws(HostError) {
        let (entry, isClosed) = state.withLock { state in
            let index = Int(handle.rawValue)
            return (index < state.entries.count ? state.entries[index] : 0, state.isClosed)
        }
        if isClosed { throw .closed }
        guard entry != 0 else {
            throw .invalidArgument("attribute \(handle) is not the value of a published characteristic")
        }
        guard entry & UInt16(property.rawValue) == UInt16(property.rawValue) else {
            throw .notSupported(
                "the characteristic with value handle \(handle) does not have the \(property.name) property"
            )
        }
    }
}

extension CharacteristicProperties {
    fileprivate var name: String {
        switch self {
        case .notify: "notify"
        case .indicate: "indicate"
        default: "\(self)"
        }
    }
}

extension BluetoothHost {
    /// Checks that the characteristic whose value has this handle is published and has a property. From any thread.
    package nonisolated func requireProperty(
        _ property: CharacteristicProperties,
        of handle: AttributeHandle
    ) throws(HostError) {
        try submissions.properties.require(property, of: handle)
    }

    /// Whether ``close()`` was called.
    package var isClosed: Bool { power == .closed }
}
