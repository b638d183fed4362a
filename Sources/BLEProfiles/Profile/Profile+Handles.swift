import BLEGATT
import BluetoothTypes

extension Profile {
    /// The handles of GAP and GATT, which precede the services of a profile.
    package static let standardHandles: ClosedRange<AttributeHandle> = 0x0001...0x0013

    /// Checks that the server can assign the handles that the profile declares.
    ///
    /// - Throws: ``ProfileError`` with the place of the first handle that is not free.
    package func checkHandles() throws(ProfileError) {
        var used = [(owner: "GAP and GATT", handles: Profile.standardHandles)]
        var next = Profile.standardHandles.upperBound.next
        for (index, definition) in definitions.enumerated() {
            let place = "services[\(index)]"
            guard let first = definition.handle ?? next else {
                throw ProfileError(place: place, problem: HandleAssignment.exhausted)
            }
            var assignment = HandleAssignment(next: first)
            try assignment.assign(definition, at: place)
            let handles = first...assignment.last
            for other in used where other.handles.overlaps(handles) {
                throw ProfileError(
                    place: "\(place).handle",
                    problem: "\(first.rawValue) is not free; the service needs \(Profile.text(of: handles)), "
                        + "and these are taken: \(Profile.text(of: other.handles)) (\(other.owner))"
                )
            }
            used.append((owner: place, handles: handles))
            if handles.upperBound >= (next ?? .last) { next = handles.upperBound.next }
        }
    }

    private static func text(of handles: ClosedRange<AttributeHandle>) -> String {
        let (first, last) = (handles.lowerBound.rawValue, handles.upperBound.rawValue)
        return first == last ? "\(first)" : "\(first) to \(last)"
    }
}

/// Assigns the handles of a service in rising order, as the server does.
private struct HandleAssignment {
    static let exhausted = "there are no attribute handles left"

    /// The last handle that was assigned.
    private(set) var last = AttributeHandle.invalid
    private var next: AttributeHandle?

    init(next: AttributeHandle) {
        self.next = next
    }

    mutating func assign(_ definition: ServiceDefinition, at place: String) throws(ProfileError) {
        // The declarations of the service and of those that it includes.
        for _ in 0...definition.includes.count { try assign(nil, at: place) }
        for (index, characteristic) in definition.characteristics.enumerated() {
            let place = "\(place).characteristics[\(index)]"
            try assign(characteristic.handle, at: place)
            // The value, and the descriptors that the server adds.
            let addedCount = characteristic.completeDescriptors.count - characteristic.descriptors.count
            for _ in 0...addedCount { try assign(nil, at: place) }
            for (index, descriptor) in characteristic.descriptors.enumerated() {
                try assign(descriptor.handle, at: "\(place).descriptors[\(index)]")
            }
        }
    }

    private mutating func assign(_ declared: AttributeHandle?, at place: String) throws(ProfileError) {
        guard let next else { throw ProfileError(place: place, problem: HandleAssignment.exhausted) }
        if let declared, declared < next {
            throw ProfileError(
                place: "\(place).handle",
                problem: "\(declared.rawValue) is not free; the next free handle is \(next.rawValue)"
            )
        }
        let handle = declared ?? next
        last = handle
        self.next = handle.next
    }
}
