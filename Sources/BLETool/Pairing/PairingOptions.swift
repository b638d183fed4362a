import ArgumentParser
import BLE
import BLEHCI
import BLEProfiles

/// How a command pairs, if an operation needs pairing.
struct PairingOptions: ParsableArguments {
    /// The input and output that this side has.
    enum Capability: String, ExpressibleByArgument, CaseIterable {
        case none
        case display
        case keyboard
        case displayYesNo
        case keyboardDisplay

        var ioCapability: IOCapability {
            switch self {
            case .none: .noInputNoOutput
            case .display: .displayOnly
            case .keyboard: .keyboardOnly
            case .displayYesNo: .displayYesNo
            case .keyboardDisplay: .keyboardDisplay
            }
        }

        /// Whether a person at this side answers questions.
        var answersQuestions: Bool {
            switch self {
            case .none, .display: false
            case .keyboard, .displayYesNo, .keyboardDisplay: true
            }
        }
    }

    @Option(help: "The input and output of this device for pairing.")
    var io: Capability?

    @Option(
        help: ArgumentHelp("The passkey to enter: six digits. It is used for one pairing.", valueName: "n"),
        transform: { try Passkey(argument: $0) }
    )
    var passkey: Passkey?

    @Option(
        help: ArgumentHelp(
            "A JSON file with the out of band data of the peer, or - for standard input.",
            valueName: "file"
        ),
        completion: .file()
    )
    var oob: String?

    @Option(
        help: ArgumentHelp("Write the out of band data for the peer into this file.", valueName: "file"),
        completion: .file()
    )
    var oobOut: String?

    @Flag(
        help: "Send keypress notifications for a passkey that is typed here, and show those of the peer."
    )
    var keypress = false

    @Option(
        help: ArgumentHelp(
            "End an encrypted link if no packet proves for this time that the peer has the key: 10ms to 655s.",
            valueName: "s"
        ),
        transform: { try Seconds(argument: $0) }
    )
    var authenticatedPayloadTimeout: Seconds?

    @Flag(help: "Refuse LE legacy pairing.")
    var scOnly = false

    @Flag(help: "Refuse pairing that does not protect against an attacker between the devices.")
    var authenticated = false

    @Flag(help: "Do not pair, even if the peer refuses a request without pairing.")
    var noPair = false

    @Flag(help: "Discard the keys when the link ends.")
    var noBond = false

    @Flag(help: "Let a bonded peer pair again. It may have been reset, or be another device.")
    var replaceBond = false

    func validate() throws {
        if passkey != nil, io != .keyboard, io != .keyboardDisplay {
            throw ValidationError("--passkey goes with --io keyboard or --io keyboardDisplay")
        }
        if noPair, isGiven { throw ValidationError("--no-pair excludes the options for pairing") }
        if let time = authenticatedPayloadTimeout?.duration, time < .milliseconds(10) || time > .milliseconds(655_350) {
            throw ValidationError("--authenticated-payload-timeout is 10ms to 655s")
        }
    }

    /// Checks that pairing does not need standard input, for a command that reads other data there.
    ///
    /// - Parameters:
    ///   - content: the data.
    ///   - remedy: how the user gives the data in another way.
    func validate(inputHas content: String, remedy: String) throws {
        if oob == "-" {
            throw ValidationError("standard input has \(content), so --oob - cannot read it; name a file")
        }
        guard let io, io.answersQuestions, passkey == nil, oob == nil else { return }
        let passkeyRemedy =
            switch io {
            case .keyboard: "give --passkey, or "
            // With a display, the devices may have to compare a number, which no option answers.
            case .keyboardDisplay: "give --io keyboard with --passkey, or "
            default: ""
            }
        throw ValidationError(
            "standard input has \(content), so it cannot have the answers for --io \(io.rawValue); "
                + "\(passkeyRemedy)\(remedy)"
        )
    }

    /// Whether any option about pairing is given.
    var isGiven: Bool {
        io != nil || oob != nil || oobOut != nil || scOnly || authenticated || noBond || replaceBond
            || keypress
    }

    /// Returns the security policy, with the out-of-band data. Their file is read once: it may be a pipe.
    ///
    /// - Parameter usual: the input and output of this side, unless an option sets them.
    func policy(_ usual: Capability = .none) async throws -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.ioCapability = (io ?? usual).ioCapability
        policy.bonds = !noBond
        policy.requiresAuthentication = authenticated
        policy.requiresSecureConnections = scOnly
        policy.usesKeypressNotifications = keypress
        policy.authenticatedPayloadTimeout = authenticatedPayloadTimeout?.duration
        policy.keyLoss = replaceBond ? .askToPairAgain : .fail
        policy.bondReplacement = replaceBond ? .whenConsented : .whenIdentityVerified
        if let oob {
            let data = try await OutOfBandFile(contentsOf: oob).data
            policy.peerOutOfBandData = data
            if case .temporaryKey(let key) = data { policy.ownOutOfBandData = .temporaryKey(key) }
        }
        return policy
    }

    /// Creates out of band data for the peer, if requested, before any device can pair. Lets the console send and show
    /// keypress notifications.
    func prepare(_ adapter: Adapter, _ policy: SecurityPolicy, _ console: PairingConsole) async throws {
        if keypress { await console.followKeys(of: adapter) }
        if authenticatedPayloadTimeout != nil,
            try await !adapter.information.commands.contains(WriteAuthenticatedPayloadTimeout.self)
        {
            Output.complain("the controller does not support --authenticated-payload-timeout, which has no effect")
        }
        guard let oobOut else { return }
        let (secret, forPeer) = await adapter.makeOutOfBandData()
        var policy = policy
        policy.ownOutOfBandData = secret
        try OutOfBandFile(data: forPeer).write(to: oobOut)
        await adapter.setSecurityPolicy(policy)
    }
}

/// Six digits, or fewer if the first are zeros.
struct Passkey: Hashable, Sendable {
    let value: UInt32

    init(value: UInt32) {
        self.value = value
    }

    init(argument text: String) throws(ArgumentProblem) {
        guard (1...6).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let value = UInt32(text)
        else { throw ArgumentProblem("\"\(terminalSafe(text))\" is not a passkey, which has six digits") }
        self.value = value
    }

    /// In six digits.
    var digits: String {
        let digits = String(value)
        return String(repeating: "0", count: 6 - digits.utf8.count) + digits
    }
}
