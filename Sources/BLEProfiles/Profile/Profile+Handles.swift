import BLEGATT
import BluetoothTypes

extension Profile {
    /// The handles of GAP and GATT, which precede the services of a profile.
    package static let standardHandles: ClosedRange<AttributeHandle> = 0x0001...0x0013

    /// Checks that a server can publish the services after GAP and GATT.
    ///
    /// - Throws: ``ProfileError`` with the place of the handle that is not free.
    package func checkHandles() throws(ProfileError) {
        let server = Server()
        let standard = ServiceDefinition(uuid: .genericAccessService, endHandle: Profile.standardHandles.upperBound)
        do throws(DatabaseError) {
            _ = try server.publish([standard])
            _ = try server.publish(definitions)
        } catch {
            guard case .handleNotFree(let handle) = error else {
                throw ProfileError(place: "services", problem: error.description)
            }
            let (first, last) = (Profile.standardHandles.lowerBound, Profile.standardHandles.upperBound)
            throw ProfileError(
                place: place(ofHandle: handle),
                problem: "\(handle.rawValue) is not free; GAP and GATT have \(first.rawValue) to \(last.rawValue), "
                    + "and the handles of a service rise without overlapping those of another one"
            )
        }
    }

    /// The place of the last definition that declares a handle.
    private func place(ofHandle handle: AttributeHandle) -> String {
        var place = "services"
        for (index, service) in definitions.enumerated() {
            let path = "services[\(index)]"
            if service.handle == handle { place = "\(path).handle" }
            for (index, characteristic) in service.characteristics.enumerated() {
                let path = "\(path).characteristics[\(index)]"
                if characteristic.handle == handle { place = "\(path).handle" }
                for (index, descriptor) in characteristic.descriptors.enumerated() where descriptor.handle == handle {
                    place = "\(path).descriptors[\(index)].handle"
                }
            }
        }
        return place
    }
}
