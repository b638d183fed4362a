import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("Entries by token")
struct SlotTableTests {
    @Test func tokenFindsItsOwnEntryOnly() {
        var table = SlotTable<String>()
        let first = table.insert("first")
        let second = table.insert("second")
        #expect(table[first] == "first" && table[second] == "second")
        #expect(table.remove(first) == "first")
        let third = table.insert("third")
        #expect(third.index == first.index && third != first)
        #expect(table[first] == nil && table.remove(first) == nil)
        table.update(first) { $0 = "stale" }
        #expect(table[third] == "third" && table.count == 2)
        table.update(third) { $0 += "!" }
        #expect(table[third] == "third!")
        #expect(table.tokens { $0.hasPrefix("s") } == [second])
        #expect(table[SlotToken(index: 9, generation: 0)] == nil)
    }

    @Test(arguments: 1...4) func randomChangesLeaveWhatADictionaryHolds(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = SlotTable<Int>()
        var model: [SlotToken: Int] = [:]
        var stale: [SlotToken] = []
        var greatest = 0
        for number in 0..<2000 {
            if Bool.random(using: &random) || model.isEmpty {
                let token = table.insert(number)
                #expect(model.updateValue(number, forKey: token) == nil)
            } else if let token = model.keys.sorted(by: { $0.index < $1.index }).randomElement(using: &random) {
                #expect(table.remove(token) == model.removeValue(forKey: token))
                stale.append(token)
            }
            greatest = max(greatest, model.count)
            #expect(table.count == model.count)
        }
        #expect(model.allSatisfy { table[$0.key] == $0.value })
        #expect(stale.allSatisfy { table[$0] == nil })
        #expect(model.keys.allSatisfy { $0.index < greatest })
    }
}
