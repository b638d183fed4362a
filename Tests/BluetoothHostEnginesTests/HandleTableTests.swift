import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("Tables of attribute handles")
struct HandleTableTests {
    @Test("The table holds what a dictionary holds, in the order of the handles", arguments: [1, 2, 3])
    func tableHoldsWhatADictionaryHolds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var table = HandleTable<Int>()
        var expected: [AttributeHandle: Int] = [:]
        for step in 0..<2000 {
            let handle = AttributeHandle(UInt16.random(in: 1...40, using: &generator))
            let value = Bool.random(using: &generator) ? step : nil
            table[handle] = value
            expected[handle] = value
            let other = AttributeHandle(UInt16.random(in: 1...40, using: &generator))
            #expect(table[other] == expected[other])
        }
        #expect(Array(table.values) == expected.sorted { $0.key < $1.key }.map(\.value))
        table.removeAll()
        #expect(Array(table.values) == [])
        #expect(table[1] == nil)
    }
}
