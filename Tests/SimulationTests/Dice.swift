import BluetoothTesting
import Synchronization

/// Random decisions from the seed, for one part of a run.
final class Dice: Sendable {
    private let generator: Mutex<SeededGenerator>

    init(_ generator: SeededGenerator) {
        self.generator = Mutex(generator)
    }

    func number(in range: ClosedRange<Int>) -> Int {
        generator.withLock { Int.random(in: range, using: &$0) }
    }

    func chance(_ probability: Double) -> Bool {
        Double(generator.withLock { $0.next() } >> 11) * 0x1p-53 < probability
    }

    func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[number(in: 0...elements.count - 1)]
    }

    func split() -> Dice { Dice(generator.withLock { $0.split() }) }
}
