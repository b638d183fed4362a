import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("The queue for mostly one element")
struct ShortQueueTests {
    @Test(arguments: 1...20)
    func shortQueueBehavesLikeAnArray(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = ShortQueue<Int>()
        var model: [Int] = []
        for number in 0..<500 {
            switch Int.random(in: 0..<20, using: &random) {
            case 18:
                let removed = model.randomElement(using: &random) ?? number
                queue.removeAll(removed)
                model.removeAll { $0 == removed }
            case 0..<8:
                queue.append(number)
                model.append(number)
            case 8..<11:
                queue.prepend(number)
                model.insert(number, at: 0)
            case 19:
                queue.removeAll()
                model.removeAll()
            default:
                #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
            }
            #expect(queue.count == model.count)
            #expect(queue.isEmpty == model.isEmpty)
        }
    }
}
