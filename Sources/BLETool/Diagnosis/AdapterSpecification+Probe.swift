import BLEHCITransport
import Dispatch

extension AdapterSpecification {
    /// Opens a controller that is reached by a socket or a serial line, and closes it again.
    ///
    /// - Parameter timeout: the time limit for connecting.
    /// - Returns: whether it can be opened; nil for a controller of the kernel or of this process.
    func probe(timeout: Duration = .seconds(3)) async -> Result<Void, TransportError>? {
        switch self {
        case .hci, .address, .automatic, .virtual: return nil
        case .unix, .seqpacket, .tcp, .serial: break
        }
        let queue = DispatchQueue(label: "ble.doctor")
        do throws(TransportError) {
            let transport = try await open(on: queue, options: TransportOptions(connectTimeout: timeout))
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                queue.async {
                    transport.close()
                    continuation.resume()
                }
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }
}
