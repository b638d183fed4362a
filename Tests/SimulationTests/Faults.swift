import BluetoothTesting

/// What goes wrong in a simulation.
struct Faults: Sendable {
    let world: World
    let stations: [Station]
    let dice: Dice

    /// Lets things go wrong, one after the other, until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            try? await world.sleep(for: .milliseconds(dice.number(in: 100...3000)))
            guard !Task.isCancelled, let station = dice.pick(stations) else { return }
            await befall(station)
        }
    }

    private func befall(_ station: Station) async {
        let duration = Duration.milliseconds(dice.number(in: 1...6000))
        switch dice.number(in: 0...0) {
        default:
            station.device.vanish()
            try? await world.sleep(for: duration)
            station.device.comeBack()
        }
    }

    /// Ends all that is wrong.
    func heal() {
        for station in stations { station.device.comeBack() }
    }
}
