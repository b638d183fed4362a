import BluetoothTesting

/// The faults in a simulation.
struct Faults: Sendable {
    let world: World
    let stations: [Station]
    let ledger: Ledger
    let dice: Dice
    let log: @Sendable (String) -> Void

    /// Causes faults, one after the other, until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            try? await world.sleep(for: .milliseconds(dice.number(in: 20...1000)))
            guard !Task.isCancelled, let station = dice.pick(stations) else { return }
            await injectFault(station)
        }
    }

    private func injectFault(_ station: Station) async {
        let duration = Duration.milliseconds(dice.number(in: 1...6000))
        let device = station.device
        let kind = dice.number(in: 0...11)
        log("\(world.elapsed): fault \(kind) of \(device.name) for \(duration)")
        switch kind {
        case 0:
            device.vanish()
            try? await world.sleep(for: duration)
            device.comeBack()
        case 1: device.failWithHardwareError(code: UInt8(dice.number(in: 0...255)))
        case 2:
            // The host does not get the packets of its links either.
            ledger.losesData = true
            await applyFaults(device, for: duration) { $0.isSilent = true }
        case 3: await applyFaults(device, for: duration) { $0.completionLoss = 0.3 }
        case 4: await applyFaults(device, for: duration) { $0.completionDelay = .milliseconds(300) }
        case 5: await applyFaults(device, for: duration) { $0.garbage = 0.3 }
        case 6: await applyFaults(device, for: duration) { $0.truncation = 0.1 }
        case 7: await applyFaults(device, for: duration) { $0.bufferLoss = 0.3 }
        case 11: await applyFaults(device, for: duration) { $0.refusal = 0.3 }
        case 8:
            world.conditions = RadioConditions(loss: 0.4, latency: .milliseconds(20), jitter: .milliseconds(50))
            try? await world.sleep(for: duration)
            world.conditions = .perfect
        case 9:
            let other = dice.pick(stations.filter { $0.index != station.index }) ?? station
            world.setConditions(RadioConditions(isDead: true), between: device, and: other.device)
            try? await world.sleep(for: duration)
            world.setConditions(nil, between: device, and: other.device)
        default:
            device.position = Position(x: 100_000, y: 0)
            try? await world.sleep(for: duration)
            device.position = .origin
        }
    }

    private func applyFaults(
        _ device: Device,
        for duration: Duration,
        _ change: (inout ControllerFaults) -> Void
    ) async {
        change(&device.faults)
        try? await world.sleep(for: duration)
        device.faults = .none
    }

    /// Ends all faults.
    func heal() {
        world.conditions = .perfect
        for station in stations {
            station.device.faults = .none
            station.device.position = .origin
            station.device.comeBack()
            for other in stations { world.setConditions(nil, between: station.device, and: other.device) }
        }
    }
}
