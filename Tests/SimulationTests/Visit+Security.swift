import BLE
import BluetoothTesting

// Pairing, and the procedures that use enhanced bearers.
extension CentralTask.Visit {
    /// Secures the link, possibly by a new pairing.
    func pair(again: Bool) async {
        let strength = await ledger.operation("\(names): pair", within: .seconds(150)) {
            try await peer.pair(again: again)
        }
        if strength != nil { ledger.count("links secured") }
    }

    /// Removes the bond of one side, which ends the link.
    func forget(_ dice: Dice) async {
        // A device with private addresses could no longer be found.
        guard !task.isPrivate else { return }
        let (here, there) = (task.station, target)
        let (side, other) = dice.chance(0.5) ? (here, there) : (there, here)
        _ = await ledger.operation("\(names): forget a bond", within: .seconds(60)) {
            await side.adapter.removeBond(other.address)
        }
    }

    /// Reads the values of several characteristics at the same time.
    func readConcurrently(_ dice: Dice) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<dice.number(in: 2...8) {
                let uuid = dice.chance(0.5) ? Station.stored : Station.handled
                group.addTask { await read(uuid) }
            }
        }
        let count = (try? await peer.linkInformation)?.enhancedBearerMTUs.count ?? 0
        guard count > 0 else { return }
        ledger.count("concurrent reads on enhanced bearers")
        ledger.count("concurrent reads on \(count) enhanced bearers")
    }

    /// Reads and writes at the same time, so that commands and requests are on several bearers.
    func writeConcurrently(_ dice: Dice) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [dice = dice.split()] in await write(dice) }
            group.addTask { [dice = dice.split()] in await writeCommands(dice) }
            group.addTask { await read(Station.handled) }
            if dice.chance(0.5) { group.addTask { [dice = dice.split()] in await cancelledRead(dice) } }
        }
    }
}
