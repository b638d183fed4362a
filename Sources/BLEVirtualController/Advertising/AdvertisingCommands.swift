import BLEHCI

/// The two sets of commands for advertising, scanning and initiating. A host uses only one of them until it resets the
/// controller (Vol 4, Part E, 3.1.1).
enum AdvertisingCommands: Sendable {
    case legacy
    case extended

    fileprivate var needed: LEFeatures { self == .extended ? .extendedAdvertising : [] }
}

extension CommandTable {
    /// Adds a command that returns parameters. The command is refused if the host has used the other set of commands.
    mutating func answer<C: Command & SendableMetatype>(
        _ type: C.Type,
        of commands: AdvertisingCommands,
        needs needed: LEFeatures = [],
        _ handle: @escaping @Sendable (VirtualController, C) -> Result<C.ReturnParameters, HCIErrorCode>
    ) {
        answer(type, needs: commands.needed.union(needed)) { controller, command in
            controller.admits(commands) ? handle(controller, command) : .failure(.commandDisallowed)
        }
    }

    /// Adds a command that returns only a status. The command is refused if the host has used the other set of
    /// commands.
    mutating func carryOut<C: Command & SendableMetatype>(
        _ type: C.Type,
        of commands: AdvertisingCommands,
        needs needed: LEFeatures = [],
        _ handle: @escaping @Sendable (VirtualController, C) -> HCIErrorCode
    ) where C.ReturnParameters == StatusReturnParameters {
        carryOut(type, needs: commands.needed.union(needed)) { controller, command in
            controller.admits(commands) ? handle(controller, command) : .commandDisallowed
        }
    }

    /// Adds a command that is answered by a status, and by an event later. The command is refused if the host has used
    /// the other set of commands.
    mutating func begin<C: Command & SendableMetatype>(
        _ type: C.Type,
        of commands: AdvertisingCommands,
        needs needed: LEFeatures = [],
        _ handle: @escaping @Sendable (VirtualController, C) -> Beginning
    ) where C.ReturnParameters == NoReturnParameters {
        begin(type, needs: commands.needed.union(needed)) { controller, command in
            controller.admits(commands) ? handle(controller, command) : .refused(.commandDisallowed)
        }
    }
}

extension VirtualController {
    /// Records which set of commands the host uses. Returns false if the host has used the other set.
    fileprivate func admits(_ commands: AdvertisingCommands) -> Bool {
        if advertiser.commands == nil { advertiser.commands = commands }
        return advertiser.commands == commands
    }
}
