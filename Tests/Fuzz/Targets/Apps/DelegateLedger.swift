import CoreBluetooth

/// What an app has asked for, and what its delegates were told.
struct DelegateLedger {
    enum Question: Hashable {
        case services
        case includedServices
        case characteristics
        case descriptors
        case write
        case notification
        case rssi
        case channel
    }

    /// The subscription of a central to a local characteristic.
    struct Subscription: Hashable {
        let characteristic: ObjectIdentifier
        let central: UUID
    }

    private struct Subject: Hashable {
        let question: Question
        let peripheral: UUID
    }

    private var open: [Subject: Int] = [:]
    var subscriptions: Set<Subscription> = []
    /// Whether the app's delegate has had all calls about subscriptions.
    var knowsSubscriptions = true

    mutating func ask(_ question: Question, of peripheral: CBPeripheral) {
        open[Subject(question: question, peripheral: peripheral.identifier), default: 0] += 1
    }

    /// Traps if there are more answers than questions.
    mutating func answer(_ question: Question, of peripheral: CBPeripheral) {
        let subject = Subject(question: question, peripheral: peripheral.identifier)
        require(open[subject, default: 0] > 0, "an answer about \(question) that nobody asked for")
        open[subject, default: 0] -= 1
        requireConnection(of: peripheral)
    }

    func requireConnection(of peripheral: CBPeripheral) {
        let isConnected = peripheral.state == .connected || peripheral.state == .disconnecting
        require(isConnected, "an event of a peripheral that is \(peripheral.state)")
    }

    mutating func subscribe(_ central: CBCentral, to characteristic: CBCharacteristic) {
        let subscription = Subscription(
            characteristic: ObjectIdentifier(characteristic),
            central: central.identifier
        )
        let isNew = subscriptions.insert(subscription).inserted
        require(isNew || !knowsSubscriptions, "a central subscribes twice")
    }

    mutating func unsubscribe(_ central: CBCentral, from characteristic: CBCharacteristic) {
        let subscription = Subscription(
            characteristic: ObjectIdentifier(characteristic),
            central: central.identifier
        )
        let isKnown = subscriptions.remove(subscription) != nil
        require(isKnown || !knowsSubscriptions, "a central unsubscribes that has not subscribed")
    }

    /// Forgets subscriptions that end without a call of the delegate.
    mutating func forgetSubscriptions(of service: CBService) {
        let characteristics = Set((service.characteristics ?? []).map { ObjectIdentifier($0) })
        subscriptions = subscriptions.filter { !characteristics.contains($0.characteristic) }
    }
}
