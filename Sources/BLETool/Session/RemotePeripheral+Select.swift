import BLE
import BluetoothTypes
import Profiles

extension RemotePeripheral {
    /// The characteristic that is meant.
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

    /// The attribute that is meant: any at all by its handle, a characteristic's value by its UUID.
    func attribute(
        _ selector: CharacteristicSelector
    ) async throws -> (uuid: BluetoothUUID?, handle: AttributeHandle) {
        if case .handle(let handle) = selector { return (nil, handle) }
        let characteristic = try await characteristic(selector)
        return (characteristic.uuid, characteristic.valueHandle)
    }
}
