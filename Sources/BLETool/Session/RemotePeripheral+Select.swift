import BLE
import BLEProfiles
import BluetoothTypes

extension RemotePeripheral {
    /// Returns the selected characteristic.
    func characteristic(_ selector: CharacteristicSelector) async throws -> RemoteCharacteristic {
        let services = try await discoverAll()
        let all = services.flatMap { service in service.characteristics.map { (service, $0) } }
        let chosen = try selector.choose(
            among: all.map { .init(service: $0.uuid, uuid: $1.uuid, valueHandle: $1.valueHandle) }
        )
        guard let match = all.first(where: { $1.valueHandle == chosen.valueHandle }) else {
            throw ArgumentProblem("there is no characteristic \(selector)")
        }
        return match.1
    }

    /// Returns the selected attribute: any attribute by its handle, a characteristic's value by its UUID.
    func attribute(
        _ selector: CharacteristicSelector
    ) async throws -> (uuid: BluetoothUUID?, handle: AttributeHandle) {
        if case .handle(let handle) = selector { return (nil, handle) }
        let characteristic = try await characteristic(selector)
        return (characteristic.uuid, characteristic.valueHandle)
    }
}
