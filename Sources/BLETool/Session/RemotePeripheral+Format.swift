import BLE
import BLEATT
import BluetoothSensors
import BluetoothTypes

extension RemotePeripheral {
    /// Reads the presentation format of a characteristic whose values cannot be decoded without it. Returns nil if the
    /// characteristic has none or several, or the peer refuses to send it.
    func presentationFormat(of characteristic: RemoteCharacteristic) async throws(BLEError) -> PresentationFormat? {
        guard !CharacteristicValue.isKnown(characteristic.uuid) else { return nil }
        let formats = characteristic.descriptors.filter { $0.uuid == .characteristicPresentationFormat }
        guard formats.count == 1, let descriptor = formats.first else { return nil }
        do throws(BLEError) {
            return PresentationFormat(decoding: try await read(descriptor.handle))
        } catch .attribute {
            return nil
        } catch {
            throw error
        }
    }
}
