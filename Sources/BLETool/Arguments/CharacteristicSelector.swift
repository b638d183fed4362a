import BLEProfiles
import BluetoothTypes

/// Names a characteristic: `UUID`, `SERVICE/UUID`, or `#HANDLE` for the attribute of a handle.
enum CharacteristicSelector: Hashable, Sendable {
    case uuid(BluetoothUUID, service: BluetoothUUID?)
    case handle(AttributeHandle)

    init(argument text: String) throws(ArgumentProblem) {
        if text.hasPrefix("#") {
            self = .handle(try AttributeHandle(argument: text.dropFirst()))
            return
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        switch parts.count {
        case 1: self = .uuid(try BluetoothUUID(argument: text), service: nil)
        case 2:
            let service = try BluetoothUUID(argument: String(parts[0]))
            self = .uuid(try BluetoothUUID(argument: String(parts[1])), service: service)
        default:
            throw ArgumentProblem(
                "\"\(terminalSafe(text))\" names no characteristic: use UUID, SERVICE/UUID or #HANDLE"
            )
        }
    }

    /// One characteristic among which the selector chooses.
    struct Candidate: Hashable, Sendable {
        var service: BluetoothUUID
        var uuid: BluetoothUUID
        var valueHandle: AttributeHandle
    }

    /// Returns the candidate that the selector names.
    func choose(among candidates: [Candidate]) throws(ArgumentProblem) -> Candidate {
        let chosen = candidates.filter { candidate in
            switch self {
            case .uuid(let uuid, let service):
                candidate.uuid == uuid && (service ?? candidate.service) == candidate.service
            case .handle(let handle): candidate.valueHandle == handle
            }
        }
        guard let first = chosen.first else {
            throw ArgumentProblem("there is no characteristic \(self); `ble explore` lists those there are")
        }
        guard chosen.count == 1 else {
            let handles = chosen.map { "#\($0.valueHandle)" }.joined(separator: ", ")
            throw ArgumentProblem(
                "\(self) stands for \(chosen.count) characteristics; name one by its handle: \(handles)"
            )
        }
        return first
    }
}

extension CharacteristicSelector: CustomStringConvertible {
    var description: String {
        switch self {
        case .uuid(let uuid, nil): uuid.withName
        case .uuid(let uuid, let service?): "\(service)/\(uuid.withName)"
        case .handle(let handle): "#\(handle)"
        }
    }
}
