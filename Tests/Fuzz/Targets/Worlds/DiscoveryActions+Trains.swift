import BLE
import BluetoothTypes

// Periodic advertising with responses, by the app of a fuzzed host.
extension DiscoveryActions {
    /// Starts a train with subevents, and answers each request for data.
    mutating func advertiseTrain(_ choices: inout Choices) {
        let timing = PeriodicSubeventConfiguration(count: 1 + Int(choices.next(below: 4)))
        let configuration = AdvertisementConfiguration(
            isConnectable: false,
            isScannable: false,
            periodic: PeriodicAdvertisingConfiguration(interval: .milliseconds(100), subevents: timing)
        )
        let data = AdvertisingData(decoding: Array(choices.remaining().prefix(249)))
        calls.begin { [adapter, advertisements] in
            guard let set = try? await adapter.peripheral.startAdvertising(configuration) else { return }
            advertisements.add(set)
            guard let events = try? await set.subeventEvents() else { return }
            for await event in events {
                switch event {
                case .dataRequested(let subevents):
                    require(subevents.allSatisfy { $0 < timing.count }, "data of subevents \(subevents) is requested")
                    try? await set.send(
                        subevents.map { PeriodicSubeventData(data, subevent: $0, responseSlots: 0..<4) }
                    )
                case .response(let response):
                    require(response.data.length <= 255, "a response of \(response.data.length) bytes")
                    require(response.subevent < timing.count && response.slot < 4, "a response in \(response)")
                case .notSent, .eventsDropped: break
                }
            }
        }
    }

    /// Receives a subevent of a train, and responds to each packet.
    mutating func followTrain(_ choices: inout Choices) {
        let request = PeriodicTrainRequest(
            address: heard[choices.next()],
            sid: choices.next(below: 17),
            timeout: .milliseconds(500),
            subevents: [choices.next(below: 130)]
        )
        let slot = choices.next()
        let data = AdvertisingData(decoding: choices.remaining())
        calls.begin { [adapter] in
            do throws(BLEError) {
                for try await event in adapter.central.periodicAdvertising(request) {
                    guard case .received(let packet) = event else { continue }
                    require(packet.data.length <= 1650, "\(packet.data.length) bytes of data")
                    try? await adapter.central.respond(data, to: packet, slot: slot)
                }
            } catch {}
        }
    }
}
