import BLECapture
import BluetoothTypes

/// The open requests and indications of an ATT bearer, one in each direction (Vol 3, Part F, 3.3.2).
final class AttributeBearerState {
    /// A request, with the information needed to read its response.
    struct Request {
        let opcode: UInt8
        let index: Int
        let time: Int64
        var subject = Subject.none
    }

    /// The subject of a request.
    enum Subject {
        case none
        case handle(UInt16)
        case handles([UInt16])
        /// A search for attributes of a type. Find By Type Value also has a value.
        case type(BluetoothUUID, value: [UInt8] = [])
    }

    private var sent: Request?
    private var received: Request?
    private var sentIndication: Request?
    private var receivedIndication: Request?

    /// Stores a request that is sent in `direction`.
    func open(_ request: Request, _ direction: CaptureDirection) {
        if direction == .hostToController { sent = request } else { received = request }
    }

    /// Closes and returns the request that a response in `direction` answers.
    func close(_ opcode: UInt8, _ direction: CaptureDirection) -> Request? {
        let request = direction == .hostToController ? received : sent
        guard let request, request.opcode == opcode else { return nil }
        if direction == .hostToController { received = nil } else { sent = nil }
        return request
    }

    func openIndication(_ request: Request, _ direction: CaptureDirection) {
        if direction == .hostToController { sentIndication = request } else { receivedIndication = request }
    }

    func closeIndication(_ direction: CaptureDirection) -> Request? {
        defer { if direction == .hostToController { receivedIndication = nil } else { sentIndication = nil } }
        return direction == .hostToController ? receivedIndication : sentIndication
    }
}
