import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import Synchronization

/// Opens the transport of an adapter, first and again after each loss, always to the same controller.
///
/// The host keeps the bonds and the identity of one controller. So after `auto` has chosen an adapter, later attempts
/// look for this adapter by its address, or by its number if the kernel does not know the address.
package final class ControllerOpening: Sendable {
    private struct State {
        var controller: AdapterSpecification?
        /// What the next attempt opens.
        var target: AdapterSpecification
    }

    private let options: TransportOptions
    private let state: Mutex<State>

    init(_ specification: AdapterSpecification, bringsAdapterDown: Bool) {
        options = TransportOptions(bringsAdapterDown: bringsAdapterDown || specification == .automatic)
        state = Mutex(State(target: specification))
    }

    /// The controller that was opened last; nil if none was.
    var controller: AdapterSpecification? { state.withLock(\.controller) }

    func open(on loop: DispatchEventLoop) async throws(TransportError) -> any Transport {
        let target = state.withLock(\.target)
        let opened = try await target.openController(
            on: loop.queue,
            options: options,
            makeVirtual: VirtualAdapters.opener(on: loop)
        )
        state.withLock { state in
            state.controller = opened.specification
            guard target == .automatic else { return }
            state.target = opened.adapter?.address.map { .address($0, channel: .user) } ?? opened.specification
        }
        return opened.transport
    }
}
