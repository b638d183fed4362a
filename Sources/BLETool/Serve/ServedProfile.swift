import BLEGATT
import BLEProfiles
import BluetoothTypes

/// The services that a server has published, as commands and events name their characteristics.
struct ServedProfile: Sendable {
    let candidates: [CharacteristicSelector.Candidate]
    /// The handles of the values.
    private let values: Set<AttributeHandle>
    /// The characteristic to which an attribute belongs.
    private let owners: [AttributeHandle: BluetoothUUID]

    init(_ services: [PublishedService]) {
        candidates = services.flatMap { service in
            service.characteristics.map { .init(service: service.uuid, uuid: $0.uuid, valueHandle: $0.valueHandle) }
        }
        var owners: [AttributeHandle: BluetoothUUID] = [:]
        for characteristic in services.flatMap(\.characteristics) {
            owners[characteristic.valueHandle] = characteristic.uuid
            if let handle = characteristic.clientConfigurationHandle { owners[handle] = characteristic.uuid }
            for handle in characteristic.descriptorHandles { owners[handle] = characteristic.uuid }
        }
        self.owners = owners
        values = Set(candidates.map(\.valueHandle))
    }

    func attribute(_ handle: AttributeHandle) -> ServeEvent.Attribute {
        let uuid = owners[handle]
        return ServeEvent.Attribute(uuid: uuid, handle: handle, isDescriptor: uuid != nil && !values.contains(handle))
    }

    /// Returns the handle of the value that a command selects.
    func handle(_ selector: CharacteristicSelector) throws(ArgumentProblem) -> AttributeHandle {
        try selector.choose(among: candidates).valueHandle
    }
}
