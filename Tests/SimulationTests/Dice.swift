import BluetoothTesting

/// Random decisions from the seed, for one part of a run. Belongs to the single thread that runs its world.
final class Dice: @unchecked Sendable {
    private var generator: SeededGenerator

    init(_ generator: SeededGenerator) {
        self.generator = generator
    }

    func number(in range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &generator)
    }

    func chance(_ probability: Double) -> Bool {
        Double(generator.next() >> 11) * 0x1p-53 < probability
    }

    func pick<Element>(_ elements: [Element]) -> Element? {
        elements.randomElement(using: &generator)
    }

    func split() -> Dice { Dice(generator.split()) }
}
