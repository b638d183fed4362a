import BLE
import BluetoothTesting

/// What the devices of a world use besides GATT on its fixed channel.
///
/// The traits have random numbers of their own. So a seed whose world has none of them gives the same world as before
/// there were traits.
struct WorldTraits: Sendable {
    /// Whether devices pair, and forget bonds.
    let pairs: Bool
    /// Whether devices open enhanced bearers, which need encryption.
    let usesBearers: Bool
    /// Whether devices open L2CAP channels.
    let usesChannels: Bool
    /// Whether devices send periodic advertising trains, receive them and transfer synchronizations.
    let usesTrains: Bool
    private let dice: Dice

    init(seed: UInt64) {
        dice = Dice(SeededGenerator(seed: seed ^ 0x7472_6169_7473))
        usesBearers = dice.chance(0.35)
        pairs = dice.chance(0.25) || usesBearers
        usesChannels = dice.chance(0.4)
        usesTrains = dice.chance(0.4)
    }

    /// Returns random decisions for one part of the world.
    func split() -> Dice { dice.split() }

    /// The operations on a link that only these traits have, each as often as it is chosen relative to the others. The
    /// operations of all worlds count twelve.
    var operations: [LinkOperation] {
        var operations: [LinkOperation] = []
        if pairs { operations += [.pair, .pairAgain, .forget] }
        if usesBearers { operations += [.concurrentReads, .concurrentReads, .concurrentWrites, .concurrentWrites] }
        if usesChannels { operations += [.channel, .channel, .channel, .channels] }
        if usesTrains { operations += [.transferTrain, .transferTrain, .requestTrain] }
        return operations
    }
}

/// An operation on a link that depends on the traits of a world.
enum LinkOperation: Sendable {
    case pair
    /// Pairs, although a bond exists.
    case pairAgain
    /// Removes the bond of one side.
    case forget
    /// Reads several values at the same time.
    case concurrentReads
    /// Writes without response and reads at the same time.
    case concurrentWrites
    /// Opens a channel, and sends values over it.
    case channel
    /// Opens several channels by one request.
    case channels
    /// Transfers the central's train to the peripheral.
    case transferTrain
    /// Has the peripheral transfer its train to a central.
    case requestTrain
}

/// Accepts most pairings, after some time.
struct RandomConsent: PairingDelegate {
    let world: World
    let dice: Dice

    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        if dice.chance(0.3) { try? await world.sleep(for: .milliseconds(dice.number(in: 0...3000))) }
        return dice.chance(0.95) ? .accept : .refuse
    }
}
