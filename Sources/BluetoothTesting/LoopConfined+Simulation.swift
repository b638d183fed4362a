import BLEHCITransport
import BluetoothHost

extension LoopConfined {
    /// Confines a value to the thread that runs a simulated loop. While no thread runs the loop, any one thread may use
    /// the value.
    package init(_ value: Value, to loop: SimulatedEventLoop) {
        self.init(value) {
            precondition(loop.isUsableOnThisThread, "used outside of the simulation that it belongs to")
        }
    }
}
